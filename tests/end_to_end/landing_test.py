"""What lands where, and which mappings are refused before anything is read or made."""
import contextlib
import os
import re
import stat
import subprocess

from ssh_server import REMOTE_WAYS, WAYS, SshCase, each_way
from support import main, needs_root
from trees import assert_replica, listing, names_in, write


class WhatLandsWhere(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("ckpt")
        os.makedirs(f"{self.source}/sub")
        write(f"{self.source}/sub/file", b"contents")
        self.file = write(self.path("single"), b"a file", 0o640, 1_234_567_890_000_000_007)

    def place(self, way):
        """An empty directory for one way's targets."""
        os.mkdir(self.path("place-" + way))
        return self.path("place-" + way)

    def assert_file(self, path):
        with open(path, "rb") as file:
            self.assertEqual(b"a file", file.read())
        got, wanted = os.lstat(path), os.lstat(self.file)
        self.assertEqual((wanted.st_mode, wanted.st_mtime_ns), (got.st_mode, got.st_mtime_ns))

    @each_way()
    def test_a_directory_becomes_the_target_itself(self, way):
        place = self.place(way)
        self.expect(0, self.go(way, self.source, f"{place}/ckpt"))
        assert_replica(self, self.source, f"{place}/ckpt")
        self.expect(0, self.go(way, self.source, f"{place}/ckpt"))  # also where it exists already
        assert_replica(self, self.source, f"{place}/ckpt")
        self.assertEqual(["ckpt"], names_in(place))

    @each_way()
    def test_a_source_with_a_slash_lands_in_either_form_of_target(self, way):
        place = self.place(way)
        self.expect(0, self.go(way, self.source + "/", f"{place}/a"))
        self.expect(0, self.go(way, self.source + "/", f"{place}/b/"))
        assert_replica(self, self.source, f"{place}/a")
        assert_replica(self, self.source, f"{place}/b")

    @each_way()
    def test_a_directory_lands_below_a_target_with_a_slash(self, way):
        place = self.place(way)
        self.expect(0, self.go(way, self.source, f"{place}/"))
        assert_replica(self, self.source, f"{place}/ckpt")
        self.expect(0, self.go(way, self.source, f"{place}/made/"))
        assert_replica(self, self.source, f"{place}/made/ckpt")
        self.assertEqual(["ckpt", "made"], names_in(place))

    @each_way()
    def test_a_file_lands_under_the_targets_name(self, way):
        place = self.place(way)
        self.expect(0, self.go(way, self.file, f"{place}/name"))
        self.assert_file(f"{place}/name")
        write(f"{place}/old", b"older contents")
        self.expect(0, self.go(way, self.file, f"{place}/old"))
        self.assert_file(f"{place}/old")
        self.assertEqual(["name", "old"], names_in(place))

    @each_way()
    def test_a_file_lands_in_an_existing_directory(self, way):
        place = self.place(way)
        self.expect(0, self.go(way, self.file, place))
        self.assert_file(f"{place}/single")
        self.assertEqual(["single"], names_in(place))

    @each_way()
    def test_a_file_lands_in_a_target_with_a_slash(self, way):
        place = self.place(way)
        self.expect(0, self.go(way, self.file, f"{place}/made/"))
        self.assert_file(f"{place}/made/single")
        self.assertEqual(["single"], names_in(f"{place}/made"))

    @each_way()
    def test_several_sources_land_under_their_own_names(self, way):
        place = self.place(way)
        sources = [self.source, self.file, self.home]
        target = f"{place}/all"
        if way == "pull":
            arguments = [*self.over_ssh(), *("near:" + path for path in sources), target]
        elif way == "push":
            arguments = [*self.over_ssh(), *sources, "near:" + target]
        else:
            arguments = [*sources, target]
        self.expect(0, self.fgsync(*arguments))
        assert_replica(self, self.source, f"{target}/ckpt")
        assert_replica(self, self.home, f"{target}/home")
        self.assert_file(f"{target}/single")
        self.assertEqual(["ckpt", "home", "single"], names_in(target))

    @each_way("local", "push")
    def test_two_sources_with_one_base_name_are_a_usage_error(self, way):
        os.makedirs(self.path("elsewhere/ckpt"), exist_ok=True)
        place = self.place(way)
        remote = [*self.over_ssh()] if way == "push" else []
        target = f"{place}/t" if way == "local" else f"near:{place}/t"
        result = self.expect(1, self.fgsync(*remote, self.source, self.path("elsewhere/ckpt"), target))
        self.assertIn("ckpt", result.text())
        self.assertEqual([], os.listdir(place))

    @each_way()
    def test_missing_parents_are_made_only_when_asked_for(self, way):
        place = self.place(way)
        for source in (self.source, self.file):
            for target in ("missing/name", "no/such/parent", "no/such/parent/"):
                result = self.expect(3, self.go(way, source, f"{place}/{target}"))
                self.assertIn("--mkpath", result.text())
                self.assertEqual([], os.listdir(place))
        self.expect(0, self.go(way, self.source, f"{place}/a/b/c", "--mkpath"))
        assert_replica(self, self.source, f"{place}/a/b/c")
        self.expect(0, self.go(way, self.file, f"{place}/d/e/name", "--mkpath"))
        self.assert_file(f"{place}/d/e/name")

    @each_way()
    def test_a_symlink_as_the_source_stands_for_what_it_leads_to(self, way):
        place = self.place(way)
        os.symlink(self.source, f"{place}/latest")
        self.expect(0, self.go(way, f"{place}/latest", f"{place}/current"))
        assert_replica(self, self.source, f"{place}/current")

    @each_way()
    def test_a_symlink_to_a_directory_as_the_target_is_followed(self, way):
        place = self.place(way)
        os.mkdir(f"{place}/real")
        os.symlink("real", f"{place}/alias")
        self.expect(0, self.go(way, self.source, f"{place}/alias"))
        assert_replica(self, self.source, f"{place}/real")

    def test_a_relative_remote_path_is_below_the_remote_home(self):
        # sshd changes to the home that the password file names; this one does so to a home of the test's.
        far = self.script("at-home", f'cd {self.far_home} && exec {self.far} "$@"\n')
        self.expect(0, self.fgsync(*self.over_ssh(far=far), self.source, "near:replica"))
        assert_replica(self, self.source, f"{self.far_home}/replica")
        self.expect(0, self.fgsync(*self.over_ssh(far=far), "near:replica", self.path("back")))
        assert_replica(self, self.source, self.path("back"))

    @each_way(*REMOTE_WAYS)
    def test_no_shell_reads_a_path(self, way):
        place = self.place(way)
        for name in ("a b", "$(touch called)", "`id`", "q'q", 'd"d', "*", "~", "semi;touch called", "line\nbreak",
                     "back\\slash", "--delete", "&", "é"):
            source, target = f"{place}/s {name}", f"{place}/t {name}"
            os.mkdir(source)
            write(f"{source}/f", name.encode())
            self.expect(0, self.go(way, source, target))
            assert_replica(self, source, target)
        self.assertEqual([], [p for p in os.listdir(place) if p[:2] not in ("s ", "t ")])
        self.assertFalse(os.path.exists(f"{self.far_home}/called"))


class Refusals(SshCase):
    def setUp(self):
        super().setUp()
        self.tree = self.path("tree")
        os.makedirs(f"{self.tree}/inner/deep")
        self.file = write(f"{self.tree}/file", b"original", 0o600)

    def refuse(self, way, source, target, code=3):
        """The run ends so, names a path in one line, and leaves everything as it was."""
        before = listing(self.tree, True), sorted(os.listdir(self.directory))
        result = self.expect(code, self.go(way, source, target))
        self.assertEqual(before, (listing(self.tree, True), sorted(os.listdir(self.directory))))
        host = "" if way == "local" else "(near: )?"
        self.assertRegex(result.text(), rf"(?m)^fgsync: {host}{re.escape(self.directory)}/.+: .+")
        return result

    def check_refused(self, source, target, *reasons):
        for way in WAYS:
            with self.subTest(way=way, source=source, target=target):
                result = self.refuse(way, source, target)
                for reason in reasons or ["refused"]:
                    self.assertIn(reason, result.text())

    def test_a_target_inside_the_source_is_refused(self):
        self.check_refused(self.tree, f"{self.tree}/inner")
        self.check_refused(self.tree, f"{self.tree}/inner/new")
        self.check_refused(f"{self.tree}/", f"{self.tree}/inner/deep/")
        self.check_refused(self.tree, f"{self.tree}/")  # would be tree/tree

    def test_a_source_inside_the_target_is_refused(self):
        self.check_refused(f"{self.tree}/inner/deep", self.tree)
        self.check_refused(f"{self.tree}/inner/", f"{self.tree}/")

    def test_the_same_directory_twice_is_refused(self):
        self.check_refused(self.tree, self.tree)
        self.check_refused(f"{self.tree}/", f"{self.tree}/inner/..")
        self.check_refused(self.tree, self.directory + "/")  # tree into its own parent

    def test_an_alias_by_symlink_is_refused(self):
        os.symlink(self.tree, self.path("alias"))
        self.check_refused(self.tree, self.path("alias"))
        self.check_refused(self.path("alias"), self.tree)
        self.check_refused(self.tree, self.path("alias/inner/new"))
        self.check_refused(self.path("alias/inner"), self.tree)

    @needs_root
    def test_an_alias_by_bind_mount_is_refused(self):
        alias = self.path("bound")
        os.mkdir(alias)
        subprocess.run(["mount", "--bind", self.tree, alias], check=True)
        self.addCleanup(subprocess.run, ["umount", alias], check=True)
        self.check_refused(self.tree, alias)
        self.check_refused(alias, f"{self.tree}/inner/new")

    def test_one_file_onto_itself_is_refused(self):
        self.check_refused(self.file, self.file)
        self.check_refused(self.file, self.tree)  # into its own directory
        os.symlink(self.tree, self.path("alias"))
        self.check_refused(self.file, self.path("alias/file"))

    def test_a_hard_link_of_the_source_as_the_target_keeps_its_contents(self):
        other = f"{self.tree}/hard"
        os.link(self.file, other)
        self.go("local", self.file, other)
        for path in (self.file, other):
            with open(path, "rb") as file:
                self.assertEqual(b"original", file.read())

    def test_a_missing_source_is_named(self):
        self.check_refused(self.path("no-such"), self.path("target"), "no-such", "No such file or directory")

    def test_one_missing_source_among_several_refuses_all(self):
        result = self.expect(3, self.fgsync(self.tree, self.path("no-such"), self.path("target")))
        self.assertIn("no-such", result.text())
        self.assertFalse(os.path.exists(self.path("target")))

    def test_a_fifo_as_the_source_is_refused(self):
        os.mkfifo(self.path("fifo"))
        self.check_refused(self.path("fifo"), self.path("target"), "fifo")

    def test_a_file_does_not_take_the_place_of_a_fifo(self):
        os.mkfifo(self.path("fifo"))
        self.check_refused(write(self.path("file"), b"new"), self.path("fifo"), "FIFO")
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("fifo")).st_mode))

    def test_a_target_that_is_a_file_is_refused_for_a_directory(self):
        target = write(self.path("target"), b"kept")
        self.check_refused(self.tree, target, "Not a directory")
        with open(target, "rb") as file:
            self.assertEqual(b"kept", file.read())

    def test_a_file_in_the_place_of_the_targets_parent_is_refused(self):
        write(self.path("notadir"))
        self.check_refused(self.tree, self.path("notadir/target"), "Not a directory")

    def test_two_remote_sides_are_a_usage_error_that_says_so(self):
        result = self.expect(1, self.fgsync(*self.over_ssh(), "near:/a", "near:/b"))
        self.assertIn("remote", result.text())
        self.assertEqual([], self.far_pids())


class Colons(SshCase):
    """A colon counts before the first slash only."""

    def setUp(self):
        super().setUp()
        self.base = self.path("s")
        os.makedirs(f"{self.base}/c:d")
        self.called = self.path("called")
        fake = self.path("bin")
        os.mkdir(fake)
        self.script("bin/ssh", f'echo "$@" > {self.called}\nexit 255\n')
        for name in ("a:b", "fx:f", "::1", "e:"):
            write(f"{self.base}/{name}", name.encode())
        self.only_fake = self.environment(PATH=f"{fake}:{os.environ['PATH']}")

    def here(self, *arguments):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.called)
        return self.fgsync(*arguments, env=self.only_fake, cwd=self.base)

    def assert_local(self, *arguments):
        self.expect(0, self.here(*arguments))
        self.assertFalse(os.path.exists(self.called))

    def test_a_slash_before_the_colon_makes_it_local(self):
        self.assert_local("./a:b", "../d/")
        self.assert_local(f"{self.base}/c:d/", "../d/")
        self.assert_local("./::1", "./e:", "../d/")
        self.assertEqual(["::1", "a:b", "e:"], names_in(self.path("d")))

    def test_names_with_colons_within_a_tree_do_not_matter(self):
        self.assert_local(self.base, "../copy")
        assert_replica(self, self.base, self.path("copy"))

    def test_a_bare_colon_means_a_host_and_the_error_names_the_way_out(self):
        for name in ("a:b", "fx:f", "e:", "c:d"):
            with self.subTest(name=name):
                result = self.here("--", name, "../d/")
                self.assertIn(result.code, (1, 255), result.text())
                self.assertIn("./" + name, result.text())
        result = self.expect(1, self.here("::1", "../d/"))
        self.assertIn("./::1", result.text())

    def test_two_bare_colons_name_the_way_out_too(self):
        result = self.expect(1, self.here("a:b", "c:d"))
        self.assertIn("./", result.text())
        self.assertFalse(os.path.exists(self.called))


if __name__ == "__main__":
    main()
