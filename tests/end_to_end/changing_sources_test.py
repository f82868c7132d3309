"""Sources that change while they are read: named, exit status 24, and never a mix in the target."""
import os
import shutil

from mounts import AS_USER, let_users_run
from ssh_server import SshCase, each_way
from support import KIB, MIB, USER_ID, main, needs_root, wait_until
from trees import assert_no_state, has_staged_data, names_in, sha256, write, write_large

SIZE = 24 * MIB
SLOW = "--bwlimit=8M"


def truncate(path):
    os.truncate(path, SIZE // 3)


def empty(path):
    os.truncate(path, 0)


def grow(path):
    with open(path, "ab") as file:
        file.write(b"more" * 1000)


def replace(path):
    os.rename(write_large(path + ".next", SIZE, seed=99), path)


def rewrite(path):
    """In place, at the same size, with the old time put back."""
    before = os.stat(path)
    with open(path, "r+b") as file:
        for offset in range(0, SIZE, MIB):
            file.seek(offset + 1000)
            file.write(b"rewritten")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove(path):
    os.unlink(path)


class LargeFiles(SshCase):
    def start_midway(self, way, name):
        """A run that has data of the file `name` in staging, over an older version in the target."""
        source, target = self.path(f"{name}-{way}"), self.path(f"{name}-{way}-target")
        os.mkdir(source)
        os.mkdir(target)
        write_large(f"{source}/{name}", SIZE)
        write(f"{source}/steady", b"steady")
        write(f"{target}/{name}", b"the old version")
        run = self.start_way(way, source, target, SLOW, "--json")
        wait_until(lambda: has_staged_data(target), "data is staged")
        return run, source, target

    def check_changed(self, run, target, name):
        result = self.expect(24, run.wait())
        self.assertRegex(result.text(), rf"(?m)^fgsync: \S*{name}: ")
        report = result.json()
        self.assertEqual([name], [os.path.basename(error["path"]) for error in report["errors"]])
        self.assertEqual((1, 0), (report["files"]["vanished"], report["files"]["failed"]))
        with open(f"{target}/{name}", "rb") as file:
            self.assertEqual(b"the old version", file.read(100))
        self.assertTrue(os.path.isfile(f"{target}/steady"))
        assert_no_state(self, target)

    @each_way()
    def test_a_file_that_changes_while_it_is_read_keeps_its_old_version(self, way):
        changes = (truncate, empty, grow, replace, rewrite, remove)
        runs = []
        for change in changes:
            run, source, target = self.start_midway(way, change.__name__)
            change(f"{source}/{change.__name__}")
            self.assertIsNone(run.process.poll(), run.said())
            runs.append((change, run, target))
        for change, run, target in runs:
            with self.subTest(change=change.__name__):
                self.check_changed(run, target, change.__name__)

    @each_way()
    def test_the_run_after_it_completes(self, way):
        run, source, target = self.start_midway(way, "rewrite")
        rewrite(f"{source}/rewrite")
        self.expect(24, run.wait())
        self.expect(0, self.go(way, source, target))
        self.assertEqual(sha256(f"{source}/rewrite"), sha256(f"{target}/rewrite"))


class SmallFiles(SshCase):
    COUNT, BYTES = 160, 200 * KIB  # travel packed; at 8 MiB/s they take 4 s

    def start_midway(self, way, name):
        source, target = self.path(f"{name}-{way}"), self.path(f"{name}-{way}-target")
        os.makedirs(f"{source}/directory")
        for number in range(self.COUNT):
            write(f"{source}/directory/file{number}", self.old_contents(number))
        run = self.start_way(way, source, target, SLOW, "--json")
        wait_until(lambda: has_staged_data(target) or self.arrived(target), "data is staged")
        self.assertIsNone(run.process.poll(), run.said())
        return run, f"{source}/directory", target

    def old_contents(self, number):
        return number.to_bytes(4, "big") * (self.BYTES // 4)

    def arrived(self, target):
        directory = f"{target}/directory"
        return set(os.listdir(directory)) if os.path.isdir(directory) else set()

    @each_way()
    def test_vanished_files_are_named(self, way):
        run, source, target = self.start_midway(way, "vanish")
        removed = {f"file{number}" for number in range(self.COUNT)} - self.arrived(target)
        for name in removed:
            os.unlink(f"{source}/{name}")
        result = self.expect(24, run.wait())
        report = result.json()
        named = {os.path.basename(error["path"]) for error in report["errors"]}
        self.assertTrue(named)
        # What was being read just then may have arrived whole, or be named.
        self.assertEqual(removed - self.arrived(target), named)
        self.assertEqual(len(named), report["files"]["vanished"])
        self.check_whole(target)
        self.assertLessEqual(len(result.text().splitlines()), 23)

    @each_way()
    def test_a_vanished_directory_is_no_failure_of_the_copy(self, way):
        run, source, target = self.start_midway(way, "directory")
        shutil.rmtree(source)
        self.expect(24, run.wait())
        self.check_whole(target)

    @each_way()
    def test_a_directory_that_moves_away_may_still_be_read(self, way):
        run, source, target = self.start_midway(way, "moved")
        os.rename(source, self.path("gone-" + way))
        result = run.wait()
        self.assertIn(result.code, (0, 24), result.text())
        self.check_whole(target)

    @each_way()
    def test_rewritten_files_are_old_or_new_but_never_a_mix(self, way):
        run, source, target = self.start_midway(way, "rewritten")
        for number in range(self.COUNT):
            path = f"{source}/file{number}"
            before = os.stat(path)
            with open(path, "r+b") as file:
                file.write(self.old_contents(number + self.COUNT))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        result = run.wait()
        self.assertIn(result.code, (0, 24), result.text())
        self.check_whole(target)

    def check_whole(self, target):
        for name in self.arrived(target):
            number = int(name[len("file"):])
            with open(f"{target}/directory/{name}", "rb") as file:
                contents = file.read()
            self.assertIn(contents, (self.old_contents(number), self.old_contents(number + self.COUNT)))
        assert_no_state(self, target)


class FilesOfTheKernel(SshCase):
    @each_way()
    def test_a_file_that_is_longer_than_it_says_is_not_published_as_empty(self, way):
        target = self.path("target-" + way)
        result = self.expect(24, self.go(way, "/proc/version", target))
        self.assertRegex(result.text(), r"(?m)^fgsync: /proc/version: .*longer")
        self.assertFalse(os.path.lexists(target))


@needs_root
class Precedence(SshCase):
    def test_a_failed_file_outweighs_those_that_changed_or_vanished(self):
        program = let_users_run(self)
        source, target = self.path("source"), self.path("target")
        os.mkdir(source)
        os.mkdir(target)
        os.chown(target, USER_ID, USER_ID)
        write_large(f"{source}/changes", SIZE)
        write_large(f"{source}/vanishes", SIZE)
        write(f"{source}/secret", b"s", 0o600)
        run = self.start(SLOW, "--json", source, target, before=AS_USER, program=program)
        wait_until(lambda: has_staged_data(target), "data is staged")
        grow(f"{source}/changes")
        remove(f"{source}/vanishes")
        result = self.expect(23, run.wait())
        named = {os.path.basename(error["path"]) for error in result.json()["errors"]}
        self.assertEqual({"changes", "vanishes", "secret"}, named)
        self.assertEqual([], names_in(target))


if __name__ == "__main__":
    main()
