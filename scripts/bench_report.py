"""What scripts/bench says: the machine, the versions, a table for each data set, and all of it as JSON."""
import dataclasses
import json
import os
import platform
import shutil
from statistics import median
from subprocess import DEVNULL, PIPE, STDOUT, run

from bench_ends import read
from bench_goals import ratios
from bench_sets import Start


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
    """The first line in which each tool says its version."""
    found = {}
    for name, words in (("fgsync", [fgsync, "--version"]), ("rsync", ["rsync", "--version"]), ("ssh", ["ssh", "-V"]),
                        ("tar", ["tar", "--version"]), ("socat", ["socat", "-V"]), ("cp", ["cp", "--version"])):
        if shutil.which(words[0]):
            said = run(words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, text=True, check=False).stdout.splitlines()
            found[name] = next((line.strip() for line in said if any(map(str.isdigit, line))), "unknown")
    return found


def header(known_machine, known_versions):
    return [f"{known_machine['cores']} cores, {known_machine['cpu']}, {known_machine['memory_bytes'] / 2**30:.0f} GiB; "
            f"Linux {known_machine['kernel']}, {known_machine['system']}",
            *(f"{name}: {version}" for name, version in known_versions.items())]


def table(data_set, runs):
    """runs: {competitor's name: [Measurement of each repetition]}; returns lines."""
    rows = [["", "seconds", data_set.unit(), "less ssh", "CPU s near", "far", "CPU s/GB", "MiB near", "MiB far",
             "other CPU s", "x rsync daemon (least..most)"]]
    for name, measured in runs.items():
        def middle(value):
            return median(map(value, measured))

        def speed(seconds):
            each = data_set.amount() / seconds
            return f"{each:,.0f}" if data_set.counts_files else f"{each:.2f}"
        found = ratios(runs, name)
        rows.append([
            name, f"{middle(lambda run: run.seconds):.3f}", speed(middle(lambda run: run.seconds)),
            speed(middle(lambda run: run.copy_seconds)) if measured[0].ssh_start_seconds else "",
            f"{middle(lambda run: run.near_cpu_seconds):.2f}", f"{middle(lambda run: run.far_cpu_seconds):.2f}",
            f"{middle(lambda run: run.cpu_seconds) / (data_set.bytes() / 1e9):.2f}",
            f"{middle(lambda run: run.near_peak_bytes) / 2**20:.0f}",
            f"{middle(lambda run: run.far_peak_bytes) / 2**20:.0f}",
            f"{middle(lambda run: run.other_cpu_seconds):.2f}",
            f"{median(found):.2f} ({min(found):.2f}..{max(found):.2f})" if found else ""])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    begins = "" if data_set.start is Start.EMPTY else f"; the target has {data_set.start.value}"
    return [f"{data_set.name}: {data_set.count()} files, {data_set.bytes() / 1e9:.3f} GB, medians of "
            f"{max(map(len, runs.values()))}{begins}"] + [
        "  " + "  ".join(cell.rjust(width) if column else cell.ljust(width)
                         for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


FOOTNOTES = """\
seconds: wall time of the command, with its start over ssh where there is one; daemons listen already
GB/s, files/s: all of the set by that time, whatever of it stood at the target before
less ssh: the speed without the time that a login over ssh which does nothing took in the same round
CPU s: user and system of all processes of an end (RUSAGE_CHILDREN of a subreaper), the daemon's start included
MiB: most at one time, the sum of VmHWM over the processes of an end, sampled every 50 ms; too short runs show 0
other CPU s: what the machine did meanwhile beside both ends; a run with much of it is spoilt
x rsync daemon: ratio of speeds within the same round, the median over the rounds"""


def document(known_machine, known_versions, results, reasons, wanted, failures):
    """All of it; `results` is {name: (data set, runs)}, `reasons` says of competitors why they are left out."""
    def flat(measurement):
        values = dataclasses.asdict(measurement)
        del values["output"]
        return values
    sets = {name: {"files": data_set.count(), "bytes": data_set.bytes(), "amount": data_set.amount(),
                   "unit": data_set.unit(), "start": data_set.start.name.lower(),
                   "runs": {competitor: list(map(flat, measured)) for competitor, measured in runs.items()}}
            for name, (data_set, runs) in results.items()}
    return {"machine": known_machine, "versions": known_versions, "left_out": reasons, "failures": failures,
            "wanted": wanted, "sets": sets}


def write_json(path, values):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(values, file, indent=1)
        file.write("\n")
