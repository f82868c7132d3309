"""What scripts/bench compares: each competitor's command, its daemon, and why it may be missing."""
import json
import os
import shutil
from dataclasses import dataclass

from bench_daemons import Daemons, unused_port
from bench_ends import Command, RunFailed
from bench_run import Transfer, measure
from bench_sets import Start

LOGIN_SECONDS = 30  # on a busy machine
ANY = tuple(Start)
FRESH = (Start.EMPTY,)
# Tools that read and write a pipe get far with pieces of this size: socat's own 8 KiB cost it a third of its speed.
SOCAT_BYTES = 256 << 10


@dataclass
class Competitor:
    name: str
    near: list
    far: list = None
    starts: tuple = FRESH   # what it can begin with
    over_ssh: bool = False
    cipher: str = None      # of fgsync alone: `none`, or `sealed` for whatever it chooses by itself
    far_ends: bool = False  # as in Transfer
    missing: str = None     # why it cannot run here

    def is_fgsync(self):
        return self.name.startswith("fgsync")


class Competitors:
    """All of them, sharing one private folder."""

    def __init__(self, folder, fgsync, source, target):
        self._daemons = daemons = Daemons(folder, target)
        self._words = {**daemons.words, "fgsync": fgsync, "floor": os.path.join(os.path.dirname(fgsync), "floor"),
                       "source": source, "target": target}
        # A login that does nothing, to know what the start alone takes.
        self.login = Competitor("login", [*daemons.ssh.split(), "bench", "true"], daemons.sshd, over_ssh=True)
        no_rsync = daemons.no_rsync
        self.first_login_seconds = 0.0
        no_ssh = self.login.missing = daemons.no_ssh or self._why_no_login(folder)
        over_ssh = ["{fgsync}", "--json", "-e", daemons.ssh, "--remote-fgsync={fgsync}"]
        ends = ["{source}", "bench:{target}"]
        self.all = [
            Competitor("fgsync plain", [*over_ssh, "--cipher=none", *ends], daemons.sshd, ANY, True, "none",
                       missing=no_ssh),
            Competitor("rsync daemon", ["{rsync}", "-a", "{whole}", "{source}/",
                                        "rsync://bench@127.0.0.1:{port}/target/"], daemons.rsyncd, ANY,
                       missing=no_rsync),
            Competitor("fgsync sealed", [*over_ssh, *ends], daemons.sshd, ANY, True, "sealed", missing=no_ssh),
            Competitor("rsync over ssh", ["{rsync}", "-a", "{whole}", "-e", daemons.ssh + " -c {cipher}",
                                          "--rsync-path={rsync}", "{source}/", "bench:{target}/"],
                       daemons.sshd, ANY, True, missing=no_rsync or no_ssh),
            self._floor("floor plain"),
            self._floor("floor sealed", "sealed"),
            self._tar_socat(),
            Competitor("fgsync local", ["{fgsync}", "--json", "{source}", "{target}"], starts=ANY),
            # -u changes nothing in an empty target, and leaves what is there in one that has all.
            Competitor("cp -au", ["cp", "-au", "{source}/.", "{target}/"], starts=(Start.EMPTY, Start.EQUAL)),
        ]

    def _floor(self, name, *more):
        """bench/floor.cc, with a stream for each core as fgsync has."""
        words = ["127.0.0.1", "{port}", str(max(2, min(8, os.cpu_count())))]
        missing = None if os.access(self._words["floor"], os.X_OK) else "it is not built"
        return Competitor(name, ["{floor}", "send", *words, "{source}", *more],
                          ["{floor}", "receive", *words, "{target}", *more], missing=missing)

    @staticmethod
    def _tar_socat():
        socat = f"socat -u -b {SOCAT_BYTES}"
        near = f'tar -cf - -C "$1" . | {socat} STDIN TCP4:127.0.0.1:$2'
        far = f'{socat} TCP4-LISTEN:$2,bind=127.0.0.1 STDOUT | tar -xpf - -C "$1"'
        return Competitor("tar | socat", ["sh", "-c", near, "sh", "{source}", "{port}"],
                          ["sh", "-c", far, "sh", "{target}", "{port}"], far_ends=True,
                          missing=None if shutil.which("socat") else "socat is not installed")

    def _why_no_login(self, folder):
        try:
            log = os.path.join(folder, "login")
            self.first_login_seconds = measure(self.transfer(self.login, Start.EMPTY, log, LOGIN_SECONDS)).seconds
        except RunFailed as failure:
            return str(failure)
        return None

    def transfer(self, competitor, start, log, seconds_max, bytes_per_second=0):
        """What this competitor is to do, and how fast at most (0: no limit)."""
        port = unused_port()
        # An interrupted rsync goes on where it was only so; with what it has it makes sure by a checksum.
        whole = "--append-verify" if start is Start.INTERRUPTED else "-W"

        def command(words):
            filled = [word.format(port=port, whole=whole, **self._words) for word in words]
            return Command(filled, self._daemons.environment())
        near = list(competitor.near)
        if bytes_per_second:
            near.insert(1, f"--bwlimit={bytes_per_second >> 10}K")
        return Transfer(command(near), command(competitor.far) if competitor.far else None, port, log, seconds_max,
                        competitor.far_ends)


def fgsync_report(competitor, measurement):
    """fgsync's own report of a run, checked: that it ran as it was asked to."""
    try:
        report = json.loads(measurement.output)
    except ValueError as error:
        raise RunFailed(f"fgsync --json printed no JSON object: {error}") from error
    if competitor.cipher and (report["cipher"] == "none") != (competitor.cipher == "none"):
        raise RunFailed(f"wanted the cipher {competitor.cipher}, it used {report['cipher']}")
    kept = ("seconds", "transport", "streams", "cipher", "io_engine", "limited_by")
    return {**{key: report[key] for key in kept}, "resumed_bytes": report["bytes"]["resumed"]}
