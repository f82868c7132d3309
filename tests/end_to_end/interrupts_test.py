"""Signals and sudden deaths of either side: known exit codes, nothing left running, nothing half-written in place."""
import os
import re
import shutil
import signal
import time

from ssh_server import REMOTE_WAYS, SshCase, each_way
from support import MIB, children_of, main, wait_until
from trees import (assert_no_state, assert_only_resumable_state, assert_replica, has_journaled_chunks,
                   has_staged_data, listing, staged_files, write, write_large)

PROMPT = 5  # seconds within which all must have ended
SLOW = "--bwlimit=2M"  # 32 MiB take 16 s
CHUNKS = "--chunk-size=256K"  # the same for every run: chunks of another size are not gone on with


def catches(pid, number):
    with open(f"/proc/{pid}/status") as file:
        mask = next(line.split()[1] for line in file if line.startswith("SigCgt:"))
    return bool(int(mask, 16) & 1 << (number - 1))


class Interrupts(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)
        write_large(f"{self.source}/large", 32 * MIB)
        for number in range(20):
            write(f"{self.source}/small{number}", b"new")

    def start_midway(self, way, *options):
        """A run that has written some data to a target with an older version of the file, and all its processes."""
        self.target = self.path("target-" + way)
        os.mkdir(self.target)
        write(f"{self.target}/large", b"the old version")
        run = self.start_way(way, self.source, self.target, SLOW, CHUNKS, *options)
        wait_until(lambda: has_journaled_chunks(self.target), "data is journaled")
        self.assertIsNone(run.process.poll(), run.said())
        far = [] if way == "local" else [self.far_pids()[-1]]
        self.processes = [run.pid, *children_of(run.pid), *far]
        return run

    def assert_old_version(self):
        with open(f"{self.target}/large", "rb") as file:
            self.assertEqual(b"the old version", file.read())
        for name in os.listdir(self.target):  # the small files are whole or absent
            if name.startswith("small"):
                with open(f"{self.target}/{name}", "rb") as file:
                    self.assertEqual(b"new", file.read())

    def assert_ends(self, run, code):
        result = self.expect(code, run.wait(PROMPT))
        self.wait_gone(self.processes, PROMPT)
        self.assert_old_version()
        return result

    def assert_next_run_completes(self, way):
        report = self.expect(0, self.go(way, self.source, self.target, CHUNKS, "--json")).json()
        assert_replica(self, self.source, self.target)
        self.assertGreater(report["bytes"]["resumed"], 0)
        self.assertEqual(report["bytes"]["total"],
                         sum(report["bytes"][part] for part in ("sent", "resumed", "unchanged")))

    def check_signal(self, way, number):
        run = self.start_midway(way)
        run.signal(number)
        self.assert_ends(run, 20)
        assert_only_resumable_state(self, self.target)
        self.assert_next_run_completes(way)

    @each_way()
    def test_an_interrupt_ends_both_sides(self, way):
        self.check_signal(way, signal.SIGINT)

    @each_way()
    def test_a_request_to_terminate_ends_both_sides(self, way):
        self.check_signal(way, signal.SIGTERM)

    @each_way()
    def test_a_closed_terminal_ends_both_sides(self, way):
        self.check_signal(way, signal.SIGHUP)

    @each_way()
    def test_a_run_under_nohup_outlives_its_terminal(self, way):
        target = self.path("target-" + way)
        run = self.start_way(way, self.source, target, "--bwlimit=16M", before=["nohup"])
        wait_until(lambda: has_staged_data(target), "data is staged")
        run.signal(signal.SIGHUP)
        self.expect(0, run.wait())
        assert_replica(self, self.source, target)

    @each_way(*REMOTE_WAYS)
    def test_a_signal_to_the_whole_group_reaches_ssh_too_and_ends_the_same(self, way):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                run = self.start_midway(way)
                os.killpg(run.pid, number)
                self.assert_ends(run, 20)
                assert_only_resumable_state(self, self.target)
                shutil.rmtree(self.target)

    @each_way()
    def test_nothing_is_written_once_an_interrupted_run_has_ended(self, way):
        run = self.start_midway(way)
        run.signal(signal.SIGINT)
        self.assert_ends(run, 20)
        left = listing(self.target, with_state=True)
        time.sleep(2)  # as long as it is looked at
        self.assertEqual(left, listing(self.target, with_state=True))

    @each_way(*REMOTE_WAYS)
    def test_a_second_interrupt_ends_a_run_whose_far_side_does_not_answer_at_once(self, way):
        run = self.start_midway(way)
        far = self.far_pids()[-1]
        os.kill(far, signal.SIGSTOP)
        try:
            run.signal(signal.SIGINT)
            wait_until(lambda: not catches(run.pid, signal.SIGINT), "the first is met")
            run.signal(signal.SIGINT)
            self.assertEqual(-signal.SIGINT, run.wait(1).code)
        finally:
            os.kill(far, signal.SIGCONT)
        self.wait_gone(self.processes, PROMPT)
        self.assert_old_version()

    @each_way(*REMOTE_WAYS)
    def test_an_interrupt_while_ssh_connects_ends_the_run(self, way):
        shell = self.script("hanging-shell", "exec sleep 1000\n")
        remote, local = "near:/nowhere", self.path("target")
        places = [self.source, remote] if way == "push" else [remote, local]
        run = self.start("-e", shell, *places)
        sleeping = wait_until(lambda: children_of(run.pid), "the remote shell starts")
        run.signal(signal.SIGINT)
        self.expect(20, run.wait(PROMPT))
        self.wait_gone(sleeping, PROMPT)

    @each_way(*REMOTE_WAYS)
    def test_a_killed_initiator_takes_everything_with_it(self, way):
        run = self.start_midway(way)
        run.signal(signal.SIGKILL)
        self.assertEqual(-signal.SIGKILL, run.wait(PROMPT).code)
        self.wait_gone(self.processes, PROMPT)
        self.assert_old_version()
        if way == "push":  # the receiver lives to tidy up
            assert_only_resumable_state(self, self.target)
        self.assert_next_run_completes(way)

    @each_way(*REMOTE_WAYS)
    def test_a_killed_far_side_is_noticed(self, way):
        run = self.start_midway(way, "--retry-for=0")
        os.kill(self.far_pids()[-1], signal.SIGKILL)
        result = self.assert_ends(run, 10)
        errors = re.findall(r"(?m)^fgsync: (?!note: ).*", result.text())
        self.assertEqual(1, len(errors), result.text())
        self.assertIn("near", errors[0])
        if way == "pull":
            assert_only_resumable_state(self, self.target)
        self.assert_next_run_completes(way)

    @each_way(*REMOTE_WAYS)
    def test_a_far_side_that_is_told_to_end_is_noticed(self, way):
        run = self.start_midway(way)
        os.kill(self.far_pids()[-1], signal.SIGTERM)
        result = run.wait(PROMPT)
        self.assertIn(result.code, (10, 20), result.text())
        self.wait_gone(self.processes, PROMPT)
        self.assert_old_version()
        assert_only_resumable_state(self, self.target)

    @each_way()
    def test_what_a_killed_receiver_left_goes_with_the_next_run(self, way):
        run = self.start_midway(way, "--retry-for=0")
        receiver = self.far_pids()[-1] if way == "push" else run.pid
        os.kill(receiver, signal.SIGKILL)
        run.wait(PROMPT)
        self.wait_gone(self.processes, PROMPT)
        self.assertNotEqual([], staged_files(self.target))
        self.assert_old_version()
        self.assert_next_run_completes(way)

    def test_nobody_else_may_look_into_the_staging(self):
        self.start_midway("local")
        for directory, _, _ in os.walk(f"{self.target}/.fgsync"):
            self.assertEqual(0o700, os.stat(directory).st_mode & 0o7777)


if __name__ == "__main__":
    main()
