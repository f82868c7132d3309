"""Which addresses carry the data, what can be read on the wire, and strangers at the listener."""
import contextlib
import os
import re
import socket
import threading

from network import FAR, NEAR, NetworkCase
from ssh_server import REMOTE_WAYS, each_way
from support import MIB, main, needs_root, wait_until
from trees import assert_replica, has_staged_data, write, write_large

PUBLIC_NEAR, PUBLIC_FAR = "203.0.113.1", "203.0.113.2"  # TEST-NET-3, RFC 5737
SIZE = 16 * MIB
SLOW = "--bwlimit=8M"


@needs_root
class ConnectionCase(NetworkCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)
        write_large(f"{self.source}/large", SIZE)

    def watch_run(self, way, *options, **more):
        """Runs to the end; returns fgsync's sockets (near, far) as they were midway."""
        target = self.path("target-" + way)
        run = self.start_way(way, self.source, target, SLOW, *options, **more)
        wait_until(lambda: has_staged_data(target) or run.process.poll() is not None, "data is staged")
        seen = self.sockets("near"), self.sockets("far")
        self.expect(0, run.wait())
        assert_replica(self, self.source, target)
        return seen

    def assert_between(self, seen, near, far):
        """Every socket is between these two addresses; what listens does so on the far one alone."""
        for sockets, own, other in ((seen[0], near, far), (seen[1], far, near)):
            self.assertGreaterEqual(len(sockets), 2, sockets)
            for state, local, _, peer in sockets:
                self.assertEqual(own, local, sockets)
                if state == "LISTEN":
                    self.assertIs(sockets, seen[1], "the initiator listens")
                else:
                    self.assertEqual(other, peer, sockets)


class Addresses(ConnectionCase):
    @each_way(*REMOTE_WAYS)
    def test_all_data_goes_over_the_private_address(self, way):
        before = [self.bytes_over(side, name) for side in ("near", "far") for name in (f"{side}0", "lo")]
        seen = self.watch_run(way)
        after = [self.bytes_over(side, name) for side in ("near", "far") for name in (f"{side}0", "lo")]
        over_link, over_loopback, far_link, far_loopback = (b - a for a, b in zip(before, after))
        self.assert_between(seen, NEAR, FAR)
        self.assertGreaterEqual(over_link, SIZE)
        self.assertGreaterEqual(far_link, SIZE)
        self.assertLess(over_loopback + far_loopback, 10_000)
        wait_until(lambda: not self.sockets("far") and not self.sockets("near"), "no socket of fgsync is left")

    def test_an_address_to_bind_to_is_used(self):
        self.add_address("near", "10.99.8.1")
        self.add_address("far", "10.99.8.2")
        self.assert_between(self.watch_run("push", "--bind=10.99.8.1"), "10.99.8.1", "10.99.8.2")

    def test_an_interface_to_bind_to_is_used(self):
        for side, address in (("near", "10.99.9.1"), ("far", "10.99.9.2")):
            self.output_of(side, "ip", "link", "add", "link", f"{side}0", "name", "other0", "type", "macvlan")
            self.output_of(side, "ip", "address", "add", f"{address}/24", "dev", "other0")
            self.output_of(side, "ip", "link", "set", "other0", "up")
        self.assert_between(self.watch_run("pull", "--bind=other0"), "10.99.9.1", "10.99.9.2")

    def test_what_is_no_address_of_this_host_cannot_be_bound_to(self):
        for name in ("10.99.7.77", "nosuch0", "0.0.0.0"):
            with self.subTest(bind=name):
                result = self.go("push", self.source, self.path("target"), f"--bind={name}")
                self.assertIn(result.code, (1, 5), result.text())
                self.assertIn(name, result.text())
                self.assertFalse(os.path.exists(self.path("target")))


class PublicAddresses(ConnectionCase):
    near_address, far_address = PUBLIC_NEAR, PUBLIC_FAR

    @each_way(*REMOTE_WAYS)
    def test_a_public_address_is_refused_before_any_data(self, way):
        target = self.path("target-" + way)
        result = self.expect(5, self.go(way, self.source, target))
        self.assertIn(PUBLIC_FAR, result.text())
        self.assertIn("--allow-public", result.text())
        self.assertFalse(os.path.exists(target))
        self.assertLess(self.bytes_over("near", "near0"), MIB)
        self.wait_gone(self.far_pids())

    @each_way(*REMOTE_WAYS)
    def test_a_public_address_works_when_allowed(self, way):
        self.assert_between(self.watch_run(way, "--allow-public"), PUBLIC_NEAR, PUBLIC_FAR)

    @each_way(*REMOTE_WAYS)
    def test_ssh_may_go_over_a_public_address_and_the_data_over_a_private_one(self, way):
        if way == "push":
            self.add_address("near", NEAR)
            self.add_address("far", FAR)
        self.assert_between(self.watch_run(way, f"--bind={NEAR}"), NEAR, FAR)

    def test_an_interface_with_both_kinds_of_address_means_its_private_one(self):
        self.add_address("near", NEAR)
        self.add_address("far", FAR)
        self.assert_between(self.watch_run("push", "--bind=near0"), NEAR, FAR)


class LinkLocal(ConnectionCase):
    near_address, far_address = NEAR, FAR

    def test_a_link_local_address_with_its_zone_works(self):
        addresses = {}
        for side in ("near", "far"):
            shown = wait_until(lambda: self.output_of(side, "ip", "-6", "address", "show", "dev", f"{side}0", "scope",
                                                      "link", "-tentative"), "the address is usable")
            addresses[side] = re.search(r"inet6 (fe80:\S+)/", shown).group(1)
        self.listen_on = ("::",)
        self.start_server()
        self.ssh_config = self.write_client_configuration(self.port)
        self.shell = f"ssh -F {self.ssh_config}"
        seen = self.watch_run("push", host=f"[{addresses['far']}%near0]")
        self.assert_between(seen, addresses["near"], addresses["far"])


class Sniffer:
    """All that crosses an interface."""

    def __init__(self, case, side):
        self.socket = case.call_within(side, self.open, f"{side}0")
        self.packets = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    @staticmethod
    def open(interface):
        packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
        packets.setsockopt(socket.SOL_SOCKET, 33, 128 * MIB)  # SO_RCVBUFFORCE
        packets.bind((interface, 0))
        packets.settimeout(0.2)
        return packets

    def read(self):
        while True:
            try:
                self.packets.append(self.socket.recv(1 << 17))
            except TimeoutError:
                continue
            except OSError:
                return  # stopped

    def stop(self):
        self.socket.close()
        self.thread.join()
        return self.packets


class OnTheWire(ConnectionCase):
    CONTENTS, NAME = b"<<contents in the clear>>", "name-in-the-clear"

    def sniff(self, way, cipher):
        """Packets that hold the contents, and those that hold a name, of a run with such files."""
        source, target = self.path(f"marked-{way}-{cipher}"), self.path(f"target-{way}-{cipher}")
        os.mkdir(source)
        for number in range(20):
            write(f"{source}/{self.NAME}-{number}", self.CONTENTS * 4000)
        write(f"{source}/{self.NAME}-large", self.CONTENTS * (2 * MIB // len(self.CONTENTS)))
        os.symlink(self.NAME, f"{source}/{self.NAME}-link")
        sniffer = Sniffer(self, "near")
        try:
            report = self.expect(0, self.go(way, source, target, f"--cipher={cipher}", "--json")).json()
        finally:
            packets = sniffer.stop()
        assert_replica(self, source, target)
        self.assertGreater(sum(map(len, packets)), 3 * MIB)
        name = self.NAME.encode()
        return (sum(self.CONTENTS in packet for packet in packets), sum(name in packet for packet in packets),
                report["cipher"])

    @each_way(*REMOTE_WAYS)
    def test_every_cipher_hides_contents_and_names(self, way):
        for cipher in ("aes128-gcm", "aes256-gcm", "chacha20"):
            with self.subTest(cipher=cipher):
                self.assertEqual((0, 0, cipher), self.sniff(way, cipher))
        contents, names, chosen = self.sniff(way, "auto")
        self.assertEqual((0, 0), (contents, names))
        self.assertIn(chosen, ("aes128-gcm", "chacha20"))

    @each_way(*REMOTE_WAYS)
    def test_without_a_cipher_the_contents_are_readable(self, way):
        contents, _, cipher = self.sniff(way, "none")
        self.assertGreater(contents, 10)  # or the other tests would prove nothing
        self.assertEqual("none", cipher)

    def test_a_cipher_of_another_name_is_a_usage_error(self):
        self.expect(1, self.go("push", self.source, self.path("target"), "--cipher=rot13"))


class Strangers(ConnectionCase):
    JUNK = b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\xff" * 5000

    def connect(self, port):
        return self.call_within("near", lambda: socket.create_connection((FAR, port), timeout=5))

    @each_way(*REMOTE_WAYS)
    def test_strangers_at_the_listener_from_the_start_do_no_harm(self, way):
        """Some send junk, some stay silent; they come before our own connections and all along."""
        port = 18_730 + REMOTE_WAYS.index(way)
        target = self.path("target-" + way)
        connections = []
        run = self.start_way(way, self.source, target, SLOW, f"--port={port}")
        while run.process.poll() is None:
            with contextlib.suppress(OSError):
                connections.append(self.connect(port))
                if len(connections) % 3:
                    connections[-1].sendall(self.JUNK[len(connections) % 2])
                if len(connections) > 40:
                    connections.pop(0).close()
        result = run.wait(1)
        for connection in connections:
            connection.close()
        self.expect(0, result)
        self.assertGreater(len(connections), 0)
        assert_replica(self, self.source, target)
        self.wait_gone(self.far_pids())

    def test_a_stranger_before_the_run_is_ready_gets_nothing(self):
        port = 18_740
        shell = self.script("slow-shell", f"ssh -F {self.ssh_config} \"$@\" | (sleep 1; cat)\n")
        run = self.start("-e", shell, f"--remote-fgsync={self.far}", f"--port={port}", self.source,
                         f"near:{self.path('target')}")
        connection = wait_until(lambda: self.try_to_connect(port, run), "the far side listens")
        connection.sendall(b"\x17\x03\x03" + b"A" * 100)
        connection.settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            self.assertLessEqual(len(connection.recv(4096)), 64)  # a TLS alert at most
        connection.close()
        self.expect(0, run.wait())
        assert_replica(self, self.source, self.path("target"))

    def try_to_connect(self, port, run):
        self.assertIsNone(run.process.poll(), run.said())
        with contextlib.suppress(OSError):
            return self.connect(port)
        return None


if __name__ == "__main__":
    main()
