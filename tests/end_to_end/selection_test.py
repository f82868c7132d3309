"""What the rules about names leave out stays where it is, and rsync leaves out the same."""
import os
import random
import subprocess

from ssh_server import WAYS, SshCase, each_way
from support import by_scale, main
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


if __name__ == "__main__":
    main()
