"""What a run asked of the kernel, by strace."""
import os
import re
import subprocess
import unittest

from support import SANITIZER

SYNCS = ("fsync", "fdatasync", "syncfs", "sync_file_range", "sync")
RENAMES = ("rename", "renameat", "renameat2")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "fallocate")

_COMPLETE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)")
_BEGINNING = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
_END = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (-?\d+)")
_NAMES = re.compile(r'\d+<([^>]*)>, "([^"]*)"')


def why_no_strace():
    if SANITIZER:
        return f"the {SANITIZER} sanitizer does not run under ptrace"
    try:
        done = subprocess.run(["strace", "-e", "trace=none", "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "no strace"
    return "" if done.returncode == 0 else f"strace may not trace: {done.stderr.strip()}"


_WHY_NOT = why_no_strace()
needs_strace = unittest.skipIf(_WHY_NOT, _WHY_NOT)


class Call:
    """One call that returned; `begun` and `ended` are its places in the order of all."""

    def __init__(self, name, arguments, result, begun, ended):
        self.name, self.arguments, self.result, self.begun, self.ended = name, arguments, result, begun, ended
        descriptor = re.match(r"\d+<([^>]*)>", arguments)
        self.path = descriptor.group(1) if descriptor else None
        if name in RENAMES:
            (self.path, self.to) = [f"{directory}/{name}" for directory, name in _NAMES.findall(arguments)]

    def __repr__(self):
        return f"{self.begun}: {self.name}({self.arguments[:120]}) = {self.result}"


def under_strace(case, *expressions, calls=(*SYNCS, *RENAMES, *WRITES)):
    """(what starts fgsync so, the file with what was traced)"""
    log = case.path("trace")
    inject = [word for expression in expressions for word in ("-e", expression)]
    return ["strace", "-f", "-y", "-qq", "-s", "256", "-o", log, "-e", "trace=" + ",".join(calls), *inject], log


def calls_of(log):
    calls, begun = [], {}
    with open(log, encoding="utf-8", errors="replace") as file:
        for place, line in enumerate(file):
            if match := _COMPLETE.match(line):
                calls.append(Call(match[2], match[3], int(match[4]), place, place))
            elif match := _BEGINNING.match(line.rstrip("\n")):
                begun[match[1]] = (match[3], place)
            elif match := _END.match(line):
                arguments, start = begun.pop(match[1])
                calls.append(Call(match[2], arguments + match[3], int(match[4]), start, place))
    return sorted(calls, key=lambda call: call.ended)


def is_below_state(path):
    return "/.fgsync/" in path or os.path.basename(path) == ".fgsync"
