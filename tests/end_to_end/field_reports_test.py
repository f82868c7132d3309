"""What users of other replication programs have met and reported, played as it happened to them."""
import os
import random
import signal
import subprocess
import threading
import time

from mounts import mount, run
from network import NetworkCase
from ssh_server import SshCase, each_way
from support import MIB, by_scale, main, needs_root, wait_until
from tracing import RENAMES, needs_strace, under_strace
from trees import (assert_no_state, assert_replica, has_journaled_chunks, names_in, sha256, staged_files, write,
                   write_large)

CHUNKS = "--chunk-size=256K"
SEED = int(os.environ.get("FGSYNC_TEST_SEED", random.SystemRandom().randrange(1 << 32)))


class Reader:
    """Hashes the file over and over, and keeps each sum that it has met."""

    def __init__(self, path):
        self.path, self.met, self.over = path, set(), threading.Event()
        self.thread = threading.Thread(target=self.read)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def read(self):
        while not self.over.is_set():
            self.met.add(sha256(self.path))


class ReplacedCheckpoint(SshCase):
    """A program was killed while it saved over the last good checkpoint: the new one was cut off under the final
    name, and the old one was gone."""

    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)
        self.new = sha256(write_large(f"{self.source}/m.ckpt", by_scale(12 * MIB, 24 * MIB, 200 * MIB), seed=2))

    def make_target(self, name):
        target = self.path(name)
        os.mkdir(target)
        self.old = sha256(write_large(f"{target}/m.ckpt", 8 * MIB, seed=1))
        return target

    def kill_one(self, way, target, victims):
        known = len(self.far_pids())
        run = self.start_way(way, self.source, target, CHUNKS, "--bwlimit=32M", "--retry-for=0")
        if way != "local":
            wait_until(lambda: len(self.far_pids()) > known, "the far side starts")
        time.sleep(self.moments.uniform(0, 0.8))  # the moment of the kill is what varies
        both = {"initiator": run.pid, "far": self.far_pids()[-1] if way != "local" else run.pid}
        for victim in victims:
            try:
                os.kill(both[victim], signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.wait()
        self.wait_gone(both.values(), 10)

    @each_way()
    def test_kills_leave_the_old_checkpoint_or_the_new_one(self, way):
        print(f"seed {SEED}", flush=True)
        self.moments = random.Random(SEED)
        target = self.make_target("target-" + way)
        with Reader(f"{target}/m.ckpt") as reader:
            for number in range(by_scale(3, 6, 30)):
                self.kill_one(way, target, (("initiator",), ("far",), ("initiator", "far"))[number % 3])
            self.expect(0, self.go(way, self.source, target, CHUNKS))
            wait_until(lambda: self.new in reader.met, "the reader sees the new one")
        self.assertEqual(set(), reader.met - {self.old, self.new})
        assert_replica(self, self.source, target)

    @needs_strace
    def test_a_kill_at_any_rename_leaves_the_old_checkpoint_or_the_new_one(self):
        target = self.make_target("target")
        for number in range(1, 20):
            before, _ = under_strace(self, f"inject={','.join(RENAMES)}:signal=KILL:when={number}")
            run = self.start(self.source, target, before=before)
            code = run.wait().code
            self.assertIn(sha256(f"{target}/m.ckpt"), (self.old, self.new))
            if code == 0:
                break
            self.assertEqual(-signal.SIGKILL, code, run.said())
        self.assertGreater(number, 1)
        self.expect(0, self.fgsync(self.source, target))
        assert_replica(self, self.source, target)


@needs_root
class RestartedTransfer(NetworkCase):
    """Connections were reset and the transfer went on at an old offset: it ended well, and from there on the file was
    not what had been sent."""

    SIZE = by_scale(24 * MIB, 48 * MIB, 200 * MIB)
    CUTS = by_scale(3, 6, 20)

    def cut_one(self, target):
        """One run over streams that are all reset after a random number of bytes, or whose end is killed."""
        # All of them together do not complete the file, and would cost more than is allowed if each began anew.
        limit = self.random.uniform(0.6, 0.75) * self.SIZE / self.CUTS
        before = self.bytes_over("near", "near0")
        known = len(self.far_pids())
        run = self.start_push(self.source, target, CHUNKS, "--streams=8", "--bwlimit=8M", "--retry-for=0")
        wait_until(lambda: len(self.far_pids()) > known and
                   (self.bytes_over("near", "near0") - before > limit or run.process.poll() is not None),
                   "as many bytes are under way", 30)
        far = self.far_pids()[-1]
        if self.random.randrange(4) == 0:
            os.kill(self.random.choice((run.pid, far)), signal.SIGKILL)
            run.wait()
        else:
            self.refuse("tcp sport 0-65535")
            self.assertIn(run.wait().code, (10, 255), run.said())
            self.heal()
        self.wait_gone([far], 10)
        self.assertEqual([], names_in(target) if os.path.exists(target) else [])

    def test_streams_that_are_reset_at_any_byte_cost_little_and_no_bytes(self):
        print(f"seed {SEED}", flush=True)
        self.random = random.Random(SEED)
        self.source, target = self.path("source"), self.path("target")
        os.mkdir(self.source)
        write_large(f"{self.source}/large", self.SIZE)
        before = self.bytes_over("near", "near0")
        for _ in range(self.CUTS):
            self.cut_one(target)
        self.expect(0, self.start_push(self.source, target, CHUNKS, "--streams=8").wait())
        assert_replica(self, self.source, target)
        self.assertLess(self.bytes_over("near", "near0") - before, 1.6 * self.SIZE)


class FullSizePartial(SshCase):
    """Space was reserved, or the last bytes came first: half a file had its full size and its final name, and the next
    run took it for whole."""

    @each_way()
    def test_half_a_file_is_nowhere_to_be_taken_for_a_whole_one(self, way):
        source, target = self.path("source-" + way), self.path("target-" + way)
        os.mkdir(source)
        write_large(f"{source}/large", 24 * MIB)
        long_ago = 1_577_836_800 * 10**9
        os.utime(f"{source}/large", ns=(long_ago, long_ago))
        run = self.start_way(way, source, target, CHUNKS, "--streams=8", "--bwlimit=16M", "--retry-for=0")
        wait_until(lambda: has_journaled_chunks(target), "chunks are journaled")
        receiver = self.far_pids()[-1] if way == "push" else run.pid
        os.kill(receiver, signal.SIGKILL)
        run.wait()
        self.wait_gone([receiver])
        self.assertEqual([], names_in(target))
        self.assertNotEqual([], staged_files(target))
        for path in staged_files(target):
            self.assertNotEqual(long_ago, os.stat(path).st_mtime_ns)
        self.expect(0, self.go(way, source, target, CHUNKS))
        assert_replica(self, source, target)


class GrowingLog(SshCase):
    """A log that was written all the time was chased without end, or a short copy of it was taken for good."""

    @each_way()
    def test_a_file_that_never_stops_growing_ends_the_run_and_is_not_published(self, way):
        source, target = self.path("source-" + way), self.path("target-" + way)
        os.mkdir(source)
        os.mkdir(target)
        write_large(f"{source}/log", 16 * MIB)
        write(f"{source}/other", b"other")
        write(f"{target}/log", b"the old version")
        over = threading.Event()

        def grow():
            while not over.wait(0.01):
                with open(f"{source}/log", "ab") as file:
                    file.write(b"x" * 65536)

        writer = threading.Thread(target=grow)
        writer.start()
        try:
            result = self.expect(24, self.go(way, source, target, "--bwlimit=16M", seconds=20))
        finally:
            over.set()
            writer.join()
        self.assertRegex(result.text(), r"(?m)^fgsync: \S*log: ")
        with open(f"{target}/log", "rb") as file:
            self.assertEqual(b"the old version", file.read())
        with open(f"{target}/other", "rb") as file:
            self.assertEqual(b"other", file.read())
        assert_no_state(self, target)
        self.expect(0, self.go(way, source, target))
        assert_replica(self, source, target)


@needs_root
class BadDisk(SshCase):
    """A part of the source could not be read: it was replaced by zeros, and the exit status was 0."""

    def make_source(self):
        """A file system whose image has lost its end, and with it the end of `bad`."""
        good, source, image = self.path("good"), self.path("source"), self.path("source.image")
        os.mkdir(good)
        os.mkdir(source)
        write_large(f"{good}/ok", 8 * MIB)
        write(f"{good}/zz", b"tail")
        bad = write_large(self.path("bad"), 40 * MIB, seed=2)
        with open(image, "wb") as file:
            file.truncate(64 * MIB)
        run("mkfs.ext4", "-q", "-b", "4096", "-O", "^has_journal", "-m", "0", "-d", good, image)
        # Written last, so that its blocks are the last ones.
        run("debugfs", "-w", "-R", f"write {bad} bad", image, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mount(self, "-o", "loop,ro", image, source)
        for name in os.listdir(source):
            os.stat(f"{source}/{name}")  # names and inodes are read while they are there
        os.truncate(image, 32 * MIB)
        with open(f"{source}/bad", "rb") as file, self.assertRaises(OSError):
            file.seek(36 * MIB)
            file.read(4096)
        return source

    @each_way()
    def test_bytes_that_cannot_be_read_are_an_error_and_never_zeros(self, way):
        source = self.path("source")
        if not os.path.exists(source):
            self.make_source()
        target = self.path("target-" + way)
        os.mkdir(target)
        write(f"{target}/bad", b"the old version")
        result = self.expect(23, self.go(way, source, target, "--json", seconds=20))
        self.assertRegex(result.text(), r"(?m)^fgsync: \S*bad: .*Input/output error")
        self.assertEqual(["bad"], [os.path.basename(error["path"]) for error in result.json()["errors"]])
        with open(f"{target}/bad", "rb") as file:
            self.assertEqual(b"the old version", file.read())
        for name in ("ok", "zz"):
            self.assertEqual(sha256(f"{source}/{name}"), sha256(f"{target}/{name}"))
        assert_no_state(self, target)


if __name__ == "__main__":
    main()
