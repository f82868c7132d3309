"""--publish=tree: the target is the old tree or the new one, whole, at every moment."""
import os
import random
import shutil
import signal
import time

from mounts import mount_tmpfs, run as run_command
from ssh_server import SshCase, each_way
from support import CTL_BINARY, MIB, Case, by_scale, main, needs_root, wait_until
from tracing import RENAMES, SYNCS, calls_of, needs_strace, under_strace
from trees import assert_replica, has_journaled_chunks, has_staged_data, listing, names_in, write, write_large

SEED = int(os.environ.get("FGSYNC_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
TREE = "--publish=tree"


class PublishTree(Case):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.makedirs(f"{self.source}/a/b")
        for number in range(20):
            write(f"{self.source}/a/small{number}", b"one %d" % number)
        write_large(f"{self.source}/large", 5 * MIB)
        write(f"{self.source}/a/b/deep", b"deep")
        write(f"{self.source}/a/b/.metadata", b"names")
        os.symlink("a/b", f"{self.source}/latest")

    def replicate(self, target, *options, code=0):
        return self.expect(code, self.fgsync(TREE, *options, self.source, target))

    def change_source(self):
        write(f"{self.source}/a/small1", b"another one")
        write(f"{self.source}/a/new", b"new")
        os.unlink(f"{self.source}/latest")
        os.symlink("a", f"{self.source}/latest")

    def assert_alone(self, *names):
        """Nothing is left beside the target."""
        self.assertEqual({"home", "output", "source", *names}, set(os.listdir(self.directory)))

    def verify(self, target):
        self.expect(0, self.fgsync("verify", target, program=CTL_BINARY))

    # ---- The kinds of target

    def test_a_missing_target_gets_its_name_when_it_is_whole(self):
        self.replicate(self.target)
        assert_replica(self, self.source, self.target)
        self.verify(self.target)
        self.assert_alone("target")

    def test_missing_parents_are_made_if_asked_for(self):
        self.replicate(self.path("x/y/target"), code=3)
        self.replicate(self.path("x/y/target"), "--mkpath")
        assert_replica(self, self.source, self.path("x/y/target"))

    def test_a_directory_is_exchanged_and_who_has_it_open_goes_on_reading_it(self):
        self.replicate(self.target)
        old = listing(self.target)
        root = os.open(self.target, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, root)
        with open(f"{self.target}/a/small1", "rb") as open_file:
            self.change_source()
            self.replicate(self.target)
            self.assertEqual(b"one 1", open_file.read())
        self.assertNotEqual(os.fstat(root).st_ino, os.stat(self.target).st_ino)
        self.assertEqual([], os.listdir(root))  # what was opened by name is the old tree still
        self.assertNotEqual(old, listing(self.target))
        assert_replica(self, self.source, self.target)
        self.verify(self.target)
        self.assert_alone("target")

    def test_what_is_unchanged_is_linked_and_what_is_not_in_the_source_stays(self):
        self.replicate(self.target)
        write(f"{self.target}/a/extra", b"extra", mode=0o600, time_ns=1_000_000_001)
        os.mkdir(f"{self.target}/more")
        os.symlink("nowhere", f"{self.target}/more/link")
        os.mkfifo(f"{self.target}/more/fifo")
        extra = {path: entry for path, entry in listing(self.target).items() if b"more" in path or b"extra" in path}
        inodes = {name: os.stat(f"{self.target}/{name}").st_ino for name in ("large", "a/small2", "a/extra")}
        self.change_source()
        os.chmod(f"{self.source}/a/small3", 0o600)
        self.replicate(self.target)
        for name, inode in inodes.items():
            self.assertEqual(inode, os.stat(f"{self.target}/{name}").st_ino, name)
            self.assertEqual(1, os.stat(f"{self.target}/{name}").st_nlink, name)
        got = listing(self.target)
        for path, entry in extra.items():
            self.assertEqual(entry, got.pop(path))
        self.assertEqual(listing(self.source), got)

    def test_another_mode_does_not_touch_the_old_tree(self):
        self.replicate(self.target)
        with open(f"{self.target}/a/small3", "rb") as old:
            os.chmod(f"{self.source}/a/small3", 0o600)
            self.replicate(self.target)
            self.assertEqual(0o644, os.fstat(old.fileno()).st_mode & 0o777)
        assert_replica(self, self.source, self.target)

    def test_another_time_alone_does_not_touch_the_old_tree(self):
        for option in ("--size-only", "-c"):
            with self.subTest(option=option):
                self.replicate(self.target)
                with open(f"{self.target}/a/small3", "rb") as old:
                    before = os.fstat(old.fileno()).st_mtime_ns
                    os.utime(f"{self.source}/a/small3", ns=(before, before + 1_000))
                    report = self.replicate(self.target, option, "--json").json()
                    self.assertEqual(0, report["files"]["sent"])
                    self.assertEqual(before, os.fstat(old.fileno()).st_mtime_ns)
                assert_replica(self, self.source, self.target)
                self.verify(self.target)

    def test_a_symlink_gets_a_new_directory_and_keeps_its_manner(self):
        self.replicate(self.path("v1"))
        os.symlink("v1", self.path("current"))
        for number in (2, 3):
            write(f"{self.source}/a/small1", b"version %d" % number)
            self.replicate(self.path("current"))
            self.assertEqual(f"v1~{number}", os.readlink(self.path("current")))
            assert_replica(self, self.source, self.path("current"))
        # What fgsync has made for the link goes, what it has not stays.
        with open(self.path("v1/a/small1"), "rb") as old:
            self.assertEqual(b"one 1", old.read())
        self.assert_alone("v1", "v1~3", "current")

    def test_a_link_that_was_not_switched_is_switched_by_the_next_run(self):
        self.replicate(self.path("v1"))
        os.symlink("v1", self.path("current"))
        self.change_source()
        os.mkdir(self.path(".current.fgsync-link"))  # in the way of the last step
        self.replicate(self.path("current"), code=11)
        self.assertEqual("v1", os.readlink(self.path("current")))
        os.rmdir(self.path(".current.fgsync-link"))
        self.replicate(self.path("current"))
        self.assertEqual("v1~2", os.readlink(self.path("current")))
        assert_replica(self, self.source, self.path("current"))
        self.assert_alone("v1", "v1~2", "current")

    def test_an_absolute_symlink_elsewhere(self):
        os.makedirs(self.path("store/data"))
        os.symlink(self.path("store/data"), self.path("current"))
        self.replicate(self.path("current"))
        self.assertEqual(self.path("store/data~2"), os.readlink(self.path("current")))
        self.assertEqual({"data", "data~2"}, set(os.listdir(self.path("store"))))

    @needs_root
    def test_a_mount_point_is_refused_and_what_is_possible_is_said(self):
        mount = mount_tmpfs(self, "mount", "size=64m")
        for options in ((), ("-n",)):
            said = self.replicate(mount, *options, code=4).text()
            self.assertIn("mount point", said)
            self.assertIn("a directory below it", said)
        self.assertEqual([], os.listdir(mount))
        self.assert_alone("mount")
        self.replicate(f"{mount}/target")
        assert_replica(self, self.source, f"{mount}/target")

    @needs_root
    def test_what_is_mounted_inside_is_refused(self):
        self.replicate(self.target)
        mount_tmpfs(self, "target/inside", "size=1m")
        before = listing(self.target)
        self.change_source()
        self.assertIn("inside", self.replicate(self.target, code=4).text())
        self.assertEqual(before, listing(self.target))
        self.assert_alone("target")

    @needs_root
    def test_what_is_mounted_inside_meanwhile_is_not_emptied(self):
        self.replicate(self.target)
        volume = mount_tmpfs(self, "volume", "size=1m")
        write(f"{volume}/precious", b"precious")
        write_large(f"{self.source}/large", 8 * MIB)
        run = self.start(TREE, "--bwlimit=8M", self.source, self.target)
        wait_until(lambda: self.carried() or run.process.poll() is not None, "the new tree is being filled")
        run_command("mount", "--bind", volume, f"{self.target}/a")
        result = run.wait()
        inside = self.path(".target.fgsync-tree/tree/a")
        run_command("umount", inside if os.path.exists(inside) else f"{self.target}/a")
        self.expect(0, result)
        self.assertIn("something is mounted there", result.text())
        with open(f"{volume}/precious", "rb") as file:
            self.assertEqual(b"precious", file.read())
        self.replicate(self.target)
        assert_replica(self, self.source, self.target)
        self.assert_alone("target", "volume")

    # ---- What goes wrong

    def test_another_tree_in_its_place_is_left_alone(self):
        self.replicate(self.target)
        write_large(f"{self.source}/large", 8 * MIB)
        run = self.start(TREE, "--bwlimit=8M", self.source, self.target)
        wait_until(lambda: self.carried() or run.process.poll() is not None, "the new tree is being filled")
        os.rename(self.target, self.path("moved"))
        os.mkdir(self.target)
        write(f"{self.target}/mine", b"mine")
        self.assertIn("something else has been put in its place", self.expect(3, run.wait()).text())
        self.assertEqual(["mine"], names_in(self.target))
        self.assertIn("a", names_in(self.path("moved")))

    def carried(self):
        """Whether a run has all of the old tree in the new one, and is at the rest."""
        return has_staged_data(self.path(".target.fgsync-tree/tree"))

    def test_a_dry_run_makes_nothing(self):
        self.replicate(self.target, "-n")
        self.assert_alone()

    def test_the_old_tree_stays_if_anything_fails(self):
        self.replicate(self.target)
        self.change_source()
        os.mkdir(f"{self.target}/a/x")
        before = listing(self.target)
        write(f"{self.source}/a/x", b"a directory stands where this must go")
        self.assertIn("held back", self.replicate(self.target, "--last=new", code=23).text())
        self.assertEqual(before, listing(self.target))
        os.rmdir(f"{self.target}/a/x")
        self.replicate(self.target)
        with open(f"{self.target}/a/x", "rb") as file:
            self.assertIn(b"a directory", file.read())
        self.assert_alone("target")

    def test_killed_at_any_moment_the_old_tree_or_the_new_one_stands_there(self):
        chance = random.Random(SEED)
        print(f"FGSYNC_TEST_SEED={SEED}")
        for number in range(300):
            write(f"{self.source}/a/b/many{number}", b"m" * number)
        self.replicate(self.target)
        started = time.monotonic()
        self.replicate(self.path("measured"))
        whole = time.monotonic() - started
        shutil.rmtree(self.path("measured"))
        versions = [listing(self.target)]
        for moment in range(by_scale(5, 10, 30)):
            for number in range(0, 300, 3):
                write(f"{self.source}/a/b/many{number}", b"%d" % moment * (number + 1))
            versions.append(listing(self.source))
            run = self.start(TREE, self.source, self.target)
            time.sleep(chance.uniform(0, 1.2 * whole))
            run.signal(signal.SIGKILL)
            run.wait()
            self.assertIn(listing(self.target), versions, f"after kill {moment}")
        self.replicate(self.target)
        assert_replica(self, self.source, self.target)
        self.verify(self.target)
        self.assert_alone("target")

    def interrupt_with_chunks_journaled(self):
        """Leaves a new tree beside the target. Returns where it is."""
        write_large(f"{self.source}/larger", 30 * MIB, seed=5)
        run = self.start(TREE, "--bwlimit=10M", "--chunk-size=1M", self.source, self.target)
        workshop = self.path(".target.fgsync-tree")
        wait_until(lambda: has_journaled_chunks(f"{workshop}/tree"), "chunks are journaled")
        run.signal(signal.SIGTERM)
        self.assertEqual(20, run.wait().code)
        self.assertFalse(os.path.exists(self.target))
        return workshop

    def test_an_interrupted_run_is_gone_on_with(self):
        self.interrupt_with_chunks_journaled()
        os.unlink(f"{self.source}/a/b/deep")  # may be in the new tree already
        result = self.replicate(self.target, "--json", "--chunk-size=1M").json()
        self.assertGreaterEqual(result["bytes"]["resumed"], MIB)
        assert_replica(self, self.source, self.target)
        self.verify(self.target)
        self.assert_alone("target")

    def test_what_another_run_has_brought_is_not_there_yet_for_one_that_passes_things_over(self):
        self.interrupt_with_chunks_journaled()
        for options, brought in (("--existing",), []), (("--max-size=1K", "--exclude=b"), ["a", "latest"]):
            with self.subTest(options=options):
                said = self.replicate(self.target, *options).text()
                self.assertIn("removed what an earlier run", said)
                self.assertEqual(brought, names_in(self.target))
                shutil.rmtree(self.target)
                self.interrupt_with_chunks_journaled()

    def test_what_is_left_is_named_by_other_runs_and_removed_after_seven_days(self):
        workshop = self.interrupt_with_chunks_journaled()
        said = self.expect(0, self.fgsync(self.source, self.target)).text()
        self.assertIn(f"has left its new tree in {workshop}", said)
        assert_replica(self, self.source, self.target)
        self.assertTrue(os.path.exists(f"{workshop}/tree"))
        long_ago = time.time() - 8 * 86_400
        os.utime(workshop, (long_ago, long_ago))
        said = self.expect(0, self.fgsync(self.source, self.target)).text()
        self.assertIn(f"removed what an earlier run with {TREE} has left in {workshop}", said)
        self.assert_alone("target")

    def test_without_resuming_it_begins_anew(self):
        os.makedirs(self.path(".target.fgsync-tree/tree/rubbish"))
        self.assertIn("removed what an earlier run", self.replicate(self.target, "--no-resume").text())
        assert_replica(self, self.source, self.target)
        self.assert_alone("target")

    def test_a_second_run_waits_and_goes_on_with_what_is_there_then(self):
        self.replicate(self.target)
        self.change_source()
        write_large(f"{self.source}/slow", 8 * MIB, seed=7)
        first = self.start(TREE, "--bwlimit=4M", self.source, self.target)
        state = self.path(".target.fgsync-tree/tree/.fgsync")
        wait_until(lambda: os.path.exists(state), "the first run makes its tree")
        self.expect(41, self.fgsync(TREE, "--lock", self.source, self.target))
        self.expect(41, self.fgsync("--lock", self.source, self.target))
        second, third = self.start(TREE, self.source, self.target), self.start(self.source, self.target)
        for run in (first, second, third):
            self.expect(0, run.wait())
        assert_replica(self, self.source, self.target)
        self.assert_alone("target")

    # ---- Durability

    @needs_strace
    def test_the_switch_comes_after_the_flush_and_before_a_sync_of_its_directory(self):
        self.replicate(self.target)
        self.change_source()
        before, log = under_strace(self)
        self.expect(0, self.fgsync(TREE, self.source, self.target, before=before))
        calls = calls_of(log)
        switch, = [call for call in calls if call.name == "renameat2" and call.to == self.target]
        self.assertIn("RENAME_EXCHANGE", switch.arguments)
        earlier = [call for call in calls if call.name in RENAMES and call is not switch]
        written = max(call.ended for call in earlier)
        self.assertTrue(any(call.name == "syncfs" and call.result == 0 and call.begun > written and
                            call.ended < switch.begun for call in calls))
        self.assertTrue(any(call.name in SYNCS and call.path == self.directory and call.begun > switch.ended
                            for call in calls))


class Remotely(SshCase):
    @each_way("push", "pull")
    def test_over_ssh_it_is_the_same(self, way):
        source, place = self.path(way), self.path("place-" + way)
        os.makedirs(f"{source}/below")
        os.mkdir(place)
        for contents in (b"old", b"newer"):
            write(f"{source}/below/file", contents)
            self.expect(0, self.go(way, source, f"{place}/target", TREE))
            assert_replica(self, source, f"{place}/target")
            self.assertEqual(["target"], os.listdir(place))
        self.assertEqual(1, os.stat(f"{place}/target/below/file").st_nlink)


if __name__ == "__main__":
    main()
