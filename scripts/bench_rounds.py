"""Every competitor in turn with one data set, round by round: the target made ready, the run measured, the result
checked."""
import os
import shutil
import subprocess
import sys

import bench_sets
import bench_trees
from bench_competitors import Competitors, fgsync_report
from bench_ends import RunFailed
from bench_memory import shortage, warm
from bench_run import interrupt, measure
from bench_sets import Start

MARGIN_BYTES = bench_sets.GIB  # for the tools themselves and their sockets


def say(text):
    print(text, file=sys.stderr, flush=True)


class Rounds:
    def __init__(self, folder, fgsync, options):
        self.options = options
        self.margin_bytes = 0 if options.smoke else MARGIN_BYTES
        self.seconds_max = 60 if options.smoke else 900
        self.source, self.target = os.path.join(folder, "source"), os.path.join(folder, "target")
        self.logs = os.path.join(folder, "logs")
        os.mkdir(self.logs)
        os.mkdir(os.path.join(folder, "setup"))
        self.competitors = Competitors(os.path.join(folder, "setup"), fgsync, self.source, self.target)
        self.failures = []

    def run_set(self, data_set, competitors):
        """All rounds; {name: [Measurement]} without competitors that failed or cannot begin so."""
        if why := shortage(self.options.directory, 2 * data_set.memory(), self.margin_bytes):
            sys.exit(f"bench: {data_set.name}: {why}")
        say(f"{data_set.name}: making {data_set.count()} files")
        digests = data_set.make(self.source)
        sizes = bench_trees.sizes(self.source)
        runs = {competitor.name: [] for competitor in competitors if data_set.start in competitor.starts}
        for number in range(1, self.options.repetitions + 1):
            login_seconds = self.login_seconds()
            for competitor in [known for known in competitors if known.name in runs]:
                try:
                    measured = self.run_once(data_set, competitor)
                    self.check_target(sizes, digests if number == 1 else None)
                except RunFailed as failure:
                    self.failures.append(f"{data_set.name}, {competitor.name}: {failure}")
                    say(self.failures[-1])
                    del runs[competitor.name]
                    shutil.rmtree(self.target, ignore_errors=True)  # the next one is not to inherit what is wrong
                    continue
                measured.ssh_start_seconds = login_seconds if competitor.over_ssh else 0.0
                runs[competitor.name].append(measured)
                say(f"{data_set.name} {number}/{self.options.repetitions} {competitor.name}: {measured.seconds:.3f} s")
        for tree in (self.source, self.target):
            shutil.rmtree(tree, ignore_errors=True)
        return runs

    def login_seconds(self):
        login = self.competitors.login
        if login.missing or self.options.smoke:
            return self.competitors.first_login_seconds
        return measure(self.transfer(login, Start.EMPTY)).seconds

    def transfer(self, competitor, start, bytes_per_second=0):
        log = os.path.join(self.logs, competitor.name.replace(" ", "-"))
        return self.competitors.transfer(competitor, start, log, self.seconds_max, bytes_per_second)

    def run_once(self, data_set, competitor):
        self.make_target_ready(data_set, competitor)
        warm(data_set.memory() + self.margin_bytes)
        measured = measure(self.transfer(competitor, data_set.start))
        if competitor.is_fgsync():
            measured.fgsync = fgsync_report(competitor, measured)
            if data_set.start is Start.INTERRUPTED and not measured.fgsync["resumed_bytes"]:
                raise RunFailed("nothing of the interrupted run was used")
        return measured

    def make_target_ready(self, data_set, competitor):
        if data_set.start is Start.EQUAL:
            if not os.path.exists(self.target):  # a run changes nothing in it, so one is enough for all
                subprocess.run(["cp", "-a", self.source, self.target], check=True)
            return
        shutil.rmtree(self.target, ignore_errors=True)
        os.mkdir(self.target)
        if data_set.start is Start.INTERRUPTED:
            warm(data_set.memory() + self.margin_bytes)
            half = data_set.bytes() / 2
            interrupt(self.transfer(competitor, data_set.start, data_set.bytes_per_second),
                      lambda: bench_trees.allocated_bytes(self.target) >= half)

    def check_target(self, sizes, digests):
        wrong = bench_trees.difference(sizes, bench_trees.sizes(self.target))
        if not wrong and digests:
            wrong = bench_trees.difference(digests, bench_trees.digests(self.target))
        if wrong:
            raise RunFailed(f"the result is wrong: {wrong}")
