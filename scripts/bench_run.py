"""Runs a transfer and measures it, or ends it half-way."""
import os
import resource
import time
from dataclasses import dataclass, field

from bench_ends import End, RunFailed, last_words, read, start_daemon

SAMPLE_SECONDS = 0.05  # the longest time between two samples of the memory; the first come sooner


@dataclass
class Transfer:
    """What one run consists of."""
    near: object  # Command
    far: object   # Command of a daemon that listens on the port, or None
    port: int
    log: str
    seconds_max: float
    far_ends: bool = False  # the far end is no daemon: it ends by itself, and the run with it


@dataclass
class Measurement:
    seconds: float          # from the start of the near end's command to the end of the run; a daemon listens already
    near_cpu_seconds: float  # user and system, of all processes of the end, from their start to their end
    far_cpu_seconds: float
    near_peak_bytes: int    # sum over the end's processes of VmHWM, by samples
    far_peak_bytes: int
    other_cpu_seconds: float  # what the machine did meanwhile beside both ends: noise
    steal_seconds: float    # what the host of a virtual machine took meanwhile
    output: str
    fgsync: dict = field(default_factory=dict)  # its own report
    ssh_start_seconds: float = 0.0  # what a login that does nothing took in the same round, if there is one in it

    @property
    def cpu_seconds(self):
        return self.near_cpu_seconds + self.far_cpu_seconds

    @property
    def copy_seconds(self):
        """Without the start over ssh; at least what a clock can tell from nothing."""
        return max(0.001, self.seconds - self.ssh_start_seconds)


def machine_ticks():
    """Busy and stolen seconds of all cores since boot (proc(5), /proc/stat)."""
    user, nice, system, _, _, irq, softirq, steal = map(int, read("/proc/stat").split("\n")[0].split()[1:9])
    per_second = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / per_second, steal / per_second


def own_cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(transfer):
    """One transfer, from beginning to end."""
    far = start_daemon(transfer.far, transfer.port, transfer.log + ".far") if transfer.far else None
    near = None
    try:
        busy, stolen, own = *machine_ticks(), own_cpu_seconds()
        near = End(transfer.near, transfer.log + ".near")
        ends = [end for end in (near, far) if end]
        deadline = time.monotonic() + transfer.seconds_max
        wait_for(near, ends, deadline, transfer)
        result, seconds_after = near.result(), 0.0
        check_status(transfer.near, near, result)
        if transfer.far_ends:
            near_ended = time.monotonic()
            wait_for(far, [far], deadline, transfer)
            seconds_after = time.monotonic() - near_ended
        busy_after, stolen_after = machine_ticks()
        far_result = far.stop() if far else {"cpu_seconds": 0.0}
        if transfer.far_ends:
            check_status(transfer.far, far, far_result)
        both = result["cpu_seconds"] + far_result["cpu_seconds"]
        return Measurement(
            seconds=result["seconds"] + seconds_after, near_cpu_seconds=result["cpu_seconds"],
            far_cpu_seconds=far_result["cpu_seconds"], near_peak_bytes=near.peak_bytes,
            far_peak_bytes=far.peak_bytes if far else 0,
            other_cpu_seconds=max(0.0, busy_after - busy - both - (own_cpu_seconds() - own)),
            steal_seconds=stolen_after - stolen, output=read(near.output))
    finally:
        for end in filter(None, (near, far)):
            end.stop()


def check_status(command, end, result):
    if result["status"] != 0:
        raise RunFailed(f"{command.words[0]} ended with {result['status']}: {last_words(end)}")


def wait_for(end, sampled, deadline, transfer):
    """Until this end has ended, taking samples of the memory meanwhile."""
    pause = SAMPLE_SECONDS / 16
    while not end.wait(pause):
        pause = min(SAMPLE_SECONDS, 2 * pause)
        for each in sampled:
            each.sample()
        if time.monotonic() > deadline:
            raise RunFailed(f"{transfer.near.words[0]} is not ready after {transfer.seconds_max} s: {last_words(end)}")


def interrupt(transfer, far_enough):
    """The same, ended as by Ctrl-C or a scheduler when far_enough() says so."""
    far = start_daemon(transfer.far, transfer.port, transfer.log + ".far") if transfer.far else None
    near = None
    try:
        near = End(transfer.near, transfer.log + ".near")
        deadline = time.monotonic() + transfer.seconds_max
        while not far_enough():
            if near.wait(SAMPLE_SECONDS / 5):
                raise RunFailed(f"{transfer.near.words[0]} ended before it was interrupted: {last_words(near)}")
            if time.monotonic() > deadline:
                raise RunFailed(f"{transfer.near.words[0]} is not half-way after {transfer.seconds_max} s")
    finally:
        for end in filter(None, (near, far)):
            end.stop()
