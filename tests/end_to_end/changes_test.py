"""What counts as changed, and what is left alone: the same as with rsync, on trees that are related in every way."""
import os
import random
import subprocess

from ssh_server import WAYS, SshCase, each_way
from support import IS_ROOT, by_scale, main
from trees import listing, names_in, write

TIMES = (1_500_000_000_000_000_000, 1_600_000_000_000_000_000, 1_700_000_000_123_456_789)
CONTENTS = (b"", b"one", b"two", b"longer", b"x" * 3000)


def set_time(dice, path):
    time = dice.choice(TIMES)
    os.utime(path, ns=(time, time), follow_symlinks=False)


def make_related_tree(dice, root, depth=0):
    """Names tell whether it is a directory; files and symlinks take each other's place, and few contents and times
    are there to choose from."""
    os.mkdir(root)
    for number in range(8):
        path = f"{root}/{number}"
        if dice.random() < 0.3:
            continue
        if number < 3:
            if depth < 2:
                make_related_tree(dice, path, depth + 1)
            continue
        if dice.random() < 0.2:
            os.symlink(dice.choice(("3", "../4", "../../../x", "/etc/passwd", "a/../b")), path)
        else:
            write(path, dice.choice(CONTENTS))
            os.chmod(path, dice.choice((0o644, 0o600)))
        set_time(dice, path)
    set_time(dice, root)


OPTIONS = [["-c"], ["-c", "-u"], ["-u"], ["--existing"], ["--ignore-existing"], ["--existing", "--ignore-existing"],
           ["--size-only"], ["-I"], ["-u", "--size-only"], ["--max-size=5"], ["--min-size=1K"],
           ["--min-size=1", "--max-size=3"], ["--safe-links"],
           ["-u", "--existing", "--safe-links", "--max-size=100"]]


class AsRsync(SshCase):
    def test_the_same_is_changed_as_by_rsync(self):
        for seed in range(by_scale(1, 2, 20) * len(OPTIONS)):
            dice = random.Random(seed)
            options = OPTIONS[seed % len(OPTIONS)]
            at_once = ["--publish=tree"] if seed % 5 == 2 else []
            directory = self.path(f"case{seed}")
            os.mkdir(directory)
            source, ours, theirs = (f"{directory}/{name}" for name in ("source", "ours", "theirs"))
            make_related_tree(dice, source)
            make_related_tree(dice, ours)
            subprocess.run(["cp", "-a", ours, theirs], check=True)
            way = WAYS[seed // len(OPTIONS) % len(WAYS)] if seed % 4 == 0 else "local"
            with self.subTest(seed=seed, way=way, options=options + at_once):
                subprocess.run(["rsync", "-a", *options, f"{source}/", theirs], check=True, capture_output=True)
                self.expect(0, self.go(way, source, ours, *options, *at_once))
                self.assertEqual(listing(theirs), listing(ours))


class Itemized(SshCase):
    def test_changes_are_listed_as_by_rsync_and_a_dry_run_lists_the_same(self):
        for seed in range(by_scale(2, 6, 60)):
            dice = random.Random(1000 + seed)
            directory = self.path(f"case{seed}")
            os.mkdir(directory)
            source, target = (f"{directory}/{name}" for name in ("source", "target"))
            make_related_tree(dice, source)
            if seed % 6 != 5:
                make_related_tree(dice, target)
                subprocess.run(["find", target, "-type", "d", "-name", "1", "-exec", "chmod", "0750", "{}", ";"],
                               check=True)
                if IS_ROOT:
                    subprocess.run(["find", target, "-name", "4", "-exec", "chown", "-h", "5:6", "{}", ";"], check=True)
            options = [[], ["-c"], ["--size-only"], ["-I"]][seed % 4]
            at_once = ["--publish=tree"] if seed % 5 == 1 else []
            way = WAYS[seed % len(WAYS)]
            with self.subTest(seed=seed, way=way, options=options + at_once):
                done = subprocess.run(["rsync", "-nai", *options, f"{source}/", target], check=True,
                                      stdout=subprocess.PIPE)
                expected = [line for line in done.stdout.split(b"\n") if line and not line.startswith(b"created")]
                if way == "push":
                    expected = [line.replace(b">f", b"<f", 1) for line in expected]
                before = listing(target, True) if os.path.exists(target) else None
                dry = self.expect(0, self.go(way, source, target, "-ni", *options, *at_once))
                self.assertEqual(before, listing(target, True) if os.path.exists(target) else None)
                mapping, *lines = dry.out.split(b"\n")[:-1]
                self.assertIn(os.fsencode(source), mapping)
                self.assertEqual(sorted(expected), sorted(lines))
                plain = self.expect(0, self.go(way, source, target, "-n", *options, *at_once))
                self.assertEqual(sorted(line[12:].split(b" -> ")[0] for line in expected),
                                 sorted(plain.out.split(b"\n")[1:-1]))
                real = self.expect(0, self.go(way, source, target, "-i", *options, *at_once))
                self.assertEqual(sorted(expected), sorted(real.out.split(b"\n")[:-1]))


class Changes(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)
        os.mkdir(self.target)

    @each_way()
    def test_what_is_passed_over_is_neither_sent_nor_counted_as_unchanged(self, way):
        write(f"{self.source}/large", b"x" * 5000)
        write(f"{self.source}/small", b"x")
        report = self.expect(0, self.go(way, self.source, f"{self.target}/{way}", "--max-size=4K", "--json")).json()
        self.assertEqual((2, 1, 0), tuple(report["files"][key] for key in ("total", "sent", "unchanged")))
        self.assertEqual(["small"], names_in(f"{self.target}/{way}"))

    def test_a_directory_that_is_not_made_has_nothing_below_it(self):
        os.makedirs(f"{self.source}/new/below")
        write(f"{self.source}/new/below/file", b"x")
        self.expect(0, self.fgsync("--existing", self.source, self.target))
        self.assertEqual([], names_in(self.target))

    def test_newer_by_a_nanosecond_is_newer(self):
        for root, time in ((self.source, TIMES[0]), (self.target, TIMES[0] + 1)):
            write(f"{root}/file", root.encode())
            os.utime(f"{root}/file", ns=(time, time))
        self.expect(0, self.fgsync("-u", self.source, self.target))
        with open(f"{self.target}/file", encoding="utf-8") as file:
            self.assertEqual(self.target, file.read())

    @each_way()
    def test_contents_that_differ_behind_the_same_size_and_time_are_found(self, way):
        target = f"{self.target}/{way}"
        os.mkdir(target)
        for name, old in (("same", b"new"), ("other", b"old"), ("touched", b"new"), ("large", b"x" * 300_000 + b"z")):
            write(f"{self.source}/{name}", b"new" if len(old) == 3 else b"x" * 300_000 + b"y")
            write(f"{target}/{name}", old)
            for root in (self.source, target):
                os.utime(f"{root}/{name}", ns=(TIMES[0], TIMES[0]))
        os.utime(f"{target}/touched", ns=(TIMES[1], TIMES[1]))
        kept = os.stat(f"{target}/touched").st_ino
        would = self.expect(0, self.go(way, self.source, target, "-nci")).out.split(b"\n")
        self.assertEqual([b"large", b"other"], sorted(line[12:] for line in would if line[:2] in (b">f", b"<f")))
        report = self.expect(0, self.go(way, self.source, target, "-c", "--json")).json()
        self.assertEqual((4, 2, 2), tuple(report["files"][key] for key in ("total", "sent", "unchanged")))
        self.assertEqual(listing(self.source), listing(target))
        self.assertEqual(kept, os.stat(f"{target}/touched").st_ino)
        with open(f"{target}/other", "rb") as file:
            self.assertEqual(b"new", file.read())


if __name__ == "__main__":
    main()
