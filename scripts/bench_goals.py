"""What fgsync is to reach beside the others, and whether it did."""
from dataclasses import dataclass
from statistics import median

REFERENCE = "rsync daemon"
MEMORY_MIB = 96  # of each side
PLAIN, SEALED = "fgsync plain", "fgsync sealed"


@dataclass
class Goal:
    data_set: str
    name: str
    reference: str
    bound: float
    cpu: bool = False  # CPU seconds, at most; else speed, at least


GOALS = [
    *(goal for data_set in ("BIG", "CKPT") for goal in (
        Goal(data_set, PLAIN, REFERENCE, 2.4),
        Goal(data_set, SEALED, REFERENCE, 1.5),
        Goal(data_set, SEALED, "rsync over ssh", 3.5))),
    *(goal for name, floor in ((PLAIN, "floor plain"), (SEALED, "floor sealed")) for goal in (
        Goal("BIG", name, floor, 0.9), Goal("BIG", name, floor, 1.15, cpu=True))),
    *(goal for data_set in ("SMALL", "TINY") for goal in (
        Goal(data_set, PLAIN, REFERENCE, 2.0), Goal(data_set, PLAIN, "tar | socat", 1.0))),
    Goal("RESYNC", PLAIN, REFERENCE, 2.0),
]


def ratios(runs, name, reference=REFERENCE, clock=lambda run: run.seconds):
    """How many times as fast as the reference, round by round; empty when either is missing."""
    return [clock(other) / clock(own) for own, other in zip(runs.get(name, []), runs.get(reference, []))]


def cpu_ratios(runs, name, reference):
    return [own.cpu_seconds / max(0.001, other.cpu_seconds)
            for own, other in zip(runs.get(name, []), runs.get(reference, []))]


def judge(goal, runs, reasons):
    """{line, ratio, ratio_less_ssh, wanted, met} for one goal."""
    words = f"{goal.data_set}: {goal.name} to {goal.reference}, {'CPU seconds' if goal.cpu else 'speed'}"
    bound = f"(wanted {'at most' if goal.cpu else 'at least'} {goal.bound:.2f})"
    pairs = (cpu_ratios if goal.cpu else ratios)(runs, goal.name, goal.reference)
    if not pairs:
        why = reasons.get(goal.name) or reasons.get(goal.reference) or "left out"
        return {"line": f"{words} not measured: {why} {bound}", "ratio": None, "ratio_less_ssh": None,
                "wanted": goal.bound, "met": None}
    ratio, less_ssh, line = median(pairs), None, f"{words} {median(pairs):.2f} {bound}"
    if not goal.cpu:
        less_ssh = median(ratios(runs, goal.name, goal.reference, lambda run: run.copy_seconds))
        line += f"; without starts over ssh {less_ssh:.2f}"
    met = ratio <= goal.bound if goal.cpu else ratio >= goal.bound
    return {"line": line, "ratio": ratio, "ratio_less_ssh": less_ssh, "wanted": goal.bound, "met": met}


def memory(results):
    """The same for the most memory that a side of fgsync took in any run; None without one."""
    peaks = [(max(run.near_peak_bytes, run.far_peak_bytes) / 2**20, data_set, name)
             for data_set, runs in results.items() for name, measured in runs.items() if name.startswith("fgsync")
             for run in measured]
    if not peaks:
        return None
    most, data_set, name = max(peaks)
    return {"line": f"memory of a side of fgsync: at most {most:.0f} MiB, {name} of {data_set} "
                    f"(wanted under {MEMORY_MIB} MiB)", "mib": most, "wanted": MEMORY_MIB, "met": most < MEMORY_MIB}


def wanted(results, reasons):
    """results: {data set's name: runs}; what is to be reached with these sets."""
    found = [judge(goal, results[goal.data_set], reasons) for goal in GOALS if goal.data_set in results]
    return found + [entry for entry in [memory(results)] if entry]
