#!/usr/bin/env python3
"""scripts/bench as it is at smoke size: it runs every competitor with every set, and fails when a result is wrong.

usage: bench_test.py SCRIPT FGSYNC [unittest's arguments]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPT, FGSYNC = sys.argv[1:3]
REMOTE = {"fgsync plain", "fgsync sealed", "rsync daemon", "rsync over ssh"}
FRESH = REMOTE | {"fgsync local", "cp -au", "tar | socat", "floor plain", "floor sealed"}
EXPECTED = {"BIG": FRESH, "CKPT": FRESH, "SMALL": FRESH, "TINY": FRESH, "RESYNC": REMOTE | {"fgsync local", "cp -au"},
            "RESUME": REMOTE | {"fgsync local"}}
# Copies, and then damages the first file of the target, whose name ends in a slash.
FAKE_CP = """#!/bin/sh
/bin/cp "$@" || exit 1
for target in "$@"; do :; done
case $target in */) ;; *) exit 0 ;; esac
cd "$target" && file=$(find . -type f | LC_ALL=C sort | head -n 1) || exit 1
{damage}
"""


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def bench(self, *options, path=os.environ["PATH"]):
        words = [sys.executable, SCRIPT, "--smoke", f"--binary={FGSYNC}", *options]
        return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, env={**os.environ, "PATH": path})


class Smoke(BenchTest):
    def test_every_competitor_copies_every_set_rightly(self):
        record = f"{self.folder}/record.json"
        result = self.bench(f"--json={record}")
        self.assertEqual(0, result.returncode, result.stdout)
        with open(record, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual({}, document["left_out"])
        measured = {name: set(entry["runs"]) for name, entry in document["sets"].items()}
        self.assertEqual(EXPECTED, measured)
        for name, entry in document["sets"].items():
            for competitor, runs in entry["runs"].items():
                self.assertEqual([True], [run["seconds"] > 0 for run in runs], f"{name}, {competitor}")
        self.check_plot(record)

    def check_plot(self, record):
        plot = subprocess.run([sys.executable, f"{SCRIPT}-plot", record], stdout=subprocess.PIPE, text=True, check=True)
        root = xml.etree.ElementTree.fromstring(plot.stdout)
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        bars = list(root.iter("{http://www.w3.org/2000/svg}rect"))
        self.assertEqual(sum(map(len, EXPECTED.values())), len(bars))
        self.assertEqual(len(EXPECTED), sum(text.startswith(tuple(EXPECTED)) for text in texts))


class WrongResults(BenchTest):
    def fails_with(self, damage, words):
        with open(f"{self.folder}/cp", "w", encoding="utf-8") as file:
            file.write(FAKE_CP.format(damage=damage))
        os.chmod(f"{self.folder}/cp", 0o755)
        result = self.bench("--sets=TINY", "--only=cp -au", path=f"{self.folder}:{os.environ['PATH']}")
        self.assertEqual(1, result.returncode, result.stdout)
        self.assertIn(f"FAILED: TINY, cp -au: the result is wrong: {words}", result.stdout)

    def test_a_changed_byte(self):
        self.fails_with("printf '%b' \"$(printf '\\\\%03o' $(($(od -An -N1 -tu1 \"$file\") ^ 1)))\" |"
                        " dd of=\"$file\" conv=notrunc status=none", "1 files differ")

    def test_a_file_cut_short(self):
        self.fails_with("truncate -s 511 \"$file\"", "1 files differ")

    def test_a_missing_file(self):
        self.fails_with("rm \"$file\"", "1 files are missing")

    def test_a_file_too_many(self):
        self.fails_with("/bin/cp \"$file\" \"$file.again\"", "1 files too many")

    def test_a_failing_command(self):
        with open(f"{self.folder}/cp", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho no disk >&2\nexit 3\n")
        os.chmod(f"{self.folder}/cp", 0o755)
        result = self.bench("--sets=TINY", "--only=cp -au", path=f"{self.folder}:{os.environ['PATH']}")
        self.assertEqual(1, result.returncode, result.stdout)
        self.assertIn("FAILED: TINY, cp -au: cp ended with 3: no disk", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
