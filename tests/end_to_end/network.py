"""Two hosts on one machine: a network namespace each, joined by a veth pair, with sshd in the far one."""
import concurrent.futures
import ctypes
import ipaddress
import os
import re
import subprocess

from mounts import run
from ssh_server import SshCase

NEAR, FAR = "10.99.7.1", "10.99.7.2"


class NetworkCase(SshCase):
    """fgsync starts in the near namespace, sshd stands in the far one. `near`, the name in the ssh configuration, is
    the far host's address here."""

    near_address, far_address = NEAR, FAR

    def setUp(self):
        self.names = {side: f"fgsync-{os.getpid()}-{side}" for side in ("near", "far")}
        self.make_namespaces()
        self.listen_on = (self.far_address,)
        self.inside = self.within("far")
        super().setUp()
        self.ssh_config = self.write_client_configuration(self.port, self.far_address)

    def make_namespaces(self):
        for name in self.names.values():
            run("ip", "netns", "add", name)
            self.addCleanup(run, "ip", "netns", "delete", name)
        run("ip", "-n", self.names["near"], "link", "add", "near0", "type", "veth", "peer", "far0", "netns",
            self.names["far"])
        for side, address in (("near", self.near_address), ("far", self.far_address)):
            run("ip", "-n", self.names[side], "link", "set", "lo", "up")
            self.add_address(side, address)
            run("ip", "-n", self.names[side], "link", "set", f"{side}0", "up")

    def add_address(self, side, address):
        length = 64 if ipaddress.ip_address(address).version == 6 else 24
        nodad = ["nodad"] if length == 64 else []
        run("ip", "-n", self.names[side], "address", "add", f"{address}/{length}", "dev", f"{side}0", *nodad)

    def within(self, side):
        return ["nsenter", f"--net=/run/netns/{self.names[side]}"]

    def start(self, *arguments, **options):
        options["before"] = [*self.within("near"), *options.get("before", ())]
        return super().start(*arguments, **options)

    def output_of(self, side, *command):
        return subprocess.run([*self.within(side), *command], stdout=subprocess.PIPE, check=True).stdout.decode()

    def sockets(self, side, program="fgsync"):
        """(state, local address, local port, peer address) of the program's TCP sockets there, as ss(8) sees them."""
        found = []
        for line in self.output_of(side, "ss", "-Htanp").splitlines():
            if f'"{program}' not in line:
                continue
            state, _, _, local, peer = line.split()[:5]
            port = int(local.rpartition(":")[2])
            found.append((state, self.host_of(local), port, self.host_of(peer)))
        return found

    @staticmethod
    def host_of(endpoint):
        """The address without zone of what ss(8) writes as ADDRESS:PORT or [ADDRESS]%ZONE:PORT."""
        return endpoint.rpartition(":")[0].partition("%")[0].strip("[]")

    def bytes_over(self, side, interface):
        """Received and sent bytes that the kernel has counted."""
        text = self.output_of(side, "cat", "/proc/net/dev")
        numbers = re.search(rf"{interface}:(.*)", text).group(1).split()
        return int(numbers[0]) + int(numbers[8])

    def call_within(self, side, function, *arguments):
        """Calls it in a thread that has entered the namespace; sockets stay in the one they are made in."""

        def call():
            with open(f"/run/netns/{self.names[side]}") as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            return function(*arguments)

        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            return executor.submit(call).result()

    def filter(self, side, chain, *rules):
        """Adds nftables rules for what comes in ("input") or goes out ("output") there."""
        nft = [*self.within(side), "nft"]
        run(*nft, "add", "table", "inet", "fgsync")
        run(*nft, "add", "chain", "inet", "fgsync", chain, f"{{ type filter hook {chain} priority 0; }}")
        for rule in rules:
            run(*nft, "add", "rule", "inet", "fgsync", chain, rule)

    def refuse(self, *matches):
        """Whoever sends what matches at the far side's end, or is sent it at the near one, is told that there is no
        such connection, and believes it."""
        for match in matches:
            for side, its in (("far", match), ("near", match.replace("sport", "dport"))):
                self.filter(side, "input", f"tcp flags & rst == 0 {its} reject with tcp reset")

    def heal(self):
        for side in self.names:
            self.output_of(side, "nft", "flush", "ruleset")
