"""Peers and links that fall silent: a known exit code within a bound, on both sides."""
import os
import signal

from network import NetworkCase
from ssh_server import REMOTE_WAYS, SshCase, each_way
from support import MIB, children_of, main, needs_root, wait_until
from trees import assert_only_resumable_state, assert_replica, has_journaled_chunks, write_large

TIMEOUT = 2
BOUND = 15  # seconds for what --timeout=2 is to end
SLOW = "--bwlimit=2M"


class StoppedPeers(SshCase):
    def start_midway(self, way, *options):
        source, self.target = self.path("source-" + way), self.path("target-" + way)
        os.mkdir(source)
        write_large(f"{source}/large", 64 * MIB)
        run = self.start_way(way, source, self.target, SLOW, f"--timeout={TIMEOUT}", *options)
        wait_until(lambda: has_journaled_chunks(self.target), "data is journaled")
        return run

    @each_way(*REMOTE_WAYS)
    def test_a_stopped_far_side_ends_the_run(self, way):
        run = self.start_midway(way)
        far = self.far_pids()[-1]
        os.kill(far, signal.SIGSTOP)
        try:
            result = self.expect(30, run.wait(BOUND))
        finally:
            os.kill(far, signal.SIGCONT)
        self.assertGreaterEqual(result.seconds, TIMEOUT)
        self.assertRegex(result.text(), r"(?m)^fgsync: .*timeout.*near")
        self.wait_gone([far], BOUND)
        assert_only_resumable_state(self, self.target)
        self.expect(0, self.go(way, self.path("source-" + way), self.target))
        assert_replica(self, self.path("source-" + way), self.target)

    @each_way(*REMOTE_WAYS)
    def test_a_stopped_initiator_ends_the_far_side(self, way):
        run = self.start_midway(way, "--retry-for=0")
        far = self.far_pids()[-1]
        run.signal(signal.SIGSTOP)
        try:
            self.wait_gone([far], BOUND)
        finally:
            run.signal(signal.SIGCONT)
        result = run.wait(BOUND)
        self.assertIn(result.code, (10, 30), result.text())
        assert_only_resumable_state(self, self.target)

    @each_way(*REMOTE_WAYS)
    def test_a_slow_run_is_no_timeout(self, way):
        source, target = self.path("slow-" + way), self.path("slow-target-" + way)
        os.mkdir(source)
        write_large(f"{source}/large", 3 * MIB)
        result = self.expect(0, self.go(way, source, target, "--bwlimit=1M", "--timeout=1"))
        self.assertGreater(result.seconds, 1)


class SilentShells(SshCase):
    @each_way(*REMOTE_WAYS)
    def test_a_far_side_that_never_answers_is_a_connect_timeout(self, way):
        source, target = self.path("source"), self.path("target-" + way)
        os.makedirs(source, exist_ok=True)
        for name, text in (("silent", "exec sleep 1000\n"), ("polite", "echo welcome\nexec sleep 1000\n")):
            with self.subTest(shell=name):
                self.shell = self.script(name, text)
                run = self.start_way(way, source, target, "--connect-timeout=1")
                shells = wait_until(lambda: children_of(run.pid), "the remote shell starts")
                result = self.expect(35, run.wait(BOUND))
                self.assertGreaterEqual(result.seconds, 1)
                self.assertRegex(result.text(), r"(?m)^fgsync: near: ")
                self.wait_gone(shells, BOUND)
                self.assertFalse(os.path.lexists(target))


@needs_root
class SilentLinks(NetworkCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)
        write_large(f"{self.source}/large", 64 * MIB)

    def check_dropping(self, way, sides):
        """Whoever drops what comes in, both sides end in time, and the next run has no trouble."""
        target = self.path("target-" + way)
        run = self.start_way(way, self.source, target, SLOW, f"--timeout={TIMEOUT}")
        wait_until(lambda: has_journaled_chunks(target), "data is journaled")
        processes = [self.far_pids()[-1], *children_of(run.pid)]
        for side in sides:
            self.filter(side, "input", "drop")
        try:
            result = self.expect(30, run.wait(BOUND))
            self.assertRegex(result.text(), r"(?m)^fgsync: .*timeout.*near")
            self.wait_gone(processes, BOUND)
        finally:
            self.heal()
        assert_only_resumable_state(self, target)
        self.expect(0, self.go(way, self.source, target))
        assert_replica(self, self.source, target)

    @each_way(*REMOTE_WAYS)
    def test_a_link_that_drops_what_goes_there_ends_both_sides(self, way):
        self.check_dropping(way, ("far",))

    @each_way(*REMOTE_WAYS)
    def test_a_link_that_drops_what_comes_back_ends_both_sides(self, way):
        self.check_dropping(way, ("near",))

    @each_way(*REMOTE_WAYS)
    def test_a_link_that_drops_everything_ends_both_sides(self, way):
        self.check_dropping(way, ("near", "far"))

    @each_way(*REMOTE_WAYS)
    def test_a_firewall_that_drops_is_a_connect_timeout(self, way):
        self.filter("far", "input", f"tcp dport != {self.port} drop")
        run = self.start_way(way, self.source, self.path("target-" + way), "--connect-timeout=2")
        result = self.expect(35, run.wait(20))
        self.assertGreaterEqual(result.seconds, 2)
        self.assertRegex(result.text(), rf"(?m)^fgsync: .*{self.far_address}")
        self.wait_gone(self.far_pids())
        self.assertFalse(os.path.exists(self.path("target-" + way)))

    @each_way(*REMOTE_WAYS)
    def test_a_firewall_that_rejects_is_a_failed_connection(self, way):
        self.filter("far", "input", f"tcp dport != {self.port} reject with tcp reset")
        result = self.expect(10, self.go(way, self.source, self.path("target-" + way), seconds=20))
        self.assertIn("Connection refused", result.text())
        self.assertIn(self.far_address, result.text())
        self.wait_gone(self.far_pids())

    def test_ssh_that_cannot_connect_in_time_is_a_connect_timeout(self):
        self.filter("far", "input", "drop")
        result = self.go("push", self.source, self.path("target"), "--connect-timeout=2", seconds=20)
        self.assertIn(result.code, (35, 255), result.text())
        self.assertIn("near", result.text())


if __name__ == "__main__":
    main()
