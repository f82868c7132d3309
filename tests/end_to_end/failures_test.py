"""Full disks and missing rights: what could not be replicated is named, the rest arrives, old versions stay."""
import os

from mounts import AS_USER, let_users_run, mount_ext4, mount_tmpfs
from ssh_server import SshCase, each_way
from support import KIB, MIB, USER_ID, main, needs_root
from trees import assert_no_state, assert_replica, rsync_differences, write, write_large


@needs_root
class NoSpace(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)

    def check_no_space(self, way, disk, named, options=()):
        write(f"{disk}/{named}", b"the old version")
        before = os.statvfs(disk).f_bfree
        result = self.expect(11, self.go(way, self.source, disk, *options, seconds=30))
        self.assertIn(named, result.text())
        self.assertIn("No space left on device", result.text())
        with open(f"{disk}/{named}", "rb") as file:
            self.assertEqual(b"the old version", file.read())
        assert_no_state(self, disk)
        return before - os.statvfs(disk).f_bfree

    @each_way()
    def test_a_file_larger_than_the_target_has_room_for(self, way):
        if way == "local":
            write_large(f"{self.source}/large", 32 * MIB)
        disk = mount_tmpfs(self, "disk-" + way, "size=8m")
        self.assertLessEqual(self.check_no_space(way, disk, "large"), 0)

    @each_way()
    def test_the_same_on_ext4(self, way):
        if way == "local":
            write_large(f"{self.source}/large", 32 * MIB)
        disk = mount_ext4(self, "disk-" + way, 16 * MIB)
        self.check_no_space(way, disk, "large")

    @each_way()
    def test_more_small_files_than_the_target_has_room_for(self, way):
        disk = mount_tmpfs(self, "disk-" + way, "size=4m")
        for number in range(500):
            write(f"{self.source}/small{number}", bytes([number % 256]) * 16 * KIB)
        result = self.expect(11, self.go(way, self.source, disk, seconds=30))
        self.assertIn("No space left on device", result.text())
        self.assertRegex(result.text(), r"small\d+")
        self.assertLessEqual(len(result.text().splitlines()), 25)
        assert_no_state(self, disk)
        for name in os.listdir(disk):  # what was published is whole
            self.assertEqual(os.stat(f"{self.source}/{name}").st_size, os.stat(f"{disk}/{name}").st_size)
        self.assertEqual("", rsync_differences_of_present(self.source, disk))

    @each_way()
    def test_no_more_inodes_is_no_space_too(self, way):
        disk = mount_tmpfs(self, "disk-" + way, "size=64m,nr_inodes=100")
        for number in range(300):
            write(f"{self.source}/f{number}", b"1")
        result = self.expect(11, self.go(way, self.source, disk, seconds=30))
        self.assertIn("No space left on device", result.text())
        assert_no_state(self, disk)

    @each_way()
    def test_a_read_only_target_is_refused(self, way):
        write(f"{self.source}/file", b"f")
        disk = mount_tmpfs(self, "disk-" + way, "size=1m,ro")
        result = self.go(way, self.source, disk, seconds=30)
        self.assertIn(result.code, (3, 11), result.text())
        self.assertIn("Read-only file system", result.text())

    def test_room_that_is_made_lets_the_next_run_complete(self):
        write_large(f"{self.source}/large", 6 * MIB)
        disk = mount_tmpfs(self, "disk", "size=8m")
        ballast = write_large(f"{disk}/ballast", 4 * MIB)
        self.expect(11, self.fgsync(self.source, disk))
        os.unlink(ballast)
        self.expect(0, self.fgsync(self.source, disk))
        assert_replica(self, self.source, disk)


class FileSizeLimit(SshCase):
    def test_a_limit_on_file_sizes_is_an_error_not_a_signal(self):
        source, target = self.path("source"), self.path("target")
        os.mkdir(source)
        write_large(f"{source}/large", 8 * MIB)
        write(f"{source}/small", b"small")
        limit = ("prlimit", f"--fsize={MIB}")
        result = self.fgsync(source, target, before=limit)
        self.assertIn(result.code, (11, 23), result.text())
        self.assertIn("large", result.text())
        self.assertIn("File too large", result.text())
        self.assertFalse(os.path.exists(f"{target}/large"))
        assert_no_state(self, target)


def rsync_differences_of_present(source, target):
    """Like rsync_differences, for the files that the target has."""
    lines = rsync_differences(source, target).splitlines()
    return "\n".join(line for line in lines if not line.startswith((">f+++++++", ".d")))


@needs_root
class AsUser(SshCase):
    """One side without rights of its own: the initiator in `local`, the far side otherwise."""

    def setUp(self):
        super().setUp()
        self.program = let_users_run(self)
        self.far = self.far_program(f"exec {' '.join(AS_USER)}", program=self.program)
        self.source = self.path("source")
        os.mkdir(self.source)

    def go_as_user(self, way, source, target, *options):
        if way == "local":
            return self.fgsync(*options, source, target, before=AS_USER, program=self.program)
        return self.go(way, source, target, *options)

    @each_way("local", "pull")
    def test_an_unreadable_file_is_named_and_the_rest_arrives(self, way):
        target = self.path("target-" + way)
        if way == "local":
            write(f"{self.source}/secret", b"s" * 100, 0o600)
            write(f"{self.source}/secret-large", b"s" * MIB, 0o600)
            write(f"{self.source}/open", b"o")
            os.mkdir(f"{self.source}/closed", 0o700)
            write(f"{self.source}/closed/within", b"w")
            os.mkdir(target)
            os.chown(target, USER_ID, USER_ID)
        result = self.expect(23, self.go_as_user(way, self.source, target, "--json"))
        for name in ("secret", "secret-large", "closed"):
            self.assertRegex(result.text(), rf"(?m)^fgsync: \S*{name}: .*Permission denied")
        report = result.json()
        self.assertEqual({"secret", "secret-large", "closed"},
                         {os.path.basename(error["path"]) for error in report["errors"]})
        self.assertTrue(os.path.isfile(f"{target}/open"))
        self.assertFalse(os.path.lexists(f"{target}/secret"))
        assert_no_state(self, target)

    @each_way("local", "push")
    def test_a_directory_that_may_not_be_written_is_named(self, way):
        target = self.path("target-" + way)
        os.makedirs(f"{self.source}/locked", exist_ok=True)
        write(f"{self.source}/locked/inside", b"i")
        write(f"{self.source}/fine", b"f")
        os.makedirs(f"{target}/locked")
        os.chown(target, USER_ID, USER_ID)
        result = self.expect(23, self.go_as_user(way, self.source, target))
        self.assertIn("locked", result.text())
        self.assertTrue(os.path.isfile(f"{target}/fine"))
        self.assertEqual([], os.listdir(f"{target}/locked"))
        assert_no_state(self, target)

    @each_way("local", "push")
    def test_a_target_that_may_not_be_written_is_refused(self, way):
        write(f"{self.source}/file", b"f")
        target = self.path("target-" + way)
        os.mkdir(target)
        result = self.go_as_user(way, self.source, target)
        self.assertIn(result.code, (3, 23), result.text())
        self.assertIn("Permission denied", result.text())
        result = self.expect(3, self.go_as_user(way, self.source, f"{target}/missing"))
        self.assertIn("Permission denied", result.text())

    @each_way("local", "pull")
    def test_an_unreadable_source_is_refused(self, way):
        os.chmod(self.source, 0o700)
        target = self.path("target-" + way)
        os.mkdir(target)
        os.chown(target, USER_ID, USER_ID)
        result = self.expect(3, self.go_as_user(way, self.source, target))
        self.assertIn("Permission denied", result.text())

    @each_way("local", "push")
    def test_a_users_replica_is_the_users_own(self, way):
        target = self.path("target-" + way)
        write(f"{self.source}/file", b"f", 0o644)
        os.chown(f"{self.source}/file", 12345, 12345)
        os.mkdir(target)
        os.chown(target, USER_ID, USER_ID)
        self.expect(0, self.go_as_user(way, self.source, target))
        self.assertEqual((USER_ID, 0o644), owner_and_mode(f"{target}/file"))
        report = self.expect(0, self.go_as_user(way, self.source, target, "--json")).json()
        self.assertEqual(0, report["files"]["sent"])


def owner_and_mode(path):
    status = os.lstat(path)
    return status.st_uid, status.st_mode & 0o7777


if __name__ == "__main__":
    main()
