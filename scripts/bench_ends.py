"""One end of a transfer: its processes, their CPU and their peak memory.

Each end runs under a keeper, a process of ours that adopts whatever the end's processes leave behind (prctl(2),
PR_SET_CHILD_SUBREAPER). So the end is exactly the keeper's descendants, and its CPU is the keeper's RUSAGE_CHILDREN
(getrusage(2)) when the last has ended; no privileges and no control groups are needed.
"""
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import time
from dataclasses import dataclass

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # <sys/prctl.h>
ENDING_SIGNALS = {signal.SIGINT, signal.SIGTERM}
START_SECONDS = 10  # a daemon that does not listen by then never will
GRACE_SECONDS = 2   # from the polite to the final signal


class RunFailed(Exception):
    pass


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def descendants(pid):
    """All processes below this one; needs a kernel with /proc/PID/task/TID/children, else there are none."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        try:
            tasks = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for task in tasks:
            children = [int(word) for word in read(f"/proc/{parent}/task/{task}/children").split()]
            found += children
            waiting += children
    return found


def high_water_bytes(pid):
    """VmHWM of proc(5): the most memory that the process has had resident since its exec."""
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def listens(port):
    """Without connecting, which a daemon would have to answer."""
    return any(f"0100007F:{port:04X} 00000000:0000 0A" in line for line in read("/proc/net/tcp").splitlines())


@dataclass
class Command:
    words: list
    environment: dict


class End:
    """The processes of one end. stop() ends what still runs; an End that is not stopped dies with this program."""

    def __init__(self, command, log):
        self.output, self.errors = log + ".out", log + ".err"
        self.peak_bytes = 0
        reading, writing = os.pipe()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)  # until it is known what is to be ended
        self._keeper = os.fork()
        if self._keeper == 0:
            try:
                os.close(reading)
                _keep(command, self.output, self.errors, writing)
            finally:
                os._exit(0)
        os.close(writing)
        self._reports = os.fdopen(reading, "rb", buffering=0)  # else wait() would miss what is in the buffer
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            started = self._next_report()
        except BaseException:
            self.stop()
            raise
        if "failure" in started:
            self._reap()
            raise RunFailed(started["failure"])

    def sample(self):
        self.peak_bytes = max(self.peak_bytes, sum(map(high_water_bytes, descendants(self._keeper))))

    def wait(self, seconds):
        """True when all processes of the end have ended; result() then tells how it went."""
        return bool(select.select([self._reports], [], [], seconds)[0])

    def result(self):
        """{status, seconds, cpu_seconds}: of the command's own process the first two."""
        report = self._next_report()
        self._reap()
        if "failure" in report:
            raise RunFailed(report["failure"])
        return report

    def stop(self):
        """Ends the command's own process, and by force whatever has not followed within the grace time."""
        if self._keeper is None:
            return None
        os.kill(self._keeper, signal.SIGTERM)
        return self.result()

    def _next_report(self):
        line = self._reports.readline()
        return json.loads(line) if line else {"failure": "the keeper of a process has died"}

    def _reap(self):
        os.waitpid(self._keeper, 0)
        self._keeper = None
        self._reports.close()


def _keep(command, output, errors, report_fd):
    """The keeper's whole life."""
    os.setsid()  # an interrupt from the terminal is for the parent alone, which then stops us
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    process, ending = None, False

    def end(*_):
        nonlocal ending
        ending = True
        if process and process.returncode is None:
            process.terminate()
        signal.alarm(GRACE_SECONDS)

    def end_all(*_):
        for pid in descendants(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        signal.alarm(1)  # one may have been about to start another

    def report(**values):
        try:
            os.write(report_fd, (json.dumps(values) + "\n").encode())
        except BrokenPipeError:
            pass  # the parent is gone; ending the processes is still to be done

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end_all)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
    began = time.monotonic()
    try:
        with open(output, "wb") as out, open(errors, "wb") as err:
            process = subprocess.Popen(command.words, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       env=command.environment)
    except OSError as error:
        return report(failure=f"{command.words[0]}: {error.strerror}")

    if ending:
        process.terminate()
    report(started=True)
    status = process.wait()
    seconds = time.monotonic() - began
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report(status=status, seconds=seconds, cpu_seconds=used.ru_utime + used.ru_stime)


def start_daemon(command, port, log):
    """Starts a daemon that is to listen on this port of 127.0.0.1, and returns it when it does."""
    end = End(command, log)
    deadline = time.monotonic() + START_SECONDS
    try:
        while not listens(port):
            if end.wait(0.01):
                raise RunFailed(f"{command.words[0]} ended at once: {last_words(end)}")
            if time.monotonic() > deadline:
                raise RunFailed(f"{command.words[0]} does not listen: {last_words(end)}")
    except BaseException:
        end.stop()
        raise
    return end


def last_words(end):
    return " | ".join((read(end.errors) or read(end.output)).strip().splitlines()[-3:]) or "it said nothing"
