"""What every end-to-end test stands on: a directory of its own, fgsync started with a hard time limit, and processes
ended by their recorded ids alone.

The environment says what to test (CMakeLists.txt sets it):
  FGSYNC_BINARY          the program
  FGSYNC_CTL_BINARY      fgsyncctl
  FGSYNC_IO_ENGINE       uring or posix, for both sides: fgsync itself reads it
  FGSYNC_TEST_SANITIZER  address or thread when the program was built so, else empty
  FGSYNC_TEST_SCALE      small, normal (default) or full: how large the large trees are
"""
import contextlib
import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = os.environ.get("FGSYNC_BINARY", "fgsync")
CTL_BINARY = os.environ.get("FGSYNC_CTL_BINARY", "fgsyncctl")
ENGINE = os.environ.get("FGSYNC_IO_ENGINE", "posix")
SANITIZER = os.environ.get("FGSYNC_TEST_SANITIZER", "")
SCALE = os.environ.get("FGSYNC_TEST_SCALE", "normal")
IS_ROOT = os.geteuid() == 0
# ThreadSanitizer slows a run down by up to 20 times.
PATIENCE = 10 if SANITIZER else 1
USER_ID = 65534  # nobody, on every Linux

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def by_scale(small, normal, full):
    return {"small": small, "normal": normal, "full": full}[SCALE]


def wait_until(condition, what, seconds=10):
    """Polls until `condition()` is true and returns its value; fails the test after so long."""
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds * PATIENCE} s: {what}")
        time.sleep(0.01)


def is_alive(pid):
    """Whether the process runs. One that only waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def fast_directory():
    """Where the tests' directories stand: in memory where there is room, as every run flushes a whole file system,
    which on a busy disk takes long. mounts.py is for tests that want a certain file system."""
    if "TMPDIR" in os.environ:
        return os.environ["TMPDIR"]
    try:
        memory = os.statvfs("/dev/shm")
    except FileNotFoundError:
        return None
    usable = memory.f_bavail * memory.f_frsize >= 3 * GIB and not memory.f_flag & os.ST_NOEXEC
    return "/dev/shm" if usable else None


def children_of(pid):
    """Ids of the processes that `pid` has started, directly or through others."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                for child in map(int, file.read().split()):
                    found += [child, *children_of(child)]
    return found


class Result:
    """How a run of a program ended."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def json(self):
        return json.loads(self.out)

    def text(self):
        return self.err.decode("utf-8", "backslashreplace")


class Run:
    """A program under way. Its output goes to files, so that it never waits for us to read it."""

    def __init__(self, case, argv, **options):
        self.out = tempfile.TemporaryFile(dir=case.path("output"))
        self.err = tempfile.NamedTemporaryFile(dir=case.path("output"))
        self.started = time.monotonic()
        options = {"stdin": subprocess.DEVNULL, "stdout": self.out, "stderr": self.err, **options}
        self.process = subprocess.Popen(argv, start_new_session=True, **options)
        self.pid = self.process.pid

    def wait(self, seconds=120):
        try:
            self.process.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            said = self.said()
            self.end()
            raise AssertionError(f"hangs: {self.process.args} after {seconds * PATIENCE} s: {said}") from None
        took = time.monotonic() - self.started
        self.out.seek(0)
        return Result(self.process.returncode, self.out.read(), self.said_bytes(), took)

    def said_bytes(self):
        """Standard error so far."""
        with open(self.err.name, "rb") as file:
            return file.read()

    def said(self):
        return self.said_bytes().decode("utf-8", "backslashreplace")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Ends the program, if it still runs, and what it has started."""
        doomed = children_of(self.pid) if self.process.poll() is None else []
        if self.process.poll() is None:
            self.process.kill()
        for pid in doomed:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.out.close()
        self.err.close()


class Case(unittest.TestCase):
    """A test with a directory of its own, which is removed with everything that was started."""

    maxDiff = 4000

    def setUp(self):
        self.directory = self.make_directory()
        self.home = self.path("home")
        os.mkdir(self.home)
        os.mkdir(self.path("output"))
        self.far_pids_file = self.path("far-pids")

    def make_directory(self):
        directory = tempfile.mkdtemp(prefix="fgsync-", dir=fast_directory())
        os.chmod(directory, 0o755)
        self.addCleanup(subprocess.run, ["rm", "-rf", directory], check=True)
        return directory

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def environment(self, **more):
        kept = ("PATH", "LANG", "FGSYNC_IO_ENGINE", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
        chosen = {name: os.environ[name] for name in kept if name in os.environ}
        return {**chosen, "HOME": self.home, "TERM": "dumb", **more}

    def start(self, *arguments, before=(), program=BINARY, **options):
        """Starts fgsync; `before` is what is to start it, as setpriv."""
        options.setdefault("env", self.environment())
        run = Run(self, [*before, program, *arguments], **options)
        self.addCleanup(run.end)
        return run

    def fgsync(self, *arguments, seconds=120, **options):
        return self.start(*arguments, **options).wait(seconds)

    def expect(self, code, result):
        """Fails with what fgsync said if it did not end so."""
        self.assertEqual(code, result.code, f"standard error:\n{result.text()}")
        return result

    def script(self, name, text):
        """An executable shell script."""
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def far_program(self, how="exec", name="far-fgsync", program=BINARY):
        """A script to start as the far side's fgsync: it records its process id first."""
        open(self.far_pids_file, "a").close()
        os.chmod(self.far_pids_file, 0o666)
        return self.script(name, f'echo $$ >> {self.far_pids_file}\n{how} {program} "$@"\n')

    def far_pids(self):
        """Process ids of the far sides started so far."""
        try:
            with open(self.far_pids_file) as file:
                return [int(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def wait_for_far_side(self):
        return wait_until(self.far_pids, "the far side starts")[-1]

    def wait_gone(self, pids, seconds=5):
        wait_until(lambda: not any(map(is_alive, pids)), f"processes {pids} end", seconds)


def kernel_refuses_uring():
    """Why io_uring_setup(2) (number 425 on every architecture) is refused, or ''."""
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(425, 1, parameters)
    if fd >= 0:
        os.close(fd)
        return ""
    return os.strerror(ctypes.get_errno())


needs_root = unittest.skipUnless(IS_ROOT, "not root")
not_sanitized = unittest.skipIf(SANITIZER, f"the {SANITIZER} sanitizer needs memory of its own")


def main():
    """Runs the tests of the calling module. Exit status 77 means skipped, for CMake."""
    refused = kernel_refuses_uring() if ENGINE == "uring" else ""
    if refused:
        print(f"skipped: this kernel refuses io_uring: {refused}")
        sys.exit(77)
    # A group of its own must not make a background job of us that is stopped when it writes.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    unittest.main(verbosity=2)


assert errno.ENOSPC == 28  # these are Linux tests
