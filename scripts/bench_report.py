"""Medians, ratios and the tables that scripts/bench prints."""
import os
import platform
import shutil
from statistics import median
from subprocess import DEVNULL, PIPE, STDOUT, run

from bench_run import read

REFERENCE = "rsync daemon"
# What fgsync is to reach against the reference: the data set, the competitor, the words for it, the ratio.
WANTED = [
    ("BIG", "fgsync plain", "BIG plain: fgsync/rsync-daemon throughput ratio", 1.5),
    ("BIG", "fgsync sealed", "BIG sealed: fgsync/rsync-daemon throughput ratio", 1.0),
    ("SMALL", "fgsync plain", "SMALL files/s plain: fgsync/rsync-daemon ratio", 1.0),
    ("SMALL", "fgsync sealed", "SMALL files/s sealed: fgsync/rsync-daemon ratio", 1.0),
]


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in read("/proc/cpuinfo").splitlines()
                if line.startswith("model name")), platform.machine())
    memory = next(int(line.split()[1]) * 1024 for line in read("/proc/meminfo").splitlines()
                  if line.startswith("MemTotal"))
    system = next((line.split("=", 1)[1].strip('"') for line in read("/etc/os-release").splitlines()
                   if line.startswith("PRETTY_NAME=")), platform.system())
    return {"cores": len(os.sched_getaffinity(0)), "cpu": cpu, "memory_bytes": memory, "kernel": platform.release(),
            "system": system}


def versions(fgsync):
    """The first line that each tool says about its version."""
    found = {}
    for name, words in (("fgsync", [fgsync, "--version"]), ("rsync", ["rsync", "--version"]), ("ssh", ["ssh", "-V"]),
                        ("cp", ["cp", "--version"])):
        if shutil.which(words[0]):
            said = run(words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, text=True, check=False).stdout.strip()
            found[name] = said.splitlines()[0] if said else "unknown"
    return found


def ratios(runs, name, clock=lambda run: run.seconds):
    """How many times as fast as the reference, round by round; empty when either is missing."""
    return [reference.seconds / clock(own) for own, reference in zip(runs.get(name, []), runs.get(REFERENCE, []))]


def copy_clock(run):
    return run.copy_seconds


def table(data_set, runs):
    """runs: {competitor's name: [Measurement of each repetition]}; returns lines."""
    files = data_set.name != "BIG"
    amount = data_set.count if files else data_set.bytes() / 1e9
    rows = [["", "seconds", "files/s" if files else "GB/s", "less ssh", "CPU s", "CPU s/GB", "MiB near", "MiB far",
             "other CPU s", "x rsync daemon (least..most)"]]
    for name, measured in runs.items():
        def middle(value):
            return median(map(value, measured))

        def speed(seconds):
            return f"{amount / seconds:,.0f}" if files else f"{amount / seconds:.2f}"
        cpu, found = middle(lambda run: run.cpu_seconds), ratios(runs, name)
        rows.append([
            name, f"{middle(lambda run: run.seconds):.3f}", speed(middle(lambda run: run.seconds)),
            speed(middle(copy_clock)) if measured[0].ssh_start_seconds else "",
            f"{cpu:.2f}", f"{cpu / (data_set.bytes() / 1e9):.2f}",
            f"{middle(lambda run: run.near_peak_bytes) / 2**20:.0f}",
            f"{middle(lambda run: run.far_peak_bytes) / 2**20:.0f}",
            f"{middle(lambda run: run.other_cpu_seconds):.2f}",
            f"{median(found):.2f} ({min(found):.2f}..{max(found):.2f})" if found else ""])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [f"{data_set.name}: {data_set.count} files, {data_set.bytes() / 1e9:.3f} GB, medians of "
            f"{max(map(len, runs.values()))}"] + [
        "  " + "  ".join(cell.rjust(width) if column else cell.ljust(width)
                         for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


FOOTNOTES = """\
seconds: wall time of the command, with its start over ssh where there is one; daemons listen already
less ssh: the speed without the time that a login over ssh which does nothing took in the same round
CPU s: user and system of all processes of both ends (RUSAGE_CHILDREN of a subreaper), the daemon's start included
MiB: most at one time, the sum of VmHWM over the processes of an end, sampled every 50 ms; too short runs show 0
other CPU s: what the machine did meanwhile beside both ends; a run with much of it is spoilt
x rsync daemon: ratio of speeds within the same round, the median over the rounds"""


def wanted(results, reasons):
    """results: {data set's name: runs}; a list of {line, ratio, ratio_less_ssh, wanted} for what is to be reached."""
    found = []
    for data_set, name, words, least in WANTED:
        if data_set not in results:
            continue
        runs = results[data_set]
        pairs = ratios(runs, name)
        if not pairs:
            why = reasons.get(name) or reasons.get(REFERENCE) or "left out"
            found.append({"line": f"{words} not measured: {why} (wanted >= {least:.1f})", "ratio": None,
                          "ratio_less_ssh": None, "wanted": least})
            continue
        ratio, less_ssh = median(pairs), median(ratios(runs, name, copy_clock))
        found.append({"line": f"{words} {ratio:.2f} (wanted >= {least:.1f}); without the start over ssh {less_ssh:.2f}",
                      "ratio": ratio, "ratio_less_ssh": less_ssh, "wanted": least})
    return found
