"""What the rules about names leave out stays where it is, and rsync leaves out the same."""
import os
import random
import stat
import subprocess

from mounts import mount_tmpfs
from ssh_server import WAYS, SshCase, each_way
from support import by_scale, main, needs_root
from trees import listing, names_in, write

# Few, so that patterns meet names.
WORDS = ["a", "b", "ab", "a.b", "x", "x.tmp", "core", "a*b", "a[b", "a\\b", "-x", "+ x", "#x", " x", "caf\u00e9"]
PIECES = ["a", "b", "x", "core", "*", "?", "**", "[ab]", "[!a]", "[a-x]", "*.tmp", "a*", "*b", "[[:alpha:]]*", "\\*",
          "a\\*b", "x.tmp", "caf?", "***", "[", "-x", "***/", "[]-]"]


def random_name(dice):
    return dice.choice(WORDS) if dice.random() < 0.9 else dice.choice(WORDS) + dice.choice(WORDS)


def make_random_tree(dice, root, depth=0):
    os.mkdir(root)
    for name in sorted({random_name(dice) for _ in range(dice.randint(0, 5 if depth else 9))}):
        path = f"{root}/{name}"
        if depth < 4 and dice.random() < 0.5:
            make_random_tree(dice, path, depth + 1)
        elif dice.random() < 0.1:
            os.symlink("nowhere", path)
        else:
            write(path, name.encode())


def random_pattern(dice):
    parts = ["".join(dice.choice(PIECES) for _ in range(dice.choice((1, 1, 1, 2))))
             for _ in range(dice.choice((1, 1, 1, 2, 2, 3)))]
    return dice.choice(("", "", "/")) + "/".join(parts) + dice.choice(("", "", "", "/", "/***", "/*", "/**"))


def random_rule(dice):
    if dice.random() < 0.02:
        return "!"
    return dice.choice(("", "", "+ ", "- ")) + random_pattern(dice)


def random_options(dice, directory):
    """Options that both programs take, files of rules among them."""
    options = []
    for number in range(dice.randint(1, 4)):
        kind = dice.choice(("exclude", "exclude", "include"))
        if dice.random() < 0.5:
            options.append(f"--{kind}={random_rule(dice)}")
            continue
        lines = [random_rule(dice) for _ in range(dice.randint(0, 6))]
        lines.insert(dice.randint(0, len(lines)), dice.choice(("", "# a", ";b")))
        path = f"{directory}/rules{number}"
        write(path, dice.choice(("\n", "\n", "\r\n")).join(lines).encode())
        options.append(f"--{kind}-from={path}")
    return options


def names_below(root):
    return {path for path in listing(root) if b".fgsync" not in path.split(b"/")} - {b"."}


def without_directory_times(root):
    return {path: entry[:5] if stat.S_ISDIR(entry[0]) else entry for path, entry in listing(root).items()}


class AsRsync(SshCase):
    def test_generated_rules_select_what_rsync_selects(self):
        for seed in range(by_scale(8, 24, 240)):
            dice = random.Random(seed)
            directory = self.path(f"case{seed}")
            os.mkdir(directory)
            source, ours, theirs = (f"{directory}/{name}" for name in ("source", "ours", "theirs"))
            make_random_tree(dice, source)
            options = random_options(dice, directory)
            # With a slash, the paths that the rules see begin with the source's name.
            slash = dice.choice(("", "/"))
            if slash:
                os.mkdir(ours)
            way = dice.choice(WAYS) if seed % 8 == 0 else "local"
            with self.subTest(seed=seed, way=way, options=options, slash=slash):
                typed = source if slash else source + "/"
                subprocess.run(["rsync", "-a", *options, typed, theirs + slash], check=True, capture_output=True)
                self.expect(0, self.go(way, source, ours + slash, *options))
                # A source that is left out itself has its directory with us, and not with rsync.
                self.assertEqual(names_below(theirs) - {b"source"}, names_below(ours) - {b"source"})


class Rules(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        for name in ("keep/cache/deep", "out"):
            os.makedirs(f"{self.source}/{name}")
        for name in ("keep/one", "keep/two.tmp", "keep/cache/three", "out/four", "five.tmp"):
            write(f"{self.source}/{name}", b"new")

    @each_way()
    def test_what_is_left_out_is_not_made_at_the_target(self, way):
        self.expect(0, self.go(way, self.source, self.target, "--include=five*", "--exclude=*.tmp", "--exclude=/out",
                               "--exclude=cache/"))
        self.assertEqual({b"five.tmp", b"keep", b"keep/one"}, names_below(self.target))

    def test_what_is_left_out_and_stands_at_the_target_is_not_touched(self):
        os.makedirs(f"{self.target}/keep")
        write(f"{self.target}/keep/two.tmp", b"old")
        before = os.stat(f"{self.target}/keep/two.tmp")
        self.expect(0, self.fgsync("--exclude=*.tmp", self.source, self.target))
        self.assertEqual(before, os.stat(f"{self.target}/keep/two.tmp"))
        self.assertEqual(["keep", "out"], names_in(self.target))

    def test_a_directory_that_is_left_out_is_not_entered(self):
        os.chmod(f"{self.source}/out", 0)
        self.addCleanup(os.chmod, f"{self.source}/out", 0o755)
        self.expect(0, self.fgsync("--exclude=out", self.source, self.target))
        self.assertEqual(["five.tmp", "keep"], names_in(self.target))

    def test_a_source_that_is_left_out_does_not_come(self):
        os.mkdir(self.target)
        self.expect(0, self.fgsync("--exclude=*.tmp", "--exclude=out", f"{self.source}/five.tmp", f"{self.source}/out",
                                   f"{self.source}/keep/one", self.target))
        self.assertEqual(["one"], names_in(self.target))

    def test_bad_rules_are_one_line_and_change_nothing(self):
        write(self.path("rules"), b"fine\n- \n")
        for options in (["--exclude-from", self.path("rules")], ["--exclude-from", self.path("none")],
                        ["--include-from", self.directory], ["--exclude-from=/dev/zero"]):
            with self.subTest(options=options):
                result = self.expect(1, self.fgsync(*options, self.source, self.target))
                self.assertEqual(1, result.text().count("\n"), result.text())
                self.assertFalse(os.path.exists(self.target))


class ListedPaths(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        for name in ("a/b/deep", "c", "odd\nname"):
            os.makedirs(f"{self.source}/{name}")
        for name in ("a/one", "a/b/two", "a/b/deep/three", "c/four", "five", "odd\nname/six", "#seven"):
            write(f"{self.source}/{name}", b"new")

    def listed(self, *lines, end="\n"):
        write(self.path("list"), "".join(line + end for line in lines).encode())
        return f"--files-from={self.path('list')}"

    def test_the_same_arrives_as_with_rsync(self):
        lists = [["a/b/two"], ["a/b/"], ["a/", "#x"], ["."], ["./", "a/b/deep/"], ["/c//four", "a/../five"],
                 ["# comment", ";c", "", "a/one", "c"], ["a", "a/b/deep/three"], ["./#seven"], []]
        ours_number = 0
        for number, lines in enumerate(lists):
            for recursive, rules in (([], []), (["-r"], ["--exclude=two", "--exclude=/a/b/deep"])):
                with self.subTest(lines=lines, recursive=recursive):
                    ours, theirs = self.path(f"ours{ours_number}"), self.path(f"theirs{ours_number}")
                    options = ["-a", *recursive, self.listed(*lines), *rules]
                    os.mkdir(theirs)
                    subprocess.run(["rsync", *options, self.source, theirs], check=True, capture_output=True)
                    way = WAYS[number] if not rules and number < len(WAYS) else "local"
                    self.expect(0, self.go(way, self.source, ours, *options))
                    # rsync leaves directories on the way the time when it made them.
                    self.assertEqual(without_directory_times(theirs), without_directory_times(ours))
                    ours_number += 1

    @each_way()
    def test_lines_may_end_with_nul(self, way):
        options = ("-0", self.listed("odd\nname/six", "#five", "five", end="\0"))
        self.expect(0, self.go(way, self.source, self.target, *options))
        self.assertEqual({b"five", b"odd\nname", b"odd\nname/six"}, names_below(self.target))

    @each_way()
    def test_paths_that_are_not_there_are_named_and_end_23(self, way):
        option = self.listed("five", "a/none", "gone/x", "five/y")
        result = self.expect(23, self.go(way, self.source, self.target, option))
        self.assertEqual({b"a"}, names_below(self.target) - {b"five"})
        for path in ("a/none", "gone/x", "five/y"):
            self.assertIn(f"{self.source}/{path}: ", result.text())

    def test_a_path_that_leads_out_of_the_source_is_refused(self):
        write(self.path("secret"), b"x")
        for line in ("../secret", "a/../../secret", "/../secret"):
            result = self.expect(1, self.fgsync(self.listed("five", line), self.source, self.target))
            self.assertIn("list:2: ", result.text())
            self.assertEqual(1, result.text().count("\n"), result.text())
            self.assertFalse(os.path.exists(self.target))

    def test_a_symlink_on_the_way_is_not_followed(self):
        os.mkdir(self.path("outside"))
        write(self.path("outside/secret"), b"x")
        os.symlink(self.path("outside"), f"{self.source}/link")
        result = self.expect(23, self.fgsync(self.listed("link/secret"), self.source, self.target))
        self.assertIn("link/secret", result.text())
        self.assertEqual([], names_in(self.target))

    def test_standard_input_may_be_the_list(self):
        write(self.path("list"), b"five\n")
        with open(self.path("list"), "rb") as file:
            self.expect(0, self.fgsync("--files-from=-", self.source, self.target, stdin=file))
        self.assertEqual(["five"], names_in(self.target))

    def test_there_is_one_source_and_it_is_a_directory(self):
        option = self.listed("five")
        self.expect(1, self.fgsync(option, f"{self.source}/a", f"{self.source}/c", self.target))
        self.expect(3, self.fgsync(option, f"{self.source}/five", self.target))


class CopiedLinks(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        for name in ("source/a/b", "outside/deep"):
            os.makedirs(self.path(name))
        write(f"{self.source}/a/file", b"inside")
        write(self.path("outside/deep/file"), b"x" * 300_000)
        os.symlink("../file", f"{self.source}/a/b/link")
        os.symlink(self.path("outside"), f"{self.source}/out")
        os.symlink("a/b", f"{self.source}/directory.tmp")

    @each_way()
    def test_what_symlinks_lead_to_arrives_as_with_rsync(self, way):
        ours, theirs = self.path("ours-" + way), self.path("theirs-" + way)
        rules = ["--exclude=*.tmp/"]
        subprocess.run(["rsync", "-aL", *rules, f"{self.source}/", theirs], check=True)
        self.expect(0, self.go(way, self.source, ours, "-L", *rules))
        self.assertEqual(without_directory_times(theirs), without_directory_times(ours))
        report = self.expect(0, self.go(way, self.source, ours, "-Lc", *rules, "--json")).json()
        self.assertEqual(0, report["files"]["sent"])

    @each_way()
    def test_symlinks_to_nothing_and_in_circles_are_named(self, way):
        target = self.path("target-" + way)
        for name, leads_to in (("nowhere", "none"), ("a/up", ".."), ("self", "self")):
            if not os.path.lexists(f"{self.source}/{name}"):
                os.symlink(leads_to, f"{self.source}/{name}")
        result = self.expect(23, self.go(way, self.source, target, "-L"))
        for name in ("nowhere", "a/up", "self"):
            self.assertIn(f"{self.source}/{name}: following the symlink: ", result.text())
        self.assertEqual(["a", "directory.tmp", "out"], names_in(target))


class OneFileSystem(SshCase):
    @needs_root
    @each_way()
    def test_a_mount_in_the_source_is_an_empty_directory(self, way):
        source, target = self.path("source-" + way), self.path("target-" + way)
        os.mkdir(source)
        write(f"{source}/beside", b"x")
        write(f"{mount_tmpfs(self, f'source-{way}/mount', 'size=1m')}/file", b"x")
        self.expect(0, self.go(way, source, target, "-x"))
        self.assertEqual({b"beside", b"mount"}, names_below(target))


if __name__ == "__main__":
    main()
