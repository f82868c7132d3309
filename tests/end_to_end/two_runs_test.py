"""Two runs into one target: one after the other, or the second refused; never one through the other."""
import os
import signal
import subprocess

from ssh_server import SshCase, each_way
from support import MIB, by_scale, main, wait_until
from trees import (assert_no_state, assert_replica, has_journaled_chunks, has_staged_data, names_in, sha256, write,
                   write_large)

SLOW = "--bwlimit=4M"  # 16 MiB take 4 s
WAITING = "note: waiting for another run into "


class TwoRuns(SshCase):
    def setUp(self):
        super().setUp()
        self.first, self.second = self.path("first"), self.path("second")
        os.mkdir(self.first)
        os.mkdir(self.second)
        write_large(f"{self.first}/large", 16 * MIB)
        write(f"{self.first}/of-first", b"1")
        write_large(f"{self.second}/large", 2 * MIB, seed=2)
        write(f"{self.second}/of-second", b"2")

    def start_first(self, target):
        run = self.start(SLOW, self.first, target)
        wait_until(lambda: has_staged_data(target), "the first run stages data")
        return run

    @each_way()
    def test_the_second_waits_says_so_and_then_does_its_work(self, way):
        target = self.path("target-" + way)
        first = self.start_first(target)
        # Its own patience is shorter than the wait.
        second = self.start_way(way, self.second, target, "--timeout=2s")
        wait_until(lambda: WAITING in second.said(), "the second says that it waits")
        self.assertIsNone(first.process.poll())
        self.assertFalse(os.path.exists(f"{target}/of-second"))
        self.expect(0, first.wait())
        result = self.expect(0, second.wait())
        self.assertEqual(1, result.text().count(WAITING + target), result.text())
        self.assertTrue(os.path.exists(f"{target}/of-first"))
        with open(f"{target}/large", "rb") as file, open(f"{self.second}/large", "rb") as wanted:
            self.assertEqual(wanted.read(), file.read())
        assert_no_state(self, target)

    @each_way()
    def test_with_lock_the_second_ends_41_and_the_first_is_undisturbed(self, way):
        target = self.path("target-" + way)
        first = self.start_first(target)
        result = self.expect(41, self.go(way, self.second, target, "--lock", "--json", seconds=20))
        self.assertIn(f"{target}/.fgsync: another run holds the lock (pid {first.pid}, user ", result.text())
        self.assertEqual("locked", result.json()["errors"][0]["code"])
        self.assertIsNone(first.process.poll())
        self.expect(0, first.wait())
        assert_replica(self, self.first, target)

    @each_way()
    def test_an_interrupt_ends_the_wait_at_once(self, way):
        target = self.path("target-" + way)
        first = self.start_first(target)
        second = self.start_way(way, self.second, target)
        wait_until(lambda: WAITING in second.said(), "the second says that it waits")
        second.signal(signal.SIGINT)
        self.expect(20, second.wait(3))
        self.assertIsNone(first.process.poll())
        self.expect(0, first.wait())
        assert_replica(self, self.first, target)

    def test_the_lock_of_a_dead_run_holds_nobody_up(self):
        target = self.path("target")
        first = self.start_first(target)
        second = self.start(self.second, target)
        wait_until(lambda: WAITING in second.said(), "the second says that it waits")
        first.signal(signal.SIGKILL)
        self.expect(0, second.wait(20))
        self.expect(0, self.fgsync("--lock", self.second, target))

    def test_one_that_has_nothing_to_do_yet_waits_for_what_the_first_leaves(self):
        target = self.path("target")
        self.expect(0, self.fgsync(self.second, target))
        first = self.start_first(target)
        self.assertIn(WAITING, self.expect(0, self.fgsync(self.second, target)).text())
        self.expect(0, first.wait())
        with open(f"{target}/large", "rb") as file, open(f"{self.second}/large", "rb") as wanted:
            self.assertEqual(wanted.read(), file.read())

    def test_a_dry_run_does_not_wait_either(self):
        target = self.path("target")
        first = self.start_first(target)
        result = self.expect(0, self.fgsync("-n", "--lock", self.second, target, seconds=10))
        self.assertIn("of-second", result.out.decode())
        self.expect(0, first.wait())

    @each_way()
    def test_one_of_two_is_killed_and_a_third_starts_at_once(self, way):
        target = self.path("target-" + way)
        first = self.start_first(target)
        second = self.start_way(way, self.second, target)
        wait_until(lambda: WAITING in second.said(), "the second says that it waits")
        first.signal(signal.SIGKILL)
        third = self.start_way(way, self.first, target)
        for run in (second, third):
            self.expect(0, run.wait())
        self.assertIn(sha256(f"{target}/large"), (sha256(f"{self.first}/large"), sha256(f"{self.second}/large")))
        self.assertEqual(["large", "of-first", "of-second"], names_in(target))
        assert_no_state(self, target)

    @each_way()
    def test_two_that_go_on_with_one_file_share_the_work(self, way):
        target, chunks = self.path("target-" + way), "--chunk-size=256K"
        interrupted = self.start(SLOW, chunks, self.first, target)
        wait_until(lambda: has_journaled_chunks(target), "chunks are journaled")
        interrupted.signal(signal.SIGKILL)
        interrupted.wait()
        runs = [self.start_way(way, self.first, target, chunks, "--json") for _ in range(2)]
        parts = [self.expect(0, run.wait()).json()["bytes"] for run in runs]
        # The small file may have come before.
        self.assertIn(16 * MIB + 1 - sum(part["sent"] + part["resumed"] for part in parts), (0, 1))
        self.assertGreater(sum(part["resumed"] for part in parts), 0)
        assert_replica(self, self.first, target)

    def test_runs_from_two_sources_at_once_leave_each_file_whole(self):
        count = 60
        for source, contents in ((self.first, b"A"), (self.second, b"B")):
            for number in range(count):
                write(f"{source}/f{number}", contents * 100_000)
        for round_number in range(by_scale(2, 5, 20)):
            target = self.path(f"together{round_number}")
            runs = [self.start(source, target) for source in (self.first, self.second, self.first)]
            for run in runs:
                self.expect(0, run.wait())
            kinds = set()
            for number in range(count):
                with open(f"{target}/f{number}", "rb") as file:
                    contents = file.read()
                self.assertIn(contents, (b"A" * 100_000, b"B" * 100_000))
                kinds.add(contents[:1])
            self.assertEqual(1, len(kinds))  # one run after the other
            assert_no_state(self, target)


class LockFile(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target, self.lock = self.path("source"), self.path("target"), self.path("lock")
        os.mkdir(self.source)
        write(f"{self.source}/file", b"f")

    def is_held(self):
        """Whether flock(1) cannot have it. It makes the file."""
        return subprocess.run(["flock", "-n", self.lock, "true"], check=False).returncode != 0

    def test_a_file_that_flock_holds_refuses_the_run(self):
        holder = subprocess.Popen(["flock", "-x", self.lock, "sleep", "1000"], start_new_session=True)
        self.addCleanup(holder.wait)
        self.addCleanup(os.killpg, holder.pid, signal.SIGKILL)
        wait_until(self.is_held, "it is held")
        result = self.expect(41, self.fgsync(f"--lock={self.lock}", self.source, self.target))
        self.assertRegex(result.text(), rf"{self.lock}: another run holds the lock "
                                        rf"\(pid {holder.pid}, user \w+, flock\)")
        self.assertFalse(os.path.exists(self.target))

    def test_a_free_one_is_held_while_the_run_lasts(self):
        write_large(f"{self.source}/large", 8 * MIB)
        run = self.start(SLOW, f"--lock={self.lock}", self.source, self.target)
        wait_until(lambda: has_staged_data(self.target), "data is staged")
        self.assertTrue(self.is_held())
        self.expect(0, run.wait())
        self.assertFalse(self.is_held())
        assert_replica(self, self.source, self.target)

    def test_one_that_cannot_be_made_is_an_error(self):
        self.expect(3, self.fgsync(f"--lock={self.path('none/lock')}", self.source, self.target))


if __name__ == "__main__":
    main()
