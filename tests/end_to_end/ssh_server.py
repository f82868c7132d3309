"""An sshd of the test's own: own keys, own configuration, a free port, an empty home."""
import functools
import os
import socket
import subprocess

from support import Case, wait_until

SSHD = "/usr/sbin/sshd"
WAYS = ("local", "push", "pull")
REMOTE_WAYS = ("push", "pull")


def each_way(*ways):
    """Calls the test once for each way (all, if none is named), as a sub-test."""

    def decorate(test):
        @functools.wraps(test)
        def for_each(self):
            for way in ways or WAYS:
                with self.subTest(way=way):
                    test(self, way)

        return for_each

    return decorate


def free_port(host="127.0.0.1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


class SshCase(Case):
    """A test with an sshd on loopback. `near` is its name in the ssh configuration."""

    server_lines = ()  # more lines for sshd_config
    inside = ()  # what starts sshd: ip netns exec NAME
    listen_on = ("127.0.0.1", "::1")

    def setUp(self):
        super().setUp()
        self.far_home = self.path("far-home")
        os.mkdir(self.far_home)
        self.make_keys()
        self.start_server()
        self.ssh_config = self.write_client_configuration(self.port)
        self.shell = f"ssh -F {self.ssh_config}"
        self.far = self.far_program()

    def make_keys(self):
        for name in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name)], check=True)
        os.rename(self.path("user_key.pub"), self.path("authorized"))

    def start_server(self):
        """Starts sshd on a free port; another process may take that port first, so a few times."""
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd's privilege separation
        for _ in range(5):
            self.port = free_port()
            server = self.start_server_on(self.port)
            if server is not None:
                return
        self.fail("sshd does not start: " + self.server_log())

    def start_server_on(self, port):
        listen = "\n".join(f"ListenAddress {'[%s]' % a if ':' in a else a}:{port}" for a in self.listen_on)
        lines = [listen, f"HostKey {self.path('host_key')}", f"AuthorizedKeysFile {self.path('authorized')}",
                 "StrictModes no", "UsePAM no", "PidFile none", "PermitRootLogin yes", "UseDNS no",
                 "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PrintMotd no", "PrintLastLog no",
                 "MaxStartups 100", f"SetEnv HOME={self.far_home} {self.sanitizer_settings()}", *self.server_lines]
        with open(self.path("sshd_config"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        before = self.lines_of_listening()  # another server of this test may have written some
        with open(self.path("sshd.log"), "ab") as log:
            server = subprocess.Popen([*self.inside, SSHD, "-D", "-e", "-f", self.path("sshd_config")],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        wait_until(lambda: server.poll() is not None or self.lines_of_listening() - before >= len(self.listen_on),
                   "sshd listens")
        return server if server.poll() is None else None

    def lines_of_listening(self):
        return self.server_log().count("Server listening on")

    def server_log(self):
        if not os.path.exists(self.path("sshd.log")):
            return ""
        with open(self.path("sshd.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    @staticmethod
    def sanitizer_settings():
        names = ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
        return " ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ)

    def write_client_configuration(self, port, address="127.0.0.1", name="ssh_config", key="user_key"):
        path = self.path(name)
        user = "root" if os.geteuid() == 0 else os.environ.get("USER", "root")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"Host near\n  HostName {address}\nHost *\n  Port {port}\n  User {user}\n"
                       f"  IdentityFile {self.path(key)}\n  IdentitiesOnly yes\n  BatchMode yes\n"
                       "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
                       "  ControlPath none\n")
        os.chmod(path, 0o644)
        return path

    def over_ssh(self, *, shell=None, far=None):
        return ["-e", shell or self.shell, f"--remote-fgsync={far or self.far}"]

    def start_push(self, source, target, *options, host="near", **more):
        return self.start(*self.over_ssh(), *options, source, f"{host}:{target}", **more)

    def start_pull(self, source, target, *options, host="near", **more):
        return self.start(*self.over_ssh(), *options, f"{host}:{source}", target, **more)

    def start_way(self, way, source, target, *options, **more):
        """Starts a run in one of the WAYS."""
        if way == "local":
            return self.start(*options, source, target, **more)
        return (self.start_push if way == "push" else self.start_pull)(source, target, *options, **more)

    def go(self, way, source, target, *options, seconds=120, **more):
        return self.start_way(way, source, target, *options, **more).wait(seconds)
