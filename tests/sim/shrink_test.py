#!/usr/bin/env python3
"""Plants a bug, lets a campaign find it in a few seeds, and checks that each command which the campaign prints fails as
well, with no more files and faults than the seed has, and that one at least has fewer: a seed may be small as it is.

usage: shrink_test.py SOURCE-TREE BUILD-DIRECTORY
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import mutate

# It takes a fault to be noticed, a file to be noticed in, and no luck.
BUG = "short_write_ignored"


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)


def shrunk_by(program, options):
    """How many files and faults fewer the printed command has than the whole seed; None when it does not fail."""
    whole = output_of(program, options[0]).stdout
    shrunk = output_of(program, *options)
    print(whole, shrunk.stdout, sep="")
    if shrunk.returncode != 1 or "VIOLATED" not in shrunk.stdout:
        return None
    limits = {name: int(value) for name, value in (option[2:].split("=") for option in options)}
    sizes = {"files": r", (\d+) files,", "faults": r", (\d+) faults,"}
    had = {name: int(re.search(pattern, whole).group(1)) for name, pattern in sizes.items()}
    fewer = [had[name] - limits.get(name, had[name]) for name in sizes]
    return sum(fewer) if min(fewer) >= 0 else None


def main():
    tree, build_directory = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as work:
        program = mutate.build(tree, build_directory, mutate.mutations(tree)[BUG], pathlib.Path(work))
        campaign = output_of(program, "--seeds=20000", "--jobs=2", "--failures=4").stdout
        print(campaign)
        commands = re.findall(r"^replay: scripts/simulate (.*) --trace$", campaign, re.MULTILINE)
        fewer = [shrunk_by(program, command.split()) for command in commands]
    print("fewer files and faults:", fewer)
    sys.exit(0 if len(fewer) >= 4 and None not in fewer and sum(fewer) > 0 else 1)


main()
