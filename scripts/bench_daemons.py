"""Daemons for ssh and rsync of scripts/bench's own: keys and configurations in one private folder. They are started for
each run, on a free port of 127.0.0.1, so that a run's far end is that daemon and what it has started."""
import errno
import os
import pwd
import secrets
import shutil
import socket
from subprocess import run

CIPHER = "aes128-gcm@openssh.com"  # the fastest that OpenSSH offers, and the one that fgsync's default compares to


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


class Daemons:
    """`sshd`, `rsyncd` and `ssh` are words with {folder} and {port} in them; `no_ssh` and `no_rsync` say what is
    missing, or None."""

    def __init__(self, folder, target):
        self._folder = folder
        self._home = os.path.join(folder, "home")  # empty: login shells run no start-up files of the user's
        os.makedirs(self._home)
        self._password = secrets.token_hex(16)  # other users of the machine may reach the loopback as well
        sshd = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        rsync = shutil.which("rsync")
        self.words = {"folder": folder, "rsync": rsync, "sshd": sshd, "cipher": CIPHER}
        self.no_rsync = None if rsync else "rsync is not installed"
        self.no_ssh = None
        if not sshd or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
            self.no_ssh = "ssh or its daemon is not installed"
        if not self.no_rsync:
            self._configure_rsync(target)
        if not self.no_ssh:
            self._configure_ssh()

    ssh = "ssh -F {folder}/ssh_config -p {port}"
    sshd = ["{sshd}", "-D", "-e", "-f", "{folder}/sshd_config", "-p", "{port}"]
    rsyncd = ["{rsync}", "--daemon", "--no-detach", "--config={folder}/rsyncd.conf", "--address=127.0.0.1",
              "--port={port}"]

    def environment(self):
        """For all that is started: no settings of the user's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FGSYNC_", "RSYNC_"))}
        return {**kept, "HOME": self._home, "LC_ALL": "C", "RSYNC_PASSWORD": self._password}

    def _write(self, name, text):
        path = os.path.join(self._folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    def _configure_rsync(self, target):
        self._write("rsyncd.secrets", f"bench:{self._password}\n")
        identity = "uid = 0\ngid = 0\n" if os.geteuid() == 0 else ""
        self._write("rsyncd.conf", f"use chroot = no\n{identity}reverse lookup = no\n"
                                   f"[target]\npath = {target}\nread only = no\n"
                                   f"auth users = bench\nsecrets file = {self._folder}/rsyncd.secrets\n")

    def _configure_ssh(self):
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
