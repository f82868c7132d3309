"""The same command after an interruption: only what is missing is sent, whatever has become of the state meanwhile."""
import hashlib
import json
import os
import random
import shutil
import signal
import threading
import time

from mounts import AS_USER, let_users_run
from network import NetworkCase
from ssh_server import SshCase, each_way
from support import GIB, MIB, USER_ID, by_scale, children_of, is_alive, main, needs_root, wait_until
from trees import (assert_no_state, assert_replica, has_journaled_chunks, journals, make_small_files,
                   rsync_differences, staged_files, write, write_large)

CHUNKS = "--chunk-size=256K"
SLOW = "--bwlimit=16M"
SIZE = 24 * MIB


class ResumeCase(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)
        write_large(f"{self.source}/large", SIZE)
        write(f"{self.source}/small", b"small")
        self.target = self.path("target")

    def interrupt(self, way="local", number=signal.SIGKILL, source=None):
        """A run that is ended when some of the large file is journaled."""
        source = source or self.source
        run = self.start_way(way, source, self.target, CHUNKS, SLOW)
        wait_until(lambda: has_journaled_chunks(self.target), "chunks are journaled")
        processes = [run.pid, *children_of(run.pid), *self.far_pids()]
        run.signal(number)
        run.wait()
        self.wait_gone(processes)

    def finish(self, *options, way="local", source=None):
        """The same command again; (bytes of the report, what it said)."""
        source = source or self.source
        result = self.expect(0, self.go(way, source, self.target, CHUNKS, "--json", *options))
        assert_replica(self, source, self.target)
        return result.json()["bytes"], result.text()

    def assert_resumed(self, sent):
        self.assertGreater(sent["resumed"], 0)
        self.assertEqual(sent["total"], sent["sent"] + sent["resumed"] + sent["unchanged"])

    def assert_afresh(self, sent):
        self.assertEqual(0, sent["resumed"])
        self.assertGreaterEqual(sent["sent"], SIZE)


class Resume(ResumeCase):
    @each_way()
    def test_what_is_there_is_not_sent_again(self, way):
        for number in (signal.SIGKILL, signal.SIGTERM):
            self.interrupt(way, number)
            self.assert_resumed(self.finish(way=way)[0])
            shutil.rmtree(self.target)

    def test_one_run_after_the_other_adds_up(self):
        resumed = 0
        for _ in range(3):
            self.interrupt()
        sent, _ = self.finish()
        self.assertGreater(sent["resumed"], resumed)
        self.assertLess(sent["sent"], SIZE)

    def test_a_source_rewritten_in_between_starts_afresh(self):
        """In place, at the same size, with the old mtime put back: only the ctime tells."""
        self.interrupt()
        path = f"{self.source}/large"
        before = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(100)
            file.write(b"another version")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assert_afresh(self.finish()[0])

    def test_a_source_replaced_in_between_starts_afresh(self):
        self.interrupt()
        path = f"{self.source}/large"
        before = os.stat(path)
        write_large(f"{self.source}/other", SIZE, seed=9)
        os.rename(f"{self.source}/other", path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assert_afresh(self.finish()[0])

    def test_chunks_of_another_size_start_afresh(self):
        self.interrupt()
        self.assert_afresh(self.finish("--chunk-size=512K")[0])

    def test_no_resume_starts_afresh_and_keeps_nothing(self):
        self.interrupt()
        self.assert_afresh(self.finish("--no-resume")[0])
        shutil.rmtree(self.target)
        run = self.start(self.source, self.target, CHUNKS, SLOW, "--no-resume")
        wait_until(lambda: staged_files(self.target), "data is staged")
        run.signal(signal.SIGTERM)
        self.expect(20, run.wait())
        assert_no_state(self, self.target)

    def test_state_of_another_source_is_kept_for_it(self):
        self.interrupt()
        other = self.path("other")
        os.mkdir(other)
        write(f"{other}/more", b"more")
        result = self.expect(0, self.fgsync(other, self.target))
        self.assertIn("interrupted run from another source", result.text())
        self.assertEqual(1, len(journals(self.target)))
        write(f"{self.source}/more", b"more")
        os.utime(f"{self.source}/more", ns=(0, os.stat(f"{self.target}/more").st_mtime_ns))
        self.assert_resumed(self.finish()[0])

    def test_old_state_of_another_source_is_removed(self):
        self.interrupt()
        long_ago = time.time_ns() - 8 * 86_400 * 10**9
        os.utime(journals(self.target)[0], ns=(long_ago, long_ago))
        other = self.path("other")
        os.mkdir(other)
        write(f"{other}/more", b"more")
        self.expect(0, self.fgsync(other, self.target))
        self.assertEqual([], staged_files(self.target))


class Damage(ResumeCase):
    """Whatever happens to the state costs at most the state: one warning, then a correct run."""

    def check(self, damage, resumes=None):
        self.interrupt()
        damage(journals(self.target)[0])
        sent, said = self.finish()
        self.assertLessEqual(sum("journal" in line for line in said.splitlines()), 1, said)
        if resumes is not None:
            self.assertEqual(resumes, sent["resumed"] > 0, said)
        shutil.rmtree(self.target)
        return said

    def test_damaged_bytes(self):
        def flip(at):
            def damage(path):
                with open(path, "r+b") as file:
                    file.seek(at % os.path.getsize(path))
                    byte = file.read(1)
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([byte[0] ^ 0x20]))

            return damage

        self.check(flip(3), resumes=False)  # the magic
        self.check(flip(30), resumes=False)  # the transfer
        self.check(flip(80), resumes=False)  # the first record
        self.assertIn("damage", self.check(flip(-5)))  # the last record

    def test_cuts(self):
        for size, resumes in ((0, False), (10, False), (64, False), (200, False), (-7, None)):
            self.check(lambda path: os.truncate(path, size if size >= 0 else os.path.getsize(path) + size), resumes)

    def test_zeros_and_noise(self):
        def fill(make):
            def damage(path):
                size = os.path.getsize(path)
                with open(path, "r+b") as file:
                    file.write(make(size))

            return damage

        self.check(fill(bytes), resumes=False)
        self.check(fill(random.Random(5).randbytes), resumes=False)

        def noise_behind(path):
            with open(path, "ab") as file:
                file.write(random.Random(6).randbytes(5000))

        self.check(noise_behind, resumes=True)

    def test_a_newer_format(self):
        def damage(path):
            with open(path, "r+b") as file:
                file.seek(8)
                file.write(b"\x02")

        self.assertIn("format 2", self.check(damage, resumes=False))

    def test_the_journal_of_another_job(self):
        """Whole, and at its place, but about other sources."""
        other, target = self.path("other"), self.target
        os.mkdir(other)
        write_large(f"{other}/large", SIZE, seed=9)
        self.target = self.path("other-target")
        self.interrupt(source=other)
        (of_other,), self.target = journals(self.target), target
        self.interrupt()
        shutil.copy(of_other, journals(target)[0])
        result = self.expect(0, self.fgsync(CHUNKS, "--json", self.source, target))
        self.assert_afresh(result.json()["bytes"])
        self.assertEqual(1, result.text().count("interrupted run from another source"), result.text())
        self.assertEqual("", rsync_differences(self.source, target))

    @needs_root
    def test_one_that_may_not_be_read(self):
        program = let_users_run(self)
        for path in (self.source, f"{self.source}/large", f"{self.source}/small"):
            os.chown(path, USER_ID, USER_ID)
        os.mkdir(self.target)
        os.chown(self.target, USER_ID, USER_ID)
        command = (CHUNKS, self.source, self.target)
        run = self.start(SLOW, *command, before=AS_USER, program=program)
        wait_until(lambda: has_journaled_chunks(self.target), "chunks are journaled")
        run.signal(signal.SIGKILL)
        run.wait()
        os.chmod(journals(self.target)[0], 0)
        result = self.expect(0, self.fgsync("--json", *command, before=AS_USER, program=program))
        assert_replica(self, self.source, self.target)
        self.assert_afresh(result.json()["bytes"])
        self.assertEqual(1, sum("journal" in line for line in result.text().splitlines()), result.text())

    def test_other_things_in_its_place(self):
        def directory(path):
            os.unlink(path)
            os.mkdir(path)

        def symlink(path):
            os.rename(path, path + ".real")
            os.symlink("journal.real", path)

        def fifo(path):
            os.unlink(path)
            os.mkfifo(path)

        for damage in (directory, symlink, fifo, os.unlink):
            self.check(damage, resumes=False)

    def test_bytes_that_are_not_what_the_journal_says(self):
        """Put there later than the journal was written, so they are read again before they are believed."""

        def damage(path):
            staged = os.path.join(os.path.dirname(path), "0")
            with open(staged, "r+b") as file:
                file.write(b"something else")
            later = os.stat(path).st_mtime_ns + 3600 * 10**9
            os.utime(staged, ns=(later, later))

        self.check(damage)

    def test_state_that_was_copied(self):
        """As by a restored backup: other inodes, so the bytes are read again, and used."""

        def damage(path):
            state = os.path.dirname(os.path.dirname(path))
            shutil.copytree(state, state + ".copy")
            shutil.rmtree(state)
            os.rename(state + ".copy", state)

        self.check(damage, resumes=True)

    def test_staged_files_that_are_gone_or_cut(self):
        def gone(path):
            os.unlink(os.path.join(os.path.dirname(path), "0"))

        def cut(path):
            os.truncate(os.path.join(os.path.dirname(path), "0"), 1000)

        self.check(gone, resumes=False)
        self.check(cut, resumes=False)


class Proportion(ResumeCase):
    def test_a_run_killed_near_its_end_sends_the_rest(self):
        size = by_scale(64 * MIB, 256 * MIB, 4 * GIB)
        source = self.path("proportion")
        os.mkdir(source)
        write_large(f"{source}/large", size)
        # Ten seconds, and a line of progress each second.
        run = self.start("--progress=json", f"--bwlimit={size // 10}", CHUNKS, source, self.target)
        wait_until(lambda: self.done(run) > 0.85 * size, "nine tenths have been sent", 60)
        run.signal(signal.SIGKILL)
        run.wait()
        sent, _ = self.finish(source=source)
        # What was left, and what had come in the last tenth of a second and in the buffers.
        self.assertLess(sent["sent"], 0.2 * size)
        self.assertEqual(size, sent["sent"] + sent["resumed"])

    @staticmethod
    def done(run):
        lines = run.said().splitlines()
        return max((json.loads(line).get("bytes_done", 0) for line in lines if line.startswith("{")), default=0)


@needs_root
class Kills(NetworkCase):
    """kill -9 of either side or both at random moments; a reader hashes what stands under the final names all the
    time."""

    KILLS_A_ROUND = 4

    def setUp(self):
        super().setUp()
        self.random = random.Random(int(os.environ.get("FGSYNC_TEST_SEED", "20")))
        self.source = self.path("source")
        os.mkdir(self.source)
        for number, size in enumerate((24 * MIB, 17 * MIB, 9 * MIB + 5)):
            write_large(f"{self.source}/large{number}", size, seed=number)
        make_small_files(self.source, 300)
        self.versions = {path: self.digest(f"{self.source}/{path}") for path in self.files(self.source)}
        self.total = sum(os.path.getsize(f"{self.source}/{path}") for path in self.versions)

    @staticmethod
    def digest(path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).digest()

    @staticmethod
    def files(root):
        for directory, folders, names in os.walk(root):
            if ".fgsync" in folders:
                folders.remove(".fgsync")
            for name in names:
                yield os.path.relpath(os.path.join(directory, name), root)

    def read_all_the_time(self, target, stop, wrong):
        while not stop.is_set():
            for path in list(self.files(target)):
                if self.digest(f"{target}/{path}") != self.versions.get(path):
                    wrong.append(path)

    def one_round(self, number):
        target = self.path(f"target{number}")
        stop, wrong = threading.Event(), []
        reader = threading.Thread(target=self.read_all_the_time, args=(target, stop, wrong))
        reader.start()
        before = self.bytes_over("near", "near0")
        try:
            for _ in range(self.KILLS_A_ROUND):
                self.kill_one_run(target)
            run = self.start_push(self.source, target, CHUNKS, "--json")
            report = self.expect(0, run.wait()).json()
        finally:
            stop.set()
            reader.join()
        self.assertEqual([], wrong)
        assert_replica(self, self.source, target)
        sent = self.bytes_over("near", "near0") - before
        self.assertLess(sent, 1.25 * self.total, report["bytes"])
        shutil.rmtree(target)

    def kill_one_run(self, target):
        started = len(self.far_pids())
        run = self.start_push(self.source, target, CHUNKS, SLOW, "--retry-for=0")
        wait_until(lambda: len(self.far_pids()) > started, "the far side starts")
        far = self.far_pids()[-1]
        # The moment is the point: any of them is as good.
        time.sleep(self.random.uniform(0, 1.2))
        victims = self.random.choice(([run.pid], [far], [run.pid, far]))
        for pid in victims:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        run.wait()
        self.wait_gone([far], 10)

    def test_no_kill_tears_anything_or_costs_much(self):
        rounds = by_scale(1, 4, 50)
        print(f"{rounds * self.KILLS_A_ROUND} kills, FGSYNC_TEST_SEED={os.environ.get('FGSYNC_TEST_SEED', '20')}")
        for number in range(rounds):
            self.one_round(number)


if __name__ == "__main__":
    main()
