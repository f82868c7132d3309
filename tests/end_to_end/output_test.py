"""What is printed where: reports, lists, progress, logs, and never a control byte of a name."""
import base64
import json
import os
import pty
import re
import subprocess

from ssh_server import SshCase, each_way
from support import ENGINE, MIB, main, wait_until
from trees import NAMES, has_staged_data, listing, make_kinds, make_names, make_small_files, write, write_large

KEYS = ("version status exit_code command source target started seconds transport streams cipher io_engine limited_by "
        "files bytes rate_bytes_per_second digest errors stages").split()
FILES = "total sent unchanged linked deleted failed vanished".split()
BYTES = "total sent resumed unchanged wire".split()
STAGES = "read hash encrypt send receive decrypt verify write sync".split()


class OutputCase(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)

    def regular_sizes(self):
        return [entry[4] for entry in listing(self.source).values() if entry[0] == 0o100000]


class Reports(OutputCase):
    @each_way()
    def test_the_report_has_the_keys_of_the_contract_and_true_values(self, way):
        if way == "local":
            make_small_files(f"{self.source}/many", 700)
            write_large(f"{self.source}/large", 5 * MIB)
            os.symlink("large", f"{self.source}/link")
        target = self.path("target-" + way)
        result = self.expect(0, self.go(way, self.source, target, "--json"))
        report = result.json()
        self.assertEqual(1, len(result.out.splitlines()))
        self.assertEqual(KEYS, list(report))
        self.assertEqual((FILES, BYTES, STAGES), tuple(list(report[key]) for key in ("files", "bytes", "stages")))
        for stage in report["stages"].values():
            self.assertEqual(["busy_seconds", "bytes"], list(stage))
        sizes = self.regular_sizes()
        self.assertEqual((len(sizes), sum(sizes)), (report["files"]["sent"], report["bytes"]["sent"]))
        outcome = tuple(report[key] for key in ("status", "exit_code", "errors", "io_engine"))
        self.assertEqual(("ok", 0, [], ENGINE), outcome)
        self.assertEqual("local" if way == "local" else "tcp", report["transport"])
        self.assertRegex(report["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$")
        self.assertRegex(report["limited_by"], "^(link|(source|target) (disk|cpu)|small files)$")
        self.assertGreater(report["seconds"], 0)
        self.assertAlmostEqual(sum(sizes) / report["seconds"], report["rate_bytes_per_second"],
                               delta=0.2 * report["rate_bytes_per_second"])
        self.assertGreaterEqual(report["bytes"]["wire"], sum(sizes))
        again = self.expect(0, self.go(way, self.source, target, "--json")).json()
        self.assertEqual((0, len(sizes), 0, sum(sizes)), (again["files"]["sent"], again["files"]["unchanged"],
                                                          again["bytes"]["sent"], again["bytes"]["unchanged"]))

    def test_a_failed_run_reports_too(self):
        report = self.expect(3, self.fgsync("--json", self.path("no-such"), self.target)).json()
        self.assertEqual(KEYS, list(report))
        self.assertEqual(("failed", 3), (report["status"], report["exit_code"]))
        self.assertIn("no-such", report["errors"][0]["message"])
        self.assertEqual(["path", "code", "message"], list(report["errors"][0]))

    def test_one_digest_stands_for_one_contents_whatever_the_way(self):
        make_small_files(f"{self.source}/many", 100)
        digests = {self.expect(0, self.go(way, self.source, self.path(way), "--json")).json()["digest"]
                   for way in ("local", "push", "pull")}
        self.assertEqual(1, len(digests))
        self.assertRegex(digests.pop(), r"^[0-9a-f]{32}$")

    def test_names_that_are_not_utf_8_are_given_as_base64(self):
        name = b"bad \xff name"
        os.makedirs(os.path.join(os.fsencode(self.target), name))
        write(os.path.join(os.fsencode(self.source), name), b"cannot replace a directory")
        report = self.expect(23, self.fgsync("--json", self.source, self.target)).json()
        path = report["errors"][0]["path"]
        self.assertTrue(base64.b64decode(path["bytes_base64"]).endswith(name))

    @each_way()
    def test_stats_name_every_stage(self, way):
        write_large(f"{self.source}/large", MIB)
        result = self.expect(0, self.go(way, self.source, self.path("target-" + way), "--stats"))
        for stage in STAGES:
            self.assertRegex(result.out.decode(), rf"(?m)\b{stage}\b")
        self.assertIn("limited by", result.out.decode())


class DryRuns(OutputCase):
    def snapshot(self, root):
        return listing(root, True), subprocess.run(["find", root, "-printf", "%p %C@ %i\n"], stdout=subprocess.PIPE,
                                                   check=True).stdout

    @each_way()
    def test_a_dry_run_prints_the_mapping_first_and_changes_nothing(self, way):
        target = self.path("target-" + way)
        make_kinds(f"{self.source}/{way}")
        write(f"{self.source}/changed", way.encode())
        missing = self.expect(0, self.go(way, self.source, target, "-n"))
        self.assertFalse(os.path.exists(target))
        self.assertIn("one", missing.out.decode())
        self.expect(0, self.go(way, self.source, target))
        write(f"{self.source}/changed", b"changed since " + way.encode())
        before = self.snapshot(self.source), self.snapshot(target)
        result = self.expect(0, self.go(way, self.source, target, "-n"))
        self.assertEqual(before, (self.snapshot(self.source), self.snapshot(target)))
        lines = result.out.decode().splitlines()
        self.assertIn(self.source, lines[0])
        self.assertIn(target, lines[0])
        self.assertIn("changed", lines)
        self.assertNotIn(f"{way}/one", lines)

    def test_a_dry_run_refuses_what_a_run_would_refuse(self):
        self.expect(3, self.fgsync("-n", self.source, f"{self.source}/inside"))
        self.expect(3, self.fgsync("-n", self.path("no-such"), self.target))


class Quietness(OutputCase):
    @each_way()
    def test_quiet_runs_print_nothing(self, way):
        write(f"{self.source}/file", b"f")
        result = self.expect(0, self.go(way, self.source, self.path("target-" + way), "-q"))
        self.assertEqual((b"", b""), (result.out, result.err))

    def test_quiet_failures_still_say_why(self):
        result = self.expect(3, self.fgsync("-q", self.path("no-such"), self.target))
        self.assertIn("no-such", result.text())
        self.assertEqual(b"", result.out)

    @each_way()
    def test_a_plain_run_ends_with_one_line_on_standard_error(self, way):
        write(f"{self.source}/file", b"f")
        result = self.expect(0, self.go(way, self.source, self.path("target-" + way)))
        self.assertEqual(b"", result.out)
        self.assertRegex(result.text(), r"\Areplicated .*1 file.* in .* s: .*limited by: .*\n\Z")

    @each_way()
    def test_verbose_runs_name_what_is_replicated(self, way):
        os.makedirs(f"{self.source}/sub", exist_ok=True)
        write(f"{self.source}/sub/file", b"f")
        result = self.expect(0, self.go(way, self.source, self.path("target-" + way), "-v"))
        self.assertRegex(result.text(), r"(?m)^sub/file$")

    def test_at_most_twenty_errors_and_a_count_are_shown(self):
        os.mkdir(self.target)
        for number in range(50):
            write(f"{self.source}/f{number}", b"f")
            os.mkdir(f"{self.target}/f{number}")
        log = self.path("log")
        result = self.expect(23, self.fgsync(f"--log-file={log}", "--json", self.source, self.target))
        lines = [line for line in result.text().splitlines() if line.startswith("fgsync: ")]
        self.assertEqual(21, len(lines))
        self.assertIn("30", lines[-1])
        self.assertEqual(50, len(result.json()["errors"]))
        with open(log) as file:
            self.assertEqual(50, len(re.findall(r"(?m)fgsync: \S*/?f\d+: ", file.read())))

    def test_a_log_file_tells_of_every_run(self):
        write(f"{self.source}/file", b"f")
        log = self.path("log")
        for _ in range(2):
            self.expect(0, self.fgsync("-q", f"--log-file={log}", self.source, self.target))
        with open(log) as file:
            text = file.read()
        self.assertEqual(2, text.count("replicated "))
        self.assertIn(self.source, text)

    def test_a_log_file_that_cannot_be_written_is_named_before_anything_is_done(self):
        result = self.fgsync(f"--log-file={self.path('no/such/log')}", self.source, self.target)
        self.assertNotEqual(0, result.code)
        self.assertIn("no/such/log", result.text())
        self.assertFalse(os.path.exists(self.target))


class Names(OutputCase):
    @each_way()
    def test_no_control_byte_of_a_name_is_ever_printed(self, way):
        if way == "local":
            make_names(self.source)
        target, log = self.path("target-" + way), self.path("log-" + way)
        os.mkdir(target)
        for name in NAMES:  # in the way, so that each is also named in an error
            os.makedirs(os.path.join(os.fsencode(target), b"files", name))
        result = self.go(way, self.source, target, "-v", "--progress=always", f"--log-file={log}")
        self.expect(23, result)
        dry = self.go(way, self.source, target, "-n", "-v")
        with open(log, "rb") as file:
            written = file.read()
        for text in (result.out, result.err, dry.out, dry.err, written):
            self.assertIsNone(re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", text))
            text.decode("utf-8")  # raises for raw bytes that are not UTF-8
        self.assertIn(b"new", result.err)

    def test_arguments_with_control_bytes_are_escaped(self):
        result = self.expect(3, self.fgsync(self.path("a\x1b[31m\nb"), self.target))
        self.assertNotIn(b"\x1b", result.err)
        self.assertTrue(all(line.startswith((b"fgsync: ", b"ended early")) for line in result.err.splitlines()))


class Progress(OutputCase):
    @each_way()
    def test_progress_as_json_is_an_object_a_line(self, way):
        write_large(f"{self.source}/large", 8 * MIB)
        options = ("--progress=json", "--bwlimit=4M")
        result = self.expect(0, self.go(way, self.source, self.path("target-" + way), *options))
        lines = [json.loads(line) for line in result.text().splitlines() if line.startswith("{")]
        self.assertGreaterEqual(len(lines), 2)
        for key in ("bytes_done", "files_done", "seconds"):
            values = [line[key] for line in lines]
            self.assertEqual(sorted(values), values)
        self.assertEqual((8 * MIB, 8 * MIB), (lines[-1]["bytes_done"], lines[-1]["bytes_total"]))
        percents = [line["percent"] for line in lines if line["percent"] is not None]
        self.assertEqual(sorted(percents), percents)
        self.assertEqual(100, percents[-1])

    def on_terminal(self, *arguments):
        """What a terminal of 100 columns gets to see of a run."""
        main_end, terminal = pty.openpty()
        os.set_inheritable(terminal, True)
        subprocess.run(["stty", "cols", "100"], stdin=terminal, check=True)
        run = self.start(*arguments, stderr=terminal, env=self.environment(TERM="xterm"))
        os.close(terminal)
        seen = b""
        while True:
            try:
                read = os.read(main_end, 65536)
            except OSError:  # EIO: all have closed it
                break
            if not read:
                break
            seen += read
        os.close(main_end)
        self.assertEqual(0, run.wait().code, seen)
        return seen

    def test_a_terminal_sees_a_percent_that_never_runs_backwards(self):
        write_large(f"{self.source}/large", 8 * MIB)
        make_small_files(f"{self.source}/many", 500)
        for options, remote in (((), False), (("-v",), True)):
            with self.subTest(options=options):
                target = self.path("target" + str(remote))
                places = [*self.over_ssh(), self.source, "near:" + target] if remote else [self.source, target]
                seen = self.on_terminal("--bwlimit=4M", *options, *places)
                percents = [int(number) for number in re.findall(rb"(\d+)%", seen)]
                self.assertGreaterEqual(len(percents), 5)
                self.assertEqual(sorted(percents), percents)
                self.assertLessEqual(percents[-1], 100)
                self.assertIn(b"ETA", seen)
                # At most ten redraws a second.
                self.assertLess(len(percents), 10 * 20)
                for line in re.split(rb"[\r\n]", re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", seen)):
                    self.assertLess(len(line), 100 if b"%" in line else 1000)

    def test_what_was_there_already_is_not_counted_as_sent(self):
        write_large(f"{self.source}/large", 64 * MIB)
        self.expect(0, self.fgsync(self.source, self.target))
        write_large(f"{self.source}/more", 4 * MIB)
        result = self.expect(0, self.fgsync("--progress=json", "--bwlimit=4M", self.source, self.target))
        lines = [json.loads(line) for line in result.text().splitlines() if line.startswith("{")]
        self.assertEqual(4 * MIB, lines[-1]["bytes_done"])

    def test_without_a_terminal_there_is_no_progress(self):
        write_large(f"{self.source}/large", 2 * MIB)
        result = self.expect(0, self.fgsync("--bwlimit=2M", self.source, self.target))
        self.assertEqual(1, len(result.text().splitlines()))


class Program(OutputCase):
    def test_the_version_lists_what_the_build_offers(self):
        text = self.expect(0, self.fgsync("--version")).out.decode()
        self.assertRegex(text, r"(?m)^io engines:.*\bposix\b")
        if ENGINE == "uring":
            self.assertRegex(text, r"(?m)^io engines:.*\buring\b")
        self.assertRegex(text, r"(?m)^transports:.*\btcp\b")
        self.assertRegex(text, r"(?m)^ciphers:.*\baes128-gcm\b.*\bchacha20\b")

    def test_options_of_later_versions_are_refused_by_name(self):
        for option in ("--delete", "--delete-excluded", "--max-delete=1", "-H", "-X", "--transport=rdma",
                       "--report=x.html"):
            with self.subTest(option=option):
                result = self.expect(4, self.fgsync(option, self.source, self.target))
                self.assertIn(option.partition("=")[0], result.text())
                self.assertFalse(os.path.exists(self.target))

    def test_habits_from_rsync_are_accepted(self):
        write(f"{self.source}/file", b"f")
        result = self.expect(0, self.fgsync("-arlptgoWhz", "--info=progress2", self.source, self.target))
        self.assertIn("not compressed", result.text())

    def test_usage_errors_name_what_is_wrong(self):
        for arguments in ((), ("only-one",), ("--no-such-option", "a", "b"), ("", "b")):
            with self.subTest(arguments=arguments):
                result = self.expect(1, self.fgsync(*arguments))
                self.assertRegex(result.text(), r"(?m)^fgsync: ")

    @each_way()
    def test_closed_standard_descriptors_do_no_harm(self, way):
        write(f"{self.source}/file", b"f")
        for closed in (0, 1, 2, (0, 1, 2)):
            with self.subTest(closed=closed):
                target = self.path(f"target-{way}-{closed}")
                closing = " ".join(f"{fd}>&-" for fd in (closed if isinstance(closed, tuple) else (closed,)))
                shell = ["sh", "-c", f'exec "$@" {closing}', "sh"]
                result = self.go(way, self.source, target, before=shell)
                self.expect(0, result)
                with open(f"{target}/file", "rb") as file:
                    self.assertEqual(b"f", file.read())

    def test_a_report_that_cannot_be_printed_is_no_success(self):
        with open("/dev/full", "wb") as full:
            result = self.fgsync("--json", self.source, self.target, stdout=full)
        self.assertNotEqual(0, result.code)
        self.assertIn("No space left on device", result.text())

    def test_a_reader_that_goes_away_does_not_end_the_run(self):
        write_large(f"{self.source}/large", 4 * MIB)
        reader, writer = os.pipe()
        run = self.start("-v", "--progress=json", "--bwlimit=2M", self.source, self.target, stderr=writer)
        os.close(writer)
        wait_until(lambda: has_staged_data(self.target), "data is staged")
        os.close(reader)
        self.assertEqual(0, run.wait().code)
        self.assertEqual(4 * MIB, os.stat(f"{self.target}/large").st_size)


if __name__ == "__main__":
    main()
