"""Full disks and missing rights: what could not be replicated is named, the rest arrives, old versions stay."""
import errno
import os

from mounts import AS_USER, let_users_run, mount_ext4, mount_tmpfs
from ssh_server import SshCase, each_way
from support import KIB, MIB, USER_ID, main, needs_root, wait_until
from tracing import needs_strace, under_strace
from trees import assert_no_state, assert_replica, write, write_large


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
        self.assertRegex(result.text(), r"No space left on device: \d+ bytes needed, \d+ available")
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
        self.assertRegex(result.text(), r"No space left on device: 8192000 bytes needed, \d+ available")
        self.assertEqual([], os.listdir(disk))

    @each_way()
    def test_no_more_inodes_is_no_space_too(self, way):
        disk = mount_tmpfs(self, "disk-" + way, "size=64m,nr_inodes=100")
        for number in range(300):
            write(f"{self.source}/f{number}", b"1")
        result = self.expect(11, self.go(way, self.source, disk, seconds=30))
        self.assertRegex(result.text(), r"No space left on device: 300 inodes needed, \d+ available")
        assert_no_state(self, disk)

    @each_way()
    def test_a_read_only_target_is_refused(self, way):
        write(f"{self.source}/file", b"f")
        disk = mount_tmpfs(self, "disk-" + way, "size=1m,ro")
        result = self.go(way, self.source, disk, seconds=30)
        self.assertIn(result.code, (3, 11), result.text())
        self.assertIn("Read-only file system", result.text())

    @each_way("push", "pull")
    def test_nothing_is_sent_that_cannot_fit(self, way):
        if way == "push":
            write_large(f"{self.source}/large", 32 * MIB)
            write(f"{self.source}/small", b"s")
        disk = mount_ext4(self, "disk-" + way, 16 * MIB)
        report = self.expect(11, self.go(way, self.source, disk, "--json", seconds=30)).json()
        self.assertEqual((0, 0), (report["files"]["sent"], report["bytes"]["sent"]))
        self.assertLess(report["bytes"]["wire"], 4 * KIB)
        self.assertEqual([], os.listdir(disk))

    def test_inodes_of_ext4_are_counted_too(self):
        disk = mount_ext4(self, "disk", 16 * MIB)
        for number in range(os.statvfs(disk).f_favail + 10):
            write(f"{self.source}/f{number}")
        result = self.expect(11, self.fgsync(self.source, disk))
        self.assertRegex(result.text(), r"No space left on device: \d+ inodes needed, \d+ available")
        self.assertEqual([], os.listdir(disk))

    def test_what_is_there_already_needs_no_room(self):
        write_large(f"{self.source}/large", 5 * MIB)
        write(f"{self.source}/small", b"1")
        disk = mount_tmpfs(self, "disk", "size=8m")
        self.expect(0, self.fgsync(self.source, disk))
        write(f"{self.source}/small", b"22")
        self.expect(0, self.fgsync(self.source, disk))
        assert_replica(self, self.source, disk)

    def test_old_versions_give_their_room_to_the_others(self):
        for number in range(10):
            write_large(f"{self.source}/large{number}", 8 * MIB)
        disk = mount_tmpfs(self, "disk", "size=124m")
        self.expect(0, self.fgsync(self.source, disk))
        for number in range(10):  # 80 MiB anew, with 44 MiB free; at most four files are under way
            write_large(f"{self.source}/large{number}", 8 * MIB, seed=9)
        self.expect(0, self.fgsync("--chunk-size=1M", self.source, disk))
        assert_replica(self, self.source, disk)

    @each_way()
    def test_a_disk_that_fills_up_under_way_ends_the_run(self, way):
        disk = mount_ext4(self, "disk-" + way, 64 * MIB)
        os.makedirs(f"{self.source}/below", exist_ok=True)
        for number in range(400):
            write(f"{self.source}/below/f{number}", b"new" * 20_000)
        os.mkdir(f"{disk}/below")
        for number in range(400):
            write(f"{disk}/below/f{number}", b"old")
        run = self.start_way(way, self.source, disk, "--bwlimit=4M")
        wait_until(lambda: os.path.exists(f"{disk}/.fgsync"), "something is staged")
        self.fill(f"{disk}/ballast")
        self.expect(11, run.wait(20))
        self.assertIn("No space left on device", run.said())
        assert_no_state(self, disk)
        os.unlink(f"{disk}/ballast")
        for number in range(400):
            with open(f"{disk}/below/f{number}", "rb") as file:
                self.assertIn(file.read(), (b"old", b"new" * 20_000))
        self.expect(0, self.go(way, self.source, disk))
        assert_replica(self, self.source, disk)

    @staticmethod
    def fill(path):
        """A file that leaves no room, however much comes free meanwhile."""
        with open(path, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"b" * 4 * KIB)
            except OSError as error:
                assert error.errno == errno.ENOSPC, error

    def test_room_that_is_made_lets_the_next_run_complete(self):
        write_large(f"{self.source}/large", 6 * MIB)
        disk = mount_tmpfs(self, "disk", "size=8m")
        ballast = write_large(f"{disk}/ballast", 4 * MIB)
        self.expect(11, self.fgsync(self.source, disk))
        os.unlink(ballast)
        self.expect(0, self.fgsync(self.source, disk))
        assert_replica(self, self.source, disk)


@needs_strace
class Quota(SshCase):
    """A user's quota is in no figure of the file system: it is met by the write itself."""

    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)
        os.mkdir(self.target)

    def check(self, *calls):
        before, _ = under_strace(self, f"inject={','.join(calls)}:error=EDQUOT", calls=calls)
        result = self.expect(11, self.fgsync(self.source, self.target, before=before, seconds=30))
        self.assertIn("Disk quota exceeded", result.text())
        with open(f"{self.target}/file", "rb") as file:
            self.assertEqual(b"the old version", file.read())
        assert_no_state(self, self.target)

    def test_of_a_small_file(self):
        write(f"{self.source}/file", b"new" * 10_000)
        write(f"{self.target}/file", b"the old version")
        self.check("pwrite64")

    def test_of_a_large_one(self):
        write_large(f"{self.source}/file", 3 * MIB)
        write(f"{self.target}/file", b"the old version")
        self.check("pwrite64", "fallocate")


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
