#!/usr/bin/env python3
"""fgsyncctl verify SOURCE TARGET: two trees by their contents, one of them behind a real sshd."""
import contextlib
import os
import shutil
import signal
import subprocess

from ssh_server import SshCase, each_way
from support import CTL_BINARY, KIB, MIB, SANITIZER, by_scale, main, wait_until
from trees import listing, make_kinds, make_names, make_small_files, write, write_large


class Compare(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)

    def copy(self):
        """Without fgsync: no state."""
        shutil.copytree(self.source, self.target, symlinks=True)

    def start_comparison(self, way, *options, source=None, target=None, **more):
        source, target = source or self.source, target or self.target
        places = {"local": [source, target], "push": [*self.over_ssh(), source, f"near:{target}"],
                  "pull": [*self.over_ssh(), f"near:{source}", target]}
        return self.start("verify", *options, *places[way], program=CTL_BINARY, **more)

    def compare(self, code, way, *options, seconds=120, **more):
        return self.expect(code, self.start_comparison(way, *options, **more).wait(seconds))

    def assert_found(self, lines, way, **more):
        """Exactly these differences, and 40."""
        result = self.compare(40, way, **more)
        self.assertEqual(sorted(lines), sorted(result.out.decode().splitlines()))
        return result

    @each_way()
    def test_a_replica_is_the_same(self, way):
        if way == "local":
            make_kinds(self.source)
            make_names(self.source)
            make_small_files(self.source, 2000)
            write_large(f"{self.source}/large", 40 * MIB + 5)
            self.expect(0, self.fgsync(self.source, self.target))
        result = self.compare(0, way)
        self.assertEqual(b"", result.out)
        self.assertIn("compared", result.text())
        self.assertIn("files the same", result.text())

    @each_way()
    def test_each_difference_is_named_is_40_and_nothing_is_written(self, way):
        if way == "local":
            write(f"{self.source}/same", b"same")
            write(f"{self.source}/small", b"small")
            write_large(f"{self.source}/large", 9 * MIB + 3)
            write(f"{self.source}/long", b"0123456789")
            write(f"{self.source}/moved", b"moved")
            write(os.fsencode(self.source) + b"/\xff\x1b[31m", b"odd")
            os.symlink("here", f"{self.source}/link")
            os.makedirs(f"{self.source}/d/below")
            write(f"{self.source}/d/below/file", b"x")
            self.copy()
            write(f"{self.target}/small", b"SMALL")
            with open(f"{self.target}/large", "r+b") as file:
                file.seek(9 * MIB + 2)
                byte = file.read(1)[0]
                file.seek(9 * MIB + 2)
                file.write(bytes([byte ^ 1]))
            os.truncate(f"{self.target}/long", 3)
            os.unlink(f"{self.target}/moved")
            os.mkdir(f"{self.target}/moved")
            write(os.fsencode(self.target) + b"/\xff\x1b[31m", b"ODD")
            os.unlink(f"{self.target}/link")
            os.symlink("\x1bthere", f"{self.target}/link")
            shutil.rmtree(f"{self.target}/d")
            os.makedirs(f"{self.target}/more/within")
        before = listing(self.source, with_state=True), listing(self.target, with_state=True)
        result = self.assert_found([
            "small: contents differ", "large: contents differ", "\\xff\\x1b[31m: contents differ",
            "long: size differs: 3 bytes instead of 10", "moved: type differs: a directory instead of a file",
            "link: symlink differs: to \\x1bthere instead of here", "d: missing", "more: extra: a directory"], way)
        self.assertIn("8 differences", result.text())
        self.assertIn("1 file the same", result.text())
        self.assertEqual(before, (listing(self.source, with_state=True), listing(self.target, with_state=True)))

    @each_way()
    def test_the_report_as_json(self, way):
        write(os.fsencode(self.source) + b"/\xe9", b"odd")
        write(f"{self.source}/file", b"contents")
        if way == "local":
            self.copy()
        report = self.compare(0, way, "--json").json()
        self.assertEqual("ok", report["status"])
        self.assertEqual({"verified": 2, "different": 0, "extra": 0, "failed": 0}, report["files"])
        self.assertEqual({"read": 11}, report["bytes"])
        self.assertEqual(("near:" if way == "pull" else "") + self.source, report["source"])
        self.assertEqual(("near:" if way == "push" else "") + self.target, report["target"])
        write(f"{self.target}/extra", b"extra")
        os.unlink(os.fsencode(self.target) + b"/\xe9")
        report = self.compare(40, way, "--json").json()
        self.assertEqual("different", report["status"])
        self.assertEqual({"verified": 1, "different": 1, "extra": 1, "failed": 0}, report["files"])
        self.assertEqual(["extra", "missing"], sorted(entry["kind"] for entry in report["differences"]))
        os.unlink(f"{self.target}/extra")
        write(os.fsencode(self.target) + b"/\xe9", b"odd")

    @each_way()
    def test_slashes_mean_what_they_mean_to_a_run(self, way):
        write(f"{self.source}/file", b"contents")
        os.makedirs(f"{self.target}-of/source", exist_ok=True)
        write(f"{self.target}-of/source/file", b"contents")
        self.compare(0, way, target=f"{self.target}-of/")
        write(f"{self.target}-of/name", b"other bytes")
        self.assert_found(["name: size differs: 11 bytes instead of 8"], way, source=f"{self.source}/file",
                          target=f"{self.target}-of/name")

    def test_what_cannot_be_compared(self):
        write(f"{self.source}/file", b"contents")
        for way in ("local", "push", "pull"):
            self.assertIn("No such file", self.compare(3, way, target=self.path("absent")).text())
            self.assertIn("No such file", self.compare(3, way, source=self.path("absent")).text())
        self.assertFalse(os.path.exists(self.path("absent")))
        self.assertIn("same directory", self.compare(3, "local", target=self.source).text())
        result = self.start("verify", "near:/a", "near:/b", program=CTL_BINARY).wait(30)
        self.assertIn("both remote", self.expect(1, result).text())
        result = self.start("verify", "a", "b", "c", program=CTL_BINARY).wait(30)
        self.assertIn("too many trees", self.expect(1, result).text())
        broken = self.script("broken", "echo no route >&2\nexit 255\n")
        result = self.start("verify", "-e", broken, self.source, "near:/a", program=CTL_BINARY).wait(30)
        self.expect(255, result)

    @each_way("push", "pull")
    def test_a_far_side_that_is_killed_is_10_and_no_difference(self, way):
        if way == "push":
            for i in range(4):
                write_large(f"{self.source}/large{i}", by_scale(64, 256, 1024) * MIB)
            self.copy()
        run = self.start_comparison(way, "--progress=json")
        wait_until(lambda: b"bytes_done" in run.said_bytes(), "it has begun")
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(self.far_pids()[-1], signal.SIGKILL)
        result = run.wait(60)
        self.assertIn(result.code, (0, 10), result.text())
        self.assertEqual(b"", result.out)

    def test_memory_is_bounded(self):
        if SANITIZER:
            self.skipTest("a sanitizer needs memory of its own")
        make_small_files(self.source, by_scale(2000, 20000, 200000))
        write_large(f"{self.source}/large", 300 * MIB)
        self.copy()
        command = ["/usr/bin/env", "python3", "-c",
                   "import resource, subprocess, sys\n"
                   "code = subprocess.run(sys.argv[1:]).returncode\n"
                   "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                   CTL_BINARY, "verify", "-q", self.source, self.target]
        done = subprocess.run(command, capture_output=True, env=self.environment(), check=True)
        code, kib = done.stdout.split()[-2:]
        self.assertEqual(b"0", code, done.stderr)
        self.assertLess(int(kib), 256 * KIB)  # both halves are this process

    @each_way()
    def test_an_interrupt_ends_both_sides(self, way):
        if way == "local":
            for i in range(4):
                write_large(f"{self.source}/large{i}", by_scale(64, 256, 1024) * MIB)
            self.copy()
        run = self.start_comparison(way, "--progress=json")
        wait_until(lambda: b"bytes_done" in run.said_bytes(), "it has begun")
        run.signal(signal.SIGINT)
        result = run.wait(30)
        self.assertIn(result.code, (0, 20), result.text())  # it may have been at its end
        self.wait_gone(self.far_pids(), 30)


if __name__ == "__main__":
    main()
