#!/usr/bin/env python3
"""fgsyncctl verify: a target against the receipt that fgsync has left in it."""
import contextlib
import os
import random
import signal
import stat
import subprocess

from ssh_server import SshCase, each_way
from support import CTL_BINARY, KIB, MIB, SANITIZER, by_scale, main, wait_until
from trees import (NAMES, assert_no_state, assert_replica, has_staged_data, listing, make_kinds, make_names,
                   make_small_files, write, write_large)


def flip(path, at=0, bit=1):
    """Another byte, and the time as it was."""
    before = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ bit]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def contents_of(path):
    with open(path, "rb") as file:
        return file.read()


class Verify(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)

    def verify(self, *arguments, tree=None, seconds=120, **options):
        return self.start("verify", *arguments, tree or self.target, program=CTL_BINARY, **options).wait(seconds)

    def check(self, code, *arguments, **options):
        return self.expect(code, self.verify(*arguments, **options))

    def assert_found(self, lines, **options):
        """Exactly these differences, and 40."""
        result = self.check(40, **options)
        self.assertEqual(sorted(lines), sorted(result.out.decode().splitlines()))
        return result

    @each_way()
    def test_what_fgsync_has_replicated_is_as_its_receipt_says(self, way):
        if way == "local":
            make_kinds(self.source)
            make_names(self.source)
            write_large(f"{self.source}/large", 40 * MIB + 5)
        target = self.path("target-" + way)
        self.expect(0, self.go(way, self.source, target))
        result = self.check(0, tree=target)
        self.assertEqual(b"", result.out)
        self.assertIn("verified", result.text())
        self.assertNotIn("not in the receipt", result.text())
        flip(f"{target}/large", 20 * MIB)
        self.assert_found(["large: contents differ"], tree=target)

    def test_each_difference_is_named_and_is_40(self):
        write(f"{self.source}/small", b"small")
        write(f"{self.source}/gone", b"gone")
        write(f"{self.source}/long", b"0123456789")
        write(f"{self.source}/moved", b"moved")
        write(os.fsencode(self.source) + b"/\xff\x1b[31m", b"odd")
        write(f"{self.source}/touched", b"touched", time_ns=1_700_000_000_000_000_001)
        write_large(f"{self.source}/large", 17 * MIB + 3)
        self.expect(0, self.fgsync(self.source, self.target))
        self.check(0)
        flip(f"{self.target}/small", 4)
        flip(f"{self.target}/large", 17 * MIB + 2)
        flip(os.fsencode(self.target) + b"/\xff\x1b[31m", 1)
        os.unlink(f"{self.target}/gone")
        os.truncate(f"{self.target}/long", 3)
        os.unlink(f"{self.target}/moved")
        os.symlink("small", f"{self.target}/moved")
        os.utime(f"{self.target}/touched", ns=(1, 1_700_000_001_000_000_001))
        write(f"{self.target}/extra", b"extra")
        result = self.assert_found([
            "small: contents differ", "large: contents differ", "\\xff\\x1b[31m: contents differ", "gone: missing",
            "long: size differs: 3 bytes instead of 10", "moved: type differs: a symlink instead of a file",
            "touched: time differs: 2023-11-14T22:13:21.000000001Z instead of 2023-11-14T22:13:20.000000001Z"])
        self.assertIn("7 files differ", result.text())
        self.assertIn("1 not in the receipt", result.text())
        self.assertNotIn("extra:", result.text())
        verbose = self.check(40, "-v")
        self.assertIn("extra: not in the receipt\n", verbose.text())
        self.assertNotIn(b"\x1b", verbose.out + verbose.err)

        # The next run sees size and time alone, and mends what it sees.
        self.expect(0, self.fgsync(self.source, self.target))
        self.assert_found(["small: contents differ", "large: contents differ", "\\xff\\x1b[31m: contents differ"])

    def test_a_run_that_repairs_makes_it_whole_again(self):
        write(f"{self.source}/file", b"contents")
        self.expect(0, self.fgsync(self.source, self.target))
        flip(f"{self.target}/file")
        self.assert_found(["file: contents differ"])
        os.unlink(f"{self.target}/file")
        self.assert_found(["file: missing"])
        self.expect(0, self.fgsync(self.source, self.target))
        self.check(0)

    def test_files_that_were_there_before_are_counted_and_no_difference(self):
        write(f"{self.source}/same", b"same", time_ns=10**18)
        write(f"{self.source}/new", b"new")
        os.mkdir(self.target)
        write(f"{self.target}/same", b"same", time_ns=10**18)
        write(f"{self.target}/own", b"own")
        self.expect(0, self.fgsync(self.source, self.target))
        report = self.check(0, "--json").json()
        self.assertEqual({"verified": 1, "different": 0, "extra": 2, "failed": 0}, report["files"])

    def test_the_report_as_json(self):
        write(os.fsencode(self.source) + b"/\xe9", b"odd")
        write(f"{self.source}/file", b"contents")
        self.expect(0, self.fgsync(self.source, self.target))
        report = self.check(0, "--json").json()
        self.assertEqual("ok", report["status"])
        self.assertEqual([], report["differences"])
        self.assertEqual({"read": 11}, report["bytes"])
        os.unlink(os.fsencode(self.target) + b"/\xe9")
        result = self.check(40, "--json")
        self.assertEqual(1, len(result.out.splitlines()))
        report = result.json()
        self.assertEqual(("different", 40, 1), (report["status"], report["exit_code"], report["differences_total"]))
        self.assertEqual([{"path": {"bytes_base64": "6Q==", "escaped": "\\xe9"}, "kind": "missing", "message": ""}],
                         report["differences"])
        for line in result.err.splitlines():
            self.assertNotIn(b"missing", line)

    def test_what_cannot_be_verified_is_3_or_a_usage_error(self):
        os.mkdir(self.target)
        self.assertIn("no receipt", self.check(3).text())
        self.check(3, tree=self.path("no-such"))
        self.check(1, tree="near:/somewhere")
        self.check(1, "--no-such-option")
        self.check(1, "--delete")
        self.expect(1, self.start("verify", program=CTL_BINARY).wait())
        self.expect(1, self.start(program=CTL_BINARY).wait())
        self.expect(1, self.start("nonsense", program=CTL_BINARY).wait())
        for command in ("keygen", "doctor", "bench", "status"):
            self.assertIn("not offered", self.expect(4, self.start(command, program=CTL_BINARY).wait()).text())
        for words in (["--help"], ["verify", "--help"], ["--version"]):
            text = self.expect(0, self.start(*words, program=CTL_BINARY).wait()).out.decode()
            self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_a_damaged_receipt_is_noticed_and_costs_a_run_one_note(self):
        make_small_files(self.source, 3000)
        self.expect(0, self.fgsync(self.source, self.target))
        receipt = f"{self.target}/.fgsync/receipt"
        whole = contents_of(receipt)
        generator = random.Random(5)
        damages = [whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
                   for at in (100, len(whole) // 2, generator.randrange(64, len(whole) - 100))]
        damages += [whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2), whole[: len(whole) // 3],
                    b"\0" * 64 + whole[64:], generator.randbytes(len(whole)), b"", b"fgsync-r"]
        for number, damaged in enumerate(damages):
            with self.subTest(damage=number):
                write(receipt, damaged)
                result = self.verify()
                # Never what is not true; a receipt that was cut is as an interrupted run leaves it.
                self.assertIn(result.code, (0, 3), result.text())
                self.assertEqual(b"", result.out)
                if number < 3:
                    self.assertEqual(3, result.code)
                write(f"{self.source}/one", str(number).encode())
                notes = [line for line in self.expect(0, self.fgsync(self.source, self.target)).text().splitlines()
                         if "note:" in line and "receipt" in line]
                self.assertLessEqual(len(notes), 1)
                assert_no_state(self, self.target)
                self.check(0)
                flip(f"{self.target}/one")
                self.assert_found(["one: contents differ"])

    def test_a_newer_receipt_is_4_and_a_run_replaces_it(self):
        write(f"{self.source}/file", b"1")
        self.expect(0, self.fgsync(self.source, self.target))
        receipt = f"{self.target}/.fgsync/receipt"
        contents = bytearray(contents_of(receipt))
        contents[8] = 77
        write(receipt, contents)
        self.assertIn("77", self.check(4).text())
        self.expect(0, self.fgsync(self.source, self.target))  # nothing to add
        self.check(4)
        write(f"{self.source}/file", b"22")
        self.assertIn("replaced", self.expect(0, self.fgsync(self.source, self.target)).text())
        self.check(0)

    def test_something_else_in_place_of_the_receipt(self):
        write(f"{self.source}/file", b"1")
        for make in (os.mkdir, lambda path: os.symlink("/etc/passwd", path), os.mkfifo):
            target = self.make_directory() + "/target"
            os.makedirs(f"{target}/.fgsync")
            make(f"{target}/.fgsync/receipt")
            self.check(3, tree=target)
            self.expect(0, self.fgsync(self.source, target))
            self.check(0, tree=target)
            self.assertTrue(stat.S_ISREG(os.lstat(f"{target}/.fgsync/receipt").st_mode))
        target = self.make_directory() + "/target"
        os.makedirs(f"{target}/.fgsync/receipt/full")
        self.expect(0, self.fgsync(self.source, target))
        assert_replica(self, self.source, target)
        self.check(3, tree=target)

    def test_a_single_file(self):
        write(f"{self.source}/name", b"contents")
        os.mkdir(self.target)
        self.expect(0, self.fgsync(f"{self.source}/name", f"{self.target}/other"))
        write(f"{self.target}/unknown", b"x")
        self.check(0, tree=f"{self.target}/other")
        self.check(0)
        flip(f"{self.target}/other")
        self.assert_found(["other: contents differ"], tree=f"{self.target}/other")
        self.check(0, tree=f"{self.target}/unknown")

    def test_many_files(self):
        make_small_files(self.source, by_scale(2000, 20_000, 20_000))
        self.expect(0, self.fgsync(self.source, self.target))
        self.check(0)
        generator = random.Random(3)
        paths = [path.decode() for path, entry in listing(self.target).items() if stat.S_ISREG(entry[0]) and entry[4]]
        lines = []
        for path in generator.sample(sorted(paths), 50):
            flip(f"{self.target}/{path}", generator.randrange(os.stat(f"{self.target}/{path}").st_size))
            lines.append(f"{path}: contents differ")
        self.assert_found(lines)

    def test_names_of_any_bytes(self):
        make_names(self.source)
        self.expect(0, self.fgsync(self.source, self.target))
        for name in NAMES:
            flip(os.path.join(os.fsencode(self.target), b"files", name))
        result = self.check(40)
        lines = result.out.decode().splitlines()
        self.assertEqual(len(NAMES), len(lines))
        found = {line.removesuffix(": contents differ").encode().decode("unicode_escape").encode("latin-1")
                 if "\\" in line else line.removesuffix(": contents differ").encode() for line in lines}
        self.assertEqual({b"files/" + name for name in NAMES}, found)

    def test_an_interrupt_ends_it(self):
        write_large(f"{self.source}/large", by_scale(64, 512, 1024) * MIB)
        self.expect(0, self.fgsync(self.source, self.target))
        run = self.start("verify", "--progress=json", self.target, program=CTL_BINARY)
        wait_until(lambda: b"bytes_done" in run.said_bytes(), "it has begun")
        run.signal(signal.SIGINT)
        self.assertIn(run.wait(10).code, (0, 20))

    @each_way()
    def test_runs_that_are_killed_leave_nothing_that_a_good_run_does_not_settle(self, way):
        target = self.path("target-" + way)
        source = self.path("source-" + way)
        os.mkdir(source)
        generator = random.Random(11)
        for round_number in range(by_scale(3, 8, 30)):
            for _ in range(20):
                write(f"{source}/f{generator.randrange(60)}", generator.randbytes(generator.randrange(300 * KIB)))
            write_large(f"{source}/large{generator.randrange(3)}", 5 * MIB, seed=round_number)
            for name in generator.sample(sorted(os.listdir(source)), 5):
                os.unlink(f"{source}/{name}")
            run = self.start_way(way, source, target, "--bwlimit=20M")
            victims = [run.pid]
            if way != "local":
                self.wait_for_far_side()
                victims.append(self.far_pids()[-1])
            if generator.random() < 0.7:
                wait_until(lambda: has_staged_data(target) or run.process.poll() is not None, "data is staged")
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                os.kill(generator.choice(victims), signal.SIGKILL)
            run.wait()
            self.wait_gone(victims, 70)
            interrupted = self.verify(tree=target)
            self.assertIn(interrupted.code, (0, 3), interrupted.text())
            self.assertEqual(b"", interrupted.out)
        self.expect(0, self.go(way, source, target))
        result = self.check(0, tree=target)
        self.assertEqual(b"", result.out)
        self.assertNotIn("note:", result.text())

    def test_memory_is_bounded(self):
        if SANITIZER:
            self.skipTest("a sanitizer needs memory of its own")
        write_large(f"{self.source}/large", 300 * MIB)
        self.expect(0, self.fgsync(self.source, self.target))
        command = ["/usr/bin/env", "python3", "-c",
                   "import resource, subprocess, sys\n"
                   "code = subprocess.run(sys.argv[1:]).returncode\n"
                   "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                   CTL_BINARY, "verify", "-q", self.target]
        done = subprocess.run(command, capture_output=True, env=self.environment(), check=True)
        code, kib = done.stdout.split()[-2:]
        self.assertEqual(b"0", code, done.stderr)
        self.assertLess(int(kib), 128 * KIB)


if __name__ == "__main__":
    main()
