"""What scripts/bench compares: each competitor's command, its daemon, and why it may be missing."""
import errno
import json
import os
import pwd
import secrets
import shutil
import socket
from dataclasses import dataclass
from subprocess import run

from bench_run import Command, RunFailed, measure

CIPHER = "aes128-gcm@openssh.com"  # the fastest that OpenSSH offers, and the one that fgsync's default compares to
LOGIN_SECONDS = 30  # on a busy machine


@dataclass
class Competitor:
    name: str
    near: list
    far: list = None
    over_ssh: bool = False
    cipher: str = None   # of fgsync alone: `none`, or `sealed` for whatever it chooses by itself
    missing: str = None  # why it cannot run here


def unused_port():
    """Below the range from which the kernel takes ports by itself, so that it is still unused a moment later."""
    while True:
        port = 20000 + secrets.randbelow(12000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise


class Competitors:
    """All competitors, sharing one private folder for keys and configurations. Ssh and rsync daemons are started for
    each run, on a free port of 127.0.0.1, so that a run's far end is that daemon and what it has started."""

    def __init__(self, folder, fgsync, source, target):
        self._folder = folder
        self._home = os.path.join(folder, "home")  # empty: login shells run no start-up files of the user's
        os.makedirs(self._home)
        self._password = secrets.token_hex(16)  # other users of the machine may reach the loopback as well
        self._sshd = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        self._words = {"fgsync": fgsync, "floor": os.path.join(os.path.dirname(fgsync), "floor"), "source": source,
                       "target": target, "folder": folder, "home": self._home,
                       "rsync": shutil.which("rsync"), "sshd": self._sshd, "cipher": CIPHER}
        no_rsync = None if self._words["rsync"] else "rsync is not installed"
        if not no_rsync:
            self._prepare_rsync_daemon(target)

        ssh = "ssh -F {folder}/ssh_config -p {port}"
        sshd = ["{sshd}", "-D", "-e", "-f", "{folder}/sshd_config", "-p", "{port}"]
        # A login that does nothing, to know what the start alone takes.
        self.login = Competitor("login", [*ssh.split(), "bench", "true"], sshd, over_ssh=True)
        no_ssh = self.login.missing = self._prepare_ssh()
        over_ssh = ["{fgsync}", "--json", "-e", ssh, "--remote-fgsync={fgsync}"]
        ends = ["{source}", "bench:{target}"]
        self.all = [
            Competitor("fgsync plain", [*over_ssh, "--cipher=none", *ends], sshd, True, "none", no_ssh),
            Competitor("rsync daemon", ["{rsync}", "-aW", "{source}/", "rsync://bench@127.0.0.1:{port}/target/"],
                       ["{rsync}", "--daemon", "--no-detach", "--config={folder}/rsyncd.conf", "--address=127.0.0.1",
                        "--port={port}"], missing=no_rsync),
            Competitor("fgsync sealed", [*over_ssh, *ends], sshd, True, "sealed", no_ssh),
            Competitor("rsync over ssh", ["{rsync}", "-aW", "-e", ssh + " -c {cipher}", "--rsync-path={rsync}",
                                          "{source}/", "bench:{target}/"], sshd, True, missing=no_rsync or no_ssh),
            self._floor("floor plain"),
            self._floor("floor sealed", "sealed"),
            Competitor("fgsync local", ["{fgsync}", "--json", "{source}", "{target}"]),
            Competitor("cp -a", ["cp", "-a", "{source}/.", "{target}/"]),
        ]

    def _floor(self, name, *more):
        """bench/floor.cc, with a stream for each core as fgsync has."""
        words = ["127.0.0.1", "{port}", str(max(2, min(8, os.cpu_count())))]
        missing = None if os.access(self._words["floor"], os.X_OK) else "it is not built"
        return Competitor(name, ["{floor}", "send", *words, "{source}", *more],
                          ["{floor}", "receive", *words, "{target}", *more], missing=missing)

    def commands(self, competitor, port):
        """The near end's command and the far end's, or None."""
        def filled(words):
            return Command([word.format(port=port, **self._words) for word in words], self._environment())
        return filled(competitor.near), filled(competitor.far) if competitor.far else None

    def _environment(self):
        """The user's, without what would change fgsync's options or lead to his own files."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FGSYNC_", "RSYNC_"))}
        return {**kept, "HOME": self._home, "LC_ALL": "C", "RSYNC_PASSWORD": self._password}

    def _write(self, name, text):
        path = os.path.join(self._folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    def _prepare_rsync_daemon(self, target):
        self._write("rsyncd.secrets", f"bench:{self._password}\n")
        identity = "uid = 0\ngid = 0\n" if os.geteuid() == 0 else ""
        self._write("rsyncd.conf", f"use chroot = no\n{identity}reverse lookup = no\n"
                                   f"[target]\npath = {target}\nread only = no\n"
                                   f"auth users = bench\nsecrets file = {self._folder}/rsyncd.secrets\n")

    def _prepare_ssh(self):
        """Makes keys and configurations of our own and logs in once. Returns why ssh cannot be used here, or None."""
        if not self._sshd or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
            return "ssh or its daemon is not installed"
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # where it drops its privileges to
        for key in ("host_key", "user_key"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self._folder, key)], check=True)
        self._write("sshd_config", f"ListenAddress 127.0.0.1\nHostKey {self._folder}/host_key\n"
                                   f"AuthorizedKeysFile {self._folder}/user_key.pub\nStrictModes no\nUsePAM no\n"
                                   "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
                                   "PermitRootLogin prohibit-password\nPidFile none\nPrintMotd no\n"
                                   f"Ciphers {CIPHER}\nSetEnv HOME={self._home}\n")
        self._write("ssh_config", f"Host bench\nHostName 127.0.0.1\nUser {pwd.getpwuid(os.geteuid()).pw_name}\n"
                                  f"IdentityFile {self._folder}/user_key\nIdentitiesOnly yes\nIdentityAgent none\n"
                                  "BatchMode yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
                                  "LogLevel ERROR\nConnectTimeout 10\n")
        port = unused_port()
        try:
            measure(*self.commands(self.login, port), port, os.path.join(self._folder, "login"), LOGIN_SECONDS)
        except RunFailed as failure:
            return str(failure)
        return None


def fgsync_report(competitor, measurement):
    """fgsync's own report of a run, checked: that it ran as it was asked to."""
    try:
        report = json.loads(measurement.output)
    except ValueError as error:
        raise RunFailed(f"fgsync --json printed no JSON object: {error}") from error
    if competitor.cipher and (report["cipher"] == "none") != (competitor.cipher == "none"):
        raise RunFailed(f"wanted the cipher {competitor.cipher}, it used {report['cipher']}")
    kept = ("seconds", "transport", "streams", "cipher", "io_engine", "limited_by")
    return {key: report[key] for key in kept}
