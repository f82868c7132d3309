"""Trees of every shape arrive as they are, and a second run sends what changed and nothing else."""
import os

from ssh_server import WAYS, SshCase, each_way
from support import GIB, MIB, by_scale, main, needs_root
from trees import (assert_replica, listing, make_deep, make_kinds, make_names, make_small_files, sha256, write,
                   write_large)


class Trees(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        os.mkdir(self.source)
        self.target_number = 0

    def new_target(self):
        self.target_number += 1
        return self.path(f"target{self.target_number}")

    def replicate_all_ways(self, rsync=True, options=()):
        for way in WAYS:
            with self.subTest(way=way):
                target = self.new_target()
                self.expect(0, self.go(way, self.source, target, *options))
                assert_replica(self, self.source, target, rsync)

    def test_every_kind_of_entry_arrives_as_it_is(self):
        make_kinds(self.source)
        self.replicate_all_ways()

    def test_names_of_any_bytes_arrive(self):
        make_names(self.source)
        self.replicate_all_ways()

    def test_an_empty_directory_is_replicated(self):
        self.replicate_all_ways()

    def test_many_small_files_arrive(self):
        count = by_scale(2_000, 20_000, 20_000)
        make_small_files(self.source, count)
        for way in WAYS:
            with self.subTest(way=way):
                target = self.new_target()
                report = self.expect(0, self.go(way, self.source, target, "--json")).json()
                self.assertEqual((count, count), (report["files"]["total"], report["files"]["sent"]))
                assert_replica(self, self.source, target)

    def test_a_large_file_arrives(self):
        size = by_scale(32 * MIB, 256 * MIB, 4 * GIB) + 4097
        source, target = self.source, self.new_target()
        write_large(f"{source}/big", size)
        digest = sha256(f"{source}/big")
        for way in WAYS:
            with self.subTest(way=way):
                self.expect(0, self.go(way, source, target, seconds=300))
                self.assertEqual(digest, sha256(f"{target}/big"))
                assert_replica(self, source, target, rsync=False)
                os.unlink(f"{target}/big")

    def test_a_file_around_each_boundary_of_size_arrives(self):
        sizes = [limit + step for limit in (0, 4096, 64 << 10, 256 << 10, MIB, 4 * MIB, 16 * MIB)
                 for step in (-1, 0, 1) if limit + step >= 0]
        for size in sizes:
            write_large(f"{self.source}/{size}", size, seed=size)
        self.replicate_all_ways()
        self.replicate_all_ways(options=("--chunk-size=64K", "--streams=3"))

    def test_a_file_with_holes_has_the_same_contents(self):
        with open(f"{self.source}/holes", "wb") as file:
            file.seek(5 * MIB + 1)
            file.write(b"data between holes")
            file.truncate(20 * MIB)
        self.replicate_all_ways()

    def test_a_deep_tree_arrives(self):
        make_deep(self.source, 300, "d")
        self.replicate_all_ways()

    def test_a_tree_deeper_than_a_path_can_name_arrives(self):
        make_deep(self.source, 300, "n" * 200)  # 60 KB; PATH_MAX is 4 KiB
        self.replicate_all_ways(rsync=False)  # rsync cannot go there


class LaterRuns(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)
        make_kinds(self.source)
        make_small_files(f"{self.source}/many", 600)

    def counts(self, way):
        report = self.expect(0, self.go(way, self.source, self.target, "--json")).json()
        assert_replica(self, self.source, self.target)
        return report["files"]["sent"], report["bytes"]["sent"]

    def make_equal_target(self, way):
        self.target = self.path("target-" + way)
        self.counts(way)
        return WAYS.index(way)

    @each_way()
    def test_a_second_run_sends_nothing(self, way):
        self.make_equal_target(way)
        before = listing(self.target)
        self.assertEqual((0, 0), self.counts(way))
        self.assertEqual(before, listing(self.target))

    @each_way()
    def test_a_third_run_sends_what_changed_alone(self, way):
        number = self.make_equal_target(way)
        grown, new, touched = f"{self.source}/some", f"{self.source}/new{number}", f"{self.source}/one"
        with open(grown, "ab") as file:
            file.write(b"more")
        write(new, b"n" * 1000)
        os.utime(touched, ns=(1, 1_000_000_000 + number))
        os.mkdir(f"{self.source}/new-directory{number}")
        size = os.stat(grown).st_size + 1000 + os.stat(touched).st_size
        self.assertEqual((3, size), self.counts(way))

    @each_way()
    def test_a_change_of_mode_alone_is_applied_without_sending(self, way):
        number = self.make_equal_target(way)
        os.chmod(f"{self.source}/some", (0o601, 0o4700, 0o000)[number])
        os.chmod(f"{self.source}/many", (0o701, 0o1700, 0o755)[number])
        self.assertEqual((0, 0), self.counts(way))

    @needs_root
    @each_way()
    def test_a_change_of_owner_alone_is_applied_without_sending(self, way):
        number = self.make_equal_target(way)
        os.chown(f"{self.source}/setuid-of-another", 100 + number, 200)
        os.chmod(f"{self.source}/setuid-of-another", 0o6755)
        os.chown(f"{self.source}/many", 300, 400 + number)
        os.chown(f"{self.source}/link-file", 500, 600 + number, follow_symlinks=False)
        self.assertEqual((0, 0), self.counts(way))

    @each_way()
    def test_a_change_of_a_directorys_time_alone_is_applied(self, way):
        number = self.make_equal_target(way)
        os.utime(f"{self.source}/many", ns=(1, 1_111_111_111_000_000_001 + number))
        self.assertEqual((0, 0), self.counts(way))

    @each_way()
    def test_an_entry_of_another_kind_takes_the_place_of_the_old_one(self, way):
        source, target = self.path(f"s-{way}"), self.path(f"t-{way}")
        os.makedirs(f"{source}/new-directory")
        write(f"{source}/new-directory/inside", b"i")
        write(f"{source}/was-link", b"now a file")
        os.symlink("was-link", f"{source}/was-file")
        os.symlink("another", f"{source}/link")
        os.makedirs(target)
        write(f"{target}/new-directory", b"a file in the way")
        write(f"{target}/was-file", b"f")
        os.symlink("/nowhere", f"{target}/was-link")
        os.symlink("one", f"{target}/link")
        self.expect(0, self.go(way, source, target))
        assert_replica(self, source, target)

    @each_way()
    def test_a_directory_in_the_way_of_a_file_stays_and_is_named(self, way):
        source, target = self.path(f"s-{way}"), self.path(f"t-{way}")
        os.mkdir(source)
        write(f"{source}/name", b"file")
        write(f"{source}/other", b"other")
        os.makedirs(f"{target}/name/kept")
        result = self.expect(23, self.go(way, source, target))
        self.assertIn("name", result.text())
        self.assertTrue(os.path.isdir(f"{target}/name/kept"))
        self.assertTrue(os.path.isfile(f"{target}/other"))

    @each_way()
    def test_a_symlink_in_the_target_is_never_followed(self, way):
        source, target, outside = (self.path(f"{name}-{way}") for name in ("s", "t", "outside"))
        os.makedirs(f"{source}/name")
        write(f"{source}/name/file", b"new")
        os.mkdir(target)
        os.mkdir(outside)
        os.symlink(outside, f"{target}/name")
        self.go(way, source, target)
        self.assertEqual([], os.listdir(outside))

    @each_way()
    def test_what_only_the_target_has_stays(self, way):
        self.make_equal_target(way)
        write(f"{self.target}/extra", b"kept")
        self.expect(0, self.go(way, self.source, self.target))
        self.assertTrue(os.path.exists(f"{self.target}/extra"))


if __name__ == "__main__":
    main()
