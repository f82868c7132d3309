"""When data and names are on stable storage, told by the kernel's own record of the calls."""
import errno
import os
import shlex

from ssh_server import SshCase
from support import MIB, Case, main
from tracing import RENAMES, SYNCS, WRITES, calls_of, is_below_state, needs_strace, under_strace
from trees import assert_replica, write, write_large


@needs_strace
class Order(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.makedirs(f"{self.source}/a/b")
        os.makedirs(f"{self.source}/c")
        write(f"{self.source}/empty")
        write_large(f"{self.source}/a/b/large", 40 * MIB)
        write_large(f"{self.source}/a/medium", 3 * MIB, seed=3)
        for number in range(40):
            write(f"{self.source}/c/small{number}", b"s" * number * 100)
        write(f"{self.source}/c/.metadata", b"40 files")
        write(f"{self.source}/latest", b"c")
        os.symlink("c", f"{self.source}/current")

    def trace(self, *options):
        before, log = under_strace(self)
        self.expect(0, self.fgsync(*options, self.source, self.target, before=before))
        assert_replica(self, self.source, self.target)
        return calls_of(log)

    def final_renames(self, calls):
        renames = [call for call in calls if call.name in RENAMES and not is_below_state(call.to)]
        wanted = {os.path.join(root, name).replace(self.source, self.target)
                  for root, directories, names in os.walk(self.source) for name in [*directories, *names]
                  if os.path.islink(f"{root}/{name}") or not os.path.isdir(f"{root}/{name}")}
        self.assertEqual(wanted, {rename.to for rename in renames})
        return renames

    def covers(self, sync, path):
        """Whether the sync makes the file's data durable."""
        return sync.result == 0 and (sync.name == "syncfs" or (sync.name in SYNCS and sync.path == path))

    def last_write(self, calls, path):
        writes = [call.ended for call in calls if call.name in WRITES and call.path == path]
        # io_uring writes large files past these calls.
        self.assertTrue(writes, path)
        return max(writes)

    def assert_data_durable_before_names(self, calls, covers):
        for rename in self.final_renames(calls):
            if os.path.islink(rename.to) or os.path.getsize(rename.to) == 0:
                continue  # nothing is written
            since = self.last_write(calls, rename.path)
            self.assertTrue(any(covers(call, rename.path) and since < call.begun and call.ended < rename.begun
                                for call in calls), f"not durable: {rename}")

    def assert_names_durable_at_the_end(self, calls):
        for rename in self.final_renames(calls):
            directory = os.path.dirname(rename.to)
            self.assertTrue(any(self.covers(call, directory) and call.begun > rename.ended for call in calls),
                            f"{directory} is not synced after {rename}")

    def assert_markers_wait_for_a_flush(self, calls):
        """Each marker comes after a flush that began when everything it may name had its name."""
        renames = self.final_renames(calls)
        ranks = [("c/.metadata",), ("latest", "current")]
        behind = [rename for rename in renames if os.path.relpath(rename.to, self.target) not in sum(ranks, ())]
        for rank in ranks:
            markers = [rename for rename in renames if os.path.relpath(rename.to, self.target) in rank]
            self.assertEqual(len(rank), len(markers))
            done = max(rename.ended for rename in behind)
            self.assertTrue(any(call.name == "syncfs" and call.begun > done and
                                call.ended < min(marker.begun for marker in markers) for call in calls), markers)
            behind += markers

    def test_with_batch_each_rename_comes_after_the_sync_of_its_data(self):
        calls = self.trace()
        self.assert_data_durable_before_names(calls, self.covers)
        self.assert_names_durable_at_the_end(calls)
        self.assert_markers_wait_for_a_flush(calls)

    def test_with_full_each_file_has_its_own_sync_and_its_directory_another(self):
        calls = self.trace("--durability=full")
        self.assert_data_durable_before_names(
            calls, lambda call, path: call.name in ("fsync", "fdatasync") and call.path == path and call.result == 0)
        self.assert_names_durable_at_the_end(calls)
        self.assert_markers_wait_for_a_flush(calls)
        for rename in self.final_renames(calls):
            self.assertTrue(any(call.name == "fsync" and call.path == os.path.dirname(rename.to) and
                                call.begun > rename.ended for call in calls), rename)

    def test_with_none_nothing_is_synced_and_the_report_says_so(self):
        before, log = under_strace(self)
        result = self.expect(0, self.fgsync("--durability=none", "--json", self.source, self.target, before=before))
        assert_replica(self, self.source, self.target)
        self.assertEqual([], [call for call in calls_of(log) if call.name in SYNCS])
        self.assertEqual("none", result.json()["durability"])
        self.assertRegex(result.text(), r"(?m)^fgsync: note: durability none\b")
        self.assertRegex(result.text().splitlines()[-1], r"^replicated .*, not made durable\b")

    def test_a_receiver_over_ssh_keeps_the_same_order(self):
        before, log = under_strace(self)
        far = self.far_program(f"exec {shlex.join(before)}")
        self.expect(0, self.fgsync(*self.over_ssh(far=far), self.source, f"near:{self.target}"))
        calls = calls_of(log)
        self.assert_data_durable_before_names(calls, self.covers)
        self.assert_names_durable_at_the_end(calls)
        self.assert_markers_wait_for_a_flush(calls)


@needs_strace
class FailedSyncs(Case):
    """A sync that fails is never tried again: what it covered is not published."""

    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)
        os.mkdir(self.target)

    def check(self, codes, named, failing, *options, error="EIO"):
        write(f"{self.target}/{named}", b"the old version")
        before, log = under_strace(self, f"inject={failing}:error={error}")
        result = self.fgsync(*options, self.source, self.target, before=before)
        self.assertIn(result.code, codes, result.text())
        self.assertRegex(result.text(), rf"(?m)^fgsync: \S*{named}: .*{os.strerror(getattr(errno, error))}")
        with open(f"{self.target}/{named}", "rb") as file:
            self.assertEqual(b"the old version", file.read())
        failed = [call for call in calls_of(log) if call.name in failing.split(",") and call.result < 0]
        self.assertGreaterEqual(len(failed), 1)
        return failed

    def test_of_a_large_file(self):
        write_large(f"{self.source}/large", 20 * MIB)
        self.check((11, 23), "large", "fsync,fdatasync")

    def test_of_a_batch(self):
        for number in range(10):
            write(f"{self.source}/small{number}", b"new")
        self.assertEqual(1, len(self.check((11,), "small3", "syncfs")))
        self.assertEqual(["small3"], [name for name in os.listdir(self.target) if name != ".fgsync"])

    def test_of_a_small_file_with_full(self):
        write(f"{self.source}/small", b"new")
        failed = self.check((23,), "small", "fsync", "--durability=full")
        self.assertEqual(1, len([call for call in failed if "/staging-" in call.path and "journal" not in call.path]))

    def test_a_full_disk_that_only_a_sync_notices(self):
        write(f"{self.source}/small", b"new")
        self.check((11,), "small", "syncfs", error="ENOSPC")

    def test_of_everything(self):
        """Of a disk on which no sync succeeds nothing may be said to be there."""
        for directory in ("a", "b"):
            os.mkdir(f"{self.source}/{directory}")
        write(f"{self.source}/a/empty")
        write_large(f"{self.source}/a/medium", MIB, seed=3)
        write_large(f"{self.source}/b/large", 64 * MIB)
        write(f"{self.source}/old", b"new")
        self.check((11,), "old", "fsync,fdatasync,syncfs")

    def test_of_the_last_flush(self):
        write_large(f"{self.source}/large", 20 * MIB)  # has an fsync of its own: the only flush is the last
        before, _ = under_strace(self, "inject=syncfs:error=EIO")
        self.expect(11, self.fgsync(self.source, self.target, before=before))


@needs_strace
class ReadBack(Case):
    """--verify=readback: the disk loses something between the sync and the reading."""

    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)
        os.mkdir(self.target)

    def check_spoilt(self, size):
        """The reading begins with fadvise64, which is held up while the test changes a byte."""
        write_large(f"{self.source}/file", size)
        write(f"{self.source}/other", b"other")
        write(f"{self.target}/file", b"the old version")
        before, _ = under_strace(self, "inject=fadvise64:delay_enter=2000000", calls=("fadvise64",))
        run = self.start("--verify=readback", "--json", self.source, self.target, before=before)
        while run.process.poll() is None:
            self.spoil(size)
        result = self.expect(40, run.wait())
        self.assertRegex(result.text(), r"(?m)^fgsync: \S*/file: reading back: bytes \d+ to \d+ differ")
        self.assertEqual({"checksum_mismatch"}, {error["code"] for error in result.json()["errors"]})
        with open(f"{self.target}/file", "rb") as file:
            self.assertEqual(b"the old version", file.read())
        with open(f"{self.target}/other", "rb") as file:
            self.assertEqual(b"other", file.read())

    def spoil(self, size):
        """Changes the last byte of the staged file once it is written."""
        for root, _, names in os.walk(f"{self.target}/.fgsync"):
            for path in (os.path.join(root, name) for name in names if name.isdigit()):
                try:
                    with open(path, "r+b") as file:
                        if os.fstat(file.fileno()).st_size != size:
                            continue
                        file.seek(size - 1)
                        if file.read(1) != b"\0":
                            file.seek(size - 1)
                            file.write(b"#")
                except FileNotFoundError:
                    pass

    def test_a_small_file_that_is_not_what_arrived_is_not_published(self):
        self.check_spoilt(5000)

    def test_nor_is_a_large_one(self):
        self.check_spoilt(20 * MIB + 3)


class ReadBackCounts(Case):
    def test_what_is_read_back_is_counted_as_verified(self):
        source = self.path("source")
        os.mkdir(source)
        write_large(f"{source}/large", 20 * MIB + 3)
        for number in range(30):
            write(f"{source}/small{number}", b"s" * 1000 * number)
        write(f"{source}/unreadable", b"mode 0", 0)
        total = sum(entry.stat().st_size for entry in os.scandir(source))
        for options, times in (((), 1), (("--verify=readback",), 2), (("--verify=readback", "--durability=full"), 2)):
            with self.subTest(options=options):
                target = self.path("target" + str(len(options)))
                report = self.expect(0, self.fgsync(*options, "--json", source, target)).json()
                self.assertEqual(times * total, report["stages"]["verify"]["bytes"])
                assert_replica(self, source, target)


if __name__ == "__main__":
    main()
