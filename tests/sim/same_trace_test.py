#!/usr/bin/env python3
"""Runs the same seeds three times: one behind the other in one process, spread over three, and the first few alone.
The same seed must give the same trace, whatever ran before it.

usage: same_trace_test.py SIMULATE
"""
import re
import subprocess
import sys

SEEDS = 60
ALONE = 10


def traces(*command):
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(re.findall(r"^seed (\d+): .*trace ([0-9a-f]{16})$", run.stdout, re.MULTILINE))


def main():
    simulate = sys.argv[1]
    together = traces(simulate, f"--seeds={SEEDS}", "--jobs=1", "--traces")
    spread = traces(simulate, f"--seeds={SEEDS}", "--jobs=3", "--traces")
    alone = {}
    for seed in range(1, ALONE + 1):
        alone.update(traces(simulate, f"--seed={seed}"))
    differing = [seed for seed, trace in together.items() if not trace == spread[seed] == alone.get(seed, trace)]
    print(f"{len(together)} seeds, differing: {differing}")
    sys.exit(0 if len(together) == SEEDS and len(alone) == ALONE and not differing else 1)


main()
