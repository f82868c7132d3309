"""Connections, far sides and remote shells that are lost in the middle of a run, which goes on by itself."""
import json
import os
import re
import signal
import time

from network import NetworkCase
from ssh_server import REMOTE_WAYS, SshCase, each_way
from support import MIB, children_of, main, needs_root, wait_until
from trees import (assert_no_state, assert_only_resumable_state, assert_replica, has_journaled_chunks, write,
                   write_large)

SIZE = 24 * MIB
# A quarter of a second to a chunk: large enough a part of the file is journaled by then.
SLOW = "--bwlimit=4M"
STREAMS = "--streams=4"
# What may be under way when a connection breaks: socket buffers, and what is not journaled yet.
SPARE = 12 * MIB


class ReconnectCase(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)
        write_large(f"{self.source}/large", SIZE)
        for number in range(50):
            write(f"{self.source}/small{number}", b"small %d" % number)

    def start_midway(self, way, *options):
        self.target = self.path("target-" + way)
        open(self.far_pids_file, "w").close()  # of the ways before
        run = self.start_way(way, self.source, self.target, SLOW, STREAMS, "--json", *options)
        wait_until(lambda: has_journaled_chunks(self.target) or run.process.poll() is not None,
                   "chunks are journaled")
        self.assertIsNone(run.process.poll(), run.said())
        return run

    def finish(self, run, seconds=120):
        """It ends well, and has not sent much twice. Its report and what it said."""
        result = self.expect(0, run.wait(seconds))
        assert_replica(self, self.source, self.target)
        assert_no_state(self, self.target)
        self.wait_gone(self.far_pids())
        report = result.json()
        sent = report["bytes"]
        self.assertEqual(sent["total"], sent["sent"] + sent["resumed"] + sent["unchanged"], sent)
        self.assertEqual(51, report["files"]["sent"], report["files"])
        self.assertEqual(0, sent["resumed"], sent)
        self.assertLess(sent["wire"], SIZE + SPARE)
        return report, result.text()


class FarSides(ReconnectCase):
    @each_way(*REMOTE_WAYS)
    def test_a_killed_far_side_is_started_again(self, way):
        run = self.start_midway(way)
        os.kill(self.far_pids()[-1], signal.SIGKILL)
        report, said = self.finish(run)
        self.assertEqual(2, len(self.far_pids()))
        self.assertRegex(said, r"note: the connection was lost after .*; connecting again for up to 60.0 s")
        self.assertEqual(1, len(re.findall("connection was lost", said)), said)
        self.assertEqual("ok", report["status"])

    @each_way(*REMOTE_WAYS)
    def test_a_killed_remote_shell_is_started_again(self, way):
        run = self.start_midway(way)
        os.kill(children_of(run.pid)[0], signal.SIGKILL)
        self.finish(run)
        self.assertEqual(2, len(self.far_pids()))

    def test_several_losses_are_survived(self):
        run = self.start_midway("push")
        for killed in range(1, 4):
            os.kill(wait_until(lambda: self.far_pids()[killed - 1:], "a far side runs")[0], signal.SIGKILL)
            wait_until(lambda: len(self.far_pids()) > killed, "the next far side starts")
            time.sleep(0.3)  # any moment of it is as good
        result = self.expect(0, run.wait())
        assert_replica(self, self.source, self.target)
        self.assertEqual(4, len(self.far_pids()))
        self.assertLess(result.json()["bytes"]["wire"], SIZE + 3 * SPARE)

    @each_way(*REMOTE_WAYS)
    def test_progress_does_not_run_backwards(self, way):
        run = self.start_midway(way, "--progress=json")
        os.kill(self.far_pids()[-1], signal.SIGKILL)
        _, said = self.finish(run)
        shown = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        self.assertGreater(len(shown), 3)
        for before, after in zip(shown, shown[1:]):
            self.assertLessEqual(before["bytes_done"], after["bytes_done"])
            self.assertLessEqual(before["files_done"], after["files_done"])

    @each_way(*REMOTE_WAYS)
    def test_nothing_is_tried_again_when_that_is_asked_for(self, way):
        run = self.start_midway(way, "--retry-for=0")
        os.kill(self.far_pids()[-1], signal.SIGKILL)
        self.expect(10, run.wait(10))
        self.assertEqual(1, len(self.far_pids()))

    @each_way(*REMOTE_WAYS)
    def test_a_far_side_that_cannot_be_started_again_is_given_up(self, way):
        gone = self.path("gone")
        self.far = self.script("far-once", f"[ -e {gone} ] && exit 9\necho $$ >> {self.far_pids_file}\n"
                                           f"exec {os.environ.get('FGSYNC_BINARY', 'fgsync')} \"$@\"\n")
        run = self.start_midway(way, "--retry-for=2")
        write(gone)
        os.kill(self.far_pids()[-1], signal.SIGKILL)
        result = self.expect(10, run.wait(15))
        self.assertRegex(result.text(), r"(?m)^fgsync: near: the connection was lost and not made again within 2.0 s")
        assert_only_resumable_state(self, self.target)
        os.unlink(gone)
        self.expect(0, self.go(way, self.source, self.target))
        assert_replica(self, self.source, self.target)

    @each_way(*REMOTE_WAYS)
    def test_an_interrupt_ends_the_attempts(self, way):
        gone = self.path("gone")
        self.far = self.script("far-once", f"[ -e {gone} ] && exit 9\necho $$ >> {self.far_pids_file}\n"
                                           f"exec {os.environ.get('FGSYNC_BINARY', 'fgsync')} \"$@\"\n")
        run = self.start_midway(way)
        write(gone)
        os.kill(self.far_pids()[-1], signal.SIGKILL)
        wait_until(lambda: "connecting again" in run.said(), "the loss is noticed")
        run.signal(signal.SIGINT)
        self.expect(20, run.wait(5))
        os.unlink(gone)

    def test_what_never_stood_is_not_tried_again(self):
        started = time.monotonic()
        self.far = self.script("far-dead", f"echo $$ >> {self.far_pids_file}\nexit 9\n")
        self.expect(10, self.go("push", self.source, self.path("target")))
        self.assertEqual(1, len(self.far_pids()))
        self.assertLess(time.monotonic() - started, 10)


@needs_root
class Connections(NetworkCase, ReconnectCase):
    def connections(self):
        """Local ports of fgsync's connections: first control, the only one with a dialogue, then the busiest last."""
        text = self.output_of("near", "ss", "-Htinp")
        found = []
        for line, more in zip(text.splitlines()[::2], text.splitlines()[1::2]):
            if '"fgsync' not in line:
                continue
            port = int(line.split()[3].rpartition(":")[2])
            there, back = (int(re.search(rf"bytes_{way}:(\d+)|$", more).group(1) or 0) for way in ("sent", "received"))
            found.append((min(there, back), there + back, port))
        control = max(found, default=None)
        return [port for _, _, port in sorted(found, key=lambda one: (one != control, one[1]))]

    def reset(self, *ports):
        """Both ends of these connections are told that they are no more."""
        self.refuse(*(f"tcp sport {port}" for port in ports))

    def take_network_away(self):
        self.refuse("tcp sport 0-65535")

    @each_way(*REMOTE_WAYS)
    def test_a_data_connection_that_is_reset_is_made_again(self, way):
        run = self.start_midway(way)
        connections = self.connections()
        self.assertEqual(5, len(connections), connections)
        lost = connections[-1]
        self.reset(lost)
        wait_until(lambda: len(set(self.connections()) - {lost}) == 5, "there are five again")
        self.heal()
        _, said = self.finish(run)
        self.assertEqual(1, len(self.far_pids()))
        self.assertIn("a data connection was lost and made again", said)

    @each_way(*REMOTE_WAYS)
    def test_all_data_connections_are_made_again(self, way):
        run = self.start_midway(way)
        lost = self.connections()[1:]
        self.reset(*lost)
        wait_until(lambda: len(set(self.connections()) - set(lost)) == 5, "there are five again")
        self.heal()
        self.finish(run)
        self.assertEqual(1, len(self.far_pids()))

    @each_way(*REMOTE_WAYS)
    def test_the_run_goes_on_over_the_connections_that_are_left(self, way):
        run = self.start_midway(way, "--retry-for=1")
        lost = self.connections()[-1]
        self.reset(lost)
        # What stands may go on, and nothing new gets through.
        self.filter("far", "input", "tcp flags & (syn | ack) == syn reject with tcp reset")
        try:
            _, said = self.finish(run)
        finally:
            self.heal()
        self.assertIn("was lost and could not be made again", said)

    @each_way(*REMOTE_WAYS)
    def test_a_control_connection_that_is_reset_costs_a_session_and_no_run(self, way):
        run = self.start_midway(way)
        self.reset(self.connections()[0])
        wait_until(lambda: len(self.far_pids()) == 2, "another far side is started", 20)
        self.heal()
        self.finish(run)

    @each_way(*REMOTE_WAYS)
    def test_a_link_that_is_down_for_a_moment_costs_nothing_but_time(self, way):
        run = self.start_midway(way)
        for state in ("down", "up"):
            self.output_of("near", "ip", "link", "set", "near0", state)
            time.sleep(1)  # as long as it is down
        self.finish(run)
        self.assertEqual(1, len(self.far_pids()))

    @each_way(*REMOTE_WAYS)
    def test_a_network_that_is_away_for_a_while_is_waited_for(self, way):
        run = self.start_midway(way)
        self.take_network_away()
        wait_until(lambda: "connecting again" in run.said(), "the loss is noticed")
        time.sleep(2)  # as long as it is away
        self.heal()
        self.finish(run)

    @each_way(*REMOTE_WAYS)
    def test_a_network_that_stays_away_is_given_up(self, way):
        run = self.start_midway(way, "--retry-for=3")
        self.take_network_away()
        try:
            result = self.expect(10, run.wait(20))
            self.assertGreater(result.seconds, 3)
            self.assertRegex(result.text(), r"(?m)^fgsync: near: the connection was lost and not made again")
        finally:
            self.heal()
        self.wait_gone(self.far_pids(), 10)
        self.expect(0, self.go(way, self.source, self.target))
        assert_replica(self, self.source, self.target)


if __name__ == "__main__":
    main()
