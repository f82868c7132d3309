"""How the far side is started: remote shells and their options, names of hosts, noise, ports, what can go wrong."""
import os
import re
import socket
import subprocess

from ssh_server import REMOTE_WAYS, SshCase, each_way, free_port
from support import MIB, main, wait_until
from trees import assert_replica, has_staged_data, names_in, write, write_large


def loopback_sockets_of(pid):
    """(local address, peer address) of the process's established TCP sockets, as ss(8) sees them."""
    listed = subprocess.run(["ss", "-Htnp", "state", "established"], stdout=subprocess.PIPE, check=True).stdout.decode()
    found = []
    for line in listed.splitlines():
        if f"pid={pid}," in line:
            local, peer = line.split()[2:4]
            found.append((local.rpartition(":")[0].strip("[]"), peer.rpartition(":")[0].strip("[]")))
    return found


class RemoteShellCase(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)
        write(f"{self.source}/file", b"contents")

    def push(self, *options, shell=None, far=None, host="near", seconds=60, **more):
        return self.fgsync(*self.over_ssh(shell=shell, far=far), *options, self.source, f"{host}:{self.target}",
                           seconds=seconds, **more)

    def assert_arrives(self, result):
        self.expect(0, result)
        assert_replica(self, self.source, self.target)


class Shells(RemoteShellCase):
    def test_a_shell_command_with_options(self):
        without_port = self.path("portless")
        with open(self.ssh_config) as file, open(without_port, "w") as copy:
            copy.write(re.sub(r"  Port \d+\n", "", file.read()))
        self.assert_arrives(self.push(shell=f"ssh -F '{without_port}' -p {self.port} -o Compression=no"))

    def test_quotes_keep_a_shells_words_together(self):
        odd = self.path("with space")
        os.symlink(self.ssh_config, odd)
        self.assert_arrives(self.push(shell=f'ssh -F "{odd}"'))

    def test_a_user_before_the_host(self):
        config = self.path("userless")
        with open(self.ssh_config) as file, open(config, "w") as copy:
            text = file.read()
            copy.write(re.sub(r"User \S+", "User nobody-of-this-name", text))
        user = re.search(r"User (\S+)", text).group(1)
        self.expect(255, self.push(shell=f"ssh -F {config}"))
        self.assert_arrives(self.push(shell=f"ssh -F {config}", host=f"{user}@near"))

    def test_an_alias_of_the_ssh_configuration(self):
        config = self.write_client_configuration(self.port, "::1", "alias_config")
        self.assert_arrives(self.push(shell=f"ssh -F {config}"))

    def test_a_shell_from_the_environment(self):
        environment = self.environment(FGSYNC_RSH=self.shell, FGSYNC_REMOTE_FGSYNC=self.far)
        self.assert_arrives(self.fgsync(self.source, f"near:{self.target}", env=environment))

    @each_way(*REMOTE_WAYS)
    def test_an_ipv6_literal_carries_the_data_too(self, way):
        source, target = self.path("big-" + way), self.path("big-target-" + way)
        os.mkdir(source)
        write_large(f"{source}/large", 16 * MIB)
        run = self.start_way(way, source, target, "--bwlimit=4M", host="[::1]")
        wait_until(lambda: has_staged_data(target), "data is staged")
        for pid in (run.pid, self.far_pids()[-1]):
            self.assertEqual({("::1", "::1")}, set(loopback_sockets_of(pid)))
        self.expect(0, run.wait())
        assert_replica(self, source, target)

    def test_hosts_without_brackets_or_scope_are_usage_errors(self):
        for host in ("::1", "[::1", "[fe80::1%]", "[not-an-address]", "-oProxyCommand=touch x", ""):
            with self.subTest(host=host):
                self.expect(1, self.push("--", host=host))
                self.assertEqual([], self.far_pids())

    @each_way(*REMOTE_WAYS)
    def test_a_shell_that_sets_no_ssh_connection_works_on_loopback(self, way):
        shell = self.script("local-shell", 'shift; unset SSH_CONNECTION; exec sh -c "$*"\n')
        target = self.path("target-" + way)
        remote = "anyhost:" + (target if way == "push" else self.source)
        places = [self.source, remote] if way == "push" else [remote, target]
        self.expect(0, self.fgsync("-e", shell, f"--remote-fgsync={self.far}", *places))
        assert_replica(self, self.source, target)

    def test_a_family_that_is_asked_for_is_used(self):
        for option, host, address in (("-4", "localhost", "127.0.0.1"), ("-6", "localhost6", "::1")):
            with self.subTest(option=option):
                config = self.write_client_configuration(self.port, address, f"config{option}")
                self.assert_arrives(self.push(option, shell=f"ssh -F {config}"))
        result = self.push("-6", host="127.0.0.1")
        self.assertNotEqual(0, result.code)

    def test_the_callers_standard_input_is_not_read(self):
        for name in "abc":
            os.mkdir(self.path("source", name))
            write(self.path("source", name, "f"), name.encode())
        os.mkdir(self.target)
        command = " ".join(f"'{word}'" for word in [os.environ["FGSYNC_BINARY"], *self.over_ssh()])
        loop = f"while read x; do {command} {self.source}/$x/ near:{self.target}/$x/ || exit; done"
        done = subprocess.run(["sh", "-c", loop], input=b"a\nb\nc\n", env=self.environment(), timeout=300, check=False,
                              stderr=subprocess.PIPE)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(["a", "b", "c"], names_in(self.target))


class Troubles(RemoteShellCase):
    def test_a_far_side_without_fgsync_is_named_with_advice(self):
        result = self.expect(4, self.push(far="/no/such/fgsync"))
        self.assertIn("near", result.text())
        self.assertIn("/no/such/fgsync", result.text())
        self.assertIn("--remote-fgsync", result.text())

    def test_a_far_program_that_is_something_else_is_no_hang(self):
        result = self.push(far="/bin/true", seconds=20)
        self.assertIn(result.code, (2, 4, 10, 12), result.text())
        self.assertIn("near", result.text())

    @each_way(*REMOTE_WAYS)
    def test_versions_of_the_protocol_that_do_not_meet_are_told(self, way):
        self.shell = self.script("newer", 'shift\nsed -u "s/version-\\(m..\\)=[0-9]*/version-\\1=99/g" | sh -c "$*"\n')
        result = self.expect(2, self.go(way, self.source, self.target, seconds=20))
        self.assertRegex(result.text(), r"(?m)^fgsync: near: .*version")
        self.assertFalse(os.path.exists(self.target))

    def test_a_refused_key_shows_what_ssh_says(self):
        os.unlink(self.path("authorized"))
        result = self.expect(255, self.push())
        self.assertIn("Permission denied", result.text())
        self.assertRegex(result.text(), r"(?m)^fgsync: .*ssh")

    def test_an_unreachable_host_shows_what_ssh_says(self):
        config = self.write_client_configuration(free_port(), name="closed")
        result = self.expect(255, self.push(shell=f"ssh -F {config}"))
        self.assertIn("Connection refused", result.text())

    def test_an_unknown_host_shows_what_ssh_says(self):
        result = self.expect(255, self.push(host="no-such-host.invalid"))
        self.assertIn("no-such-host.invalid", result.text())

    def test_a_shell_that_is_not_there_is_named(self):
        result = self.push(shell="/no/such/shell")
        self.assertIn(result.code, (4, 255), result.text())
        self.assertIn("/no/such/shell", result.text())

    @each_way(*REMOTE_WAYS)
    def test_two_reasons_on_the_far_side_are_one_clear_line(self, way):
        result = self.expect(3, self.go(way, "/no/such/source", "/no/such/target"))
        self.assertEqual(1, len(re.findall(r"(?m)^fgsync: ", result.text())), result.text())


class Ports(RemoteShellCase):
    def listen_port(self, *options):
        """The far side's listening port, seen while a run is under way."""
        slow = self.path("slow")
        os.makedirs(slow, exist_ok=True)
        write_large(f"{slow}/large", 16 * MIB)
        target = self.path("slow-target")
        run = self.start_push(slow, target, "--bwlimit=4M", *options)
        wait_until(lambda: has_staged_data(target), "data is staged")
        listed = subprocess.run(["ss", "-Htnp"], stdout=subprocess.PIPE, check=True).stdout.decode()
        ports = {int(line.split()[3].rpartition(":")[2]) for line in listed.splitlines()
                 if f"pid={self.far_pids()[-1]}," in line}
        self.expect(0, run.wait())
        self.assertEqual(1, len(ports), listed)
        return ports.pop()

    def test_a_port_that_is_asked_for_is_used(self):
        port = free_port()
        self.assertEqual(port, self.listen_port(f"--port={port}"))

    def test_a_taken_port_of_a_range_is_passed_over(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            low = taken.getsockname()[1]
            if low > 65_000:
                self.skipTest("the kernel gave a port at the end of the range")
            port = self.listen_port(f"--port={low}-{low + 500}")
        self.assertTrue(low < port <= low + 500)

    def test_a_taken_port_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = self.expect(10, self.push(f"--port={port}"))
        self.assertIn(str(port), result.text())
        self.assertIn("Address already in use", result.text())
        self.assertFalse(os.path.exists(self.target))


NOISE = {
    "one line": b"Welcome to this host\n",
    "no newline": b"first\nsecond\nthird",
    "64 KB": b"All work and no play makes a dull greeting. " * 1490,
    "binary": bytes(range(256)) * 3,
    "nul and ff": b"\x00\xff\xff\xff\xff\xff\xff\xff\x7f",
    "start of the marker": b"greeting @fgsync-ans",
    "the marker": b"@fgsync-answer: kind=session address=10.0.0.1 port=1\n@fgsync-answer:",
    "a line of marker openings": b"@@@@@@@@@fgsync-answer@fgsync-answer:",
}


class Noise(RemoteShellCase):
    """A remote shell that prints text of its own before the program starts."""

    def start_server_on(self, port):
        # Its path is known only now that there is a directory.
        forced = self.script("forced", f'. {self.path("noise.sh")}\neval "$SSH_ORIGINAL_COMMAND"\n')
        self.server_lines = (f"ForceCommand {forced}",)
        return super().start_server_on(port)

    def make_noise(self, command):
        with open(self.path("noise.sh"), "w") as file:
            file.write(command + "\n")

    def test_text_before_the_answer_is_passed_over(self):
        for name, noise in NOISE.items():
            with self.subTest(noise=name):
                write(self.path("noise"), noise)
                self.make_noise(f"cat {self.path('noise')}")
                self.assert_arrives(self.push())
                os.unlink(f"{self.target}/file")

    def test_text_on_standard_error_is_shown_and_harmless(self):
        self.make_noise("echo 'a notice of the host' >&2")
        result = self.push()
        self.assert_arrives(result)
        self.assertIn("a notice of the host", result.text())

    def test_text_after_the_answer_is_harmless(self):
        self.make_noise('eval "$SSH_ORIGINAL_COMMAND"; status=$?; echo goodbye; exit $status')
        self.assert_arrives(self.push())

    def test_text_instead_of_an_answer_is_shown_escaped(self):
        write(self.path("noise"), b"This account is \x1b[31mclosed\x1b[0m.\n")
        self.make_noise(f"cat {self.path('noise')}; exit 1")
        result = self.push(seconds=15)
        self.assertIn(result.code, (5, 10), result.text())
        self.assertIn("This account is", result.text())
        self.assertIn("remote shell prints text", result.text())
        self.assertNotIn(b"\x1b", result.err)

    def test_endless_text_is_cut_off(self):
        self.make_noise("exec cat /dev/zero")
        result = self.push(seconds=15)
        self.assertIn(result.code, (10, 12), result.text())
        self.assertIn("remote shell prints text", result.text())
        self.wait_gone(self.far_pids())

    def test_a_shell_that_asks_for_input_gets_none_of_ours(self):
        self.make_noise("head -c 1 >/dev/null")  # eats a byte of the start request
        result = self.push("--connect-timeout=3", seconds=60)
        self.assertNotEqual(0, result.code)
        self.assertFalse(os.path.exists(self.target))


if __name__ == "__main__":
    main()
