"""Files that announce others come last: whoever follows one, at any moment, finds what it names."""
import contextlib
import hashlib
import json
import os
import random
import signal
import threading
import time

from ssh_server import SshCase, each_way
from support import KIB, MIB, USER_ID, by_scale, main, needs_root, wait_until
from mounts import AS_USER, let_users_run
from trees import assert_no_state, assert_replica, listing, state_names, write, write_large

SHARDS = 8
SEED = int(os.environ.get("FGSYNC_TEST_SEED", random.SystemRandom().randrange(1 << 32)))


def sha256(contents):
    return hashlib.sha256(contents).hexdigest()


def make_step(root, step, shard_bytes):
    """A checkpoint in root/step_N: shards, and .metadata, which lists them; in root/model an index of shards."""
    directory = f"{root}/step_{step}"
    os.makedirs(directory)
    os.makedirs(f"{root}/model", exist_ok=True)
    sums, model = {}, {}
    for number in range(SHARDS):
        contents = random.Random(step * 100 + number).randbytes(shard_bytes)
        write(f"{directory}/{number}.distcp", contents)
        sums[f"{number}.distcp"] = sha256(contents)
        write(f"{root}/model/v{step}-{number}.safetensors", contents[::-1])
        model[f"v{step}-{number}.safetensors"] = sha256(contents[::-1])
    write(f"{directory}/.metadata", json.dumps(sums).encode())
    write(f"{root}/model/model.safetensors.index.json", json.dumps(model).encode())
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{root}/latest")
    os.symlink(f"step_{step}", f"{root}/latest")
    write(f"{root}/latest.txt", b"step_%d" % step)


class Watcher:
    """Follows every marker of a tree over and over, and keeps what it found wrong."""

    def __init__(self, target):
        self.target, self.wrong, self.rounds, self.known = target, [], 0, {}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def watch(self):
        while not self.over.wait(0.005):
            self.look()

    def look(self):
        self.rounds += 1
        steps = {name for name in os.listdir(self.target) if name.startswith("step_")}
        markers = [(f"{self.target}/{step}/.metadata", False) for step in steps]
        markers.append((f"{self.target}/model/model.safetensors.index.json", False))
        with contextlib.suppress(FileNotFoundError):
            markers.append((f"{self.target}/{os.readlink(f'{self.target}/latest')}/.metadata", True))
        with contextlib.suppress(FileNotFoundError):
            markers.append((f"{self.target}/{self.read(f'{self.target}/latest.txt').decode()}/.metadata", True))
        for marker, must_be_there in markers:
            self.follow(marker, must_be_there)

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def follow(self, marker, must_be_there):
        try:
            named = json.loads(self.read(marker))
        except FileNotFoundError:
            if must_be_there:
                self.wrong.append(f"{marker} is named and missing")
            return
        except ValueError as error:
            self.wrong.append(f"{marker} is torn: {error}")
            return
        for name, wanted in named.items():
            path = os.path.join(os.path.dirname(marker), name)
            try:
                if self.sum_of(path) != wanted:
                    self.wrong.append(f"{marker} names {name}, which is another")
            except FileNotFoundError:
                self.wrong.append(f"{marker} names {name}, which is missing")

    def sum_of(self, path):
        """Hashes a file once in each state that it has."""
        status = os.stat(path)
        state = (path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if state not in self.known:
            self.known[state] = sha256(self.read(path))
        return self.known[state]


class Followed(SshCase):
    def setUp(self):
        super().setUp()
        self.old, self.source = self.path("old"), self.path("source")
        make_step(self.old, 100, 256 * KIB)
        make_step(self.source, 200, MIB)
        print(f"seed {SEED}", flush=True)

    @each_way("local", "push")
    def test_at_every_moment_and_after_every_kill_a_marker_names_what_is_there(self, way):
        target = self.path("target-" + way)
        self.expect(0, self.fgsync(self.old, target))
        moments = random.Random(SEED)
        options = ("--bwlimit=24M", "--no-resume")
        with Watcher(target) as watcher:
            for _ in range(by_scale(4, 12, 50)):
                known = len(self.far_pids())
                run = self.start_way(way, self.source, target, *options)
                if way == "push":
                    wait_until(lambda: len(self.far_pids()) > known, "the far side starts")
                time.sleep(moments.uniform(0, 0.9))  # the moment of the kill is what varies
                receiver = self.far_pids()[-1] if way == "push" else run.pid
                with contextlib.suppress(ProcessLookupError):
                    os.kill(receiver, signal.SIGKILL)
                run.wait()
            self.expect(0, self.go(way, self.source, target))
            rounds = watcher.rounds
            wait_until(lambda: watcher.rounds > rounds, "the watcher looks at the end")
        self.assertEqual([], watcher.wrong[:5])
        self.assertGreater(watcher.rounds, 20)
        self.assertEqual("step_200", os.readlink(f"{target}/latest"))
        present = listing(target)
        self.assertEqual({}, {path: entry for path, entry in listing(self.source).items()
                              if path != b"." and present.get(path) != entry})

    def test_a_pattern_of_the_users_own_comes_last_too(self):
        write(f"{self.source}/a-tracker", b"200")
        target = self.path("target")
        run = self.start("--bwlimit=8M", "--last=*-tracker", self.source, target)
        while run.process.poll() is None:
            if os.path.exists(f"{target}/a-tracker"):
                self.assertTrue(os.path.exists(f"{target}/step_200/.metadata"))
                for number in range(SHARDS):
                    self.assertTrue(os.path.exists(f"{target}/step_200/{number}.distcp"))
        self.expect(0, run.wait())
        assert_replica(self, self.source, target)


class HeldBack(SshCase):
    """When anything failed, no marker moves, and each is named."""

    def setUp(self):
        super().setUp()
        self.old, self.source, self.target = self.path("old"), self.path("source"), self.path("target")
        make_step(self.old, 100, 64 * KIB)
        make_step(self.source, 200, 64 * KIB)
        self.expect(0, self.fgsync(self.old, self.target))
        self.markers = ["latest", "latest.txt", "model.safetensors.index.json", ".metadata"]

    def assert_held_back(self, result, reason):
        for marker in self.markers:
            self.assertRegex(result.text(), rf"(?m)^fgsync: \S*/{marker}: publishing: held back, since other {reason}")
        self.assertEqual("step_100", os.readlink(f"{self.target}/latest"))
        with open(f"{self.target}/latest.txt", "rb") as file:
            self.assertEqual(b"step_100", file.read())
        self.assertFalse(os.path.exists(f"{self.target}/step_200/.metadata"))
        self.assertTrue(os.path.exists(f"{self.target}/step_200/3.distcp"))
        assert_no_state(self, self.target)
        watcher = Watcher(self.target)
        watcher.look()
        self.assertEqual([], watcher.wrong)

    def test_by_a_file_in_whose_place_a_directory_stands(self):
        os.makedirs(f"{self.target}/step_200/5.distcp")
        self.assert_held_back(self.expect(23, self.fgsync(self.source, self.target)), "files failed")

    def test_by_a_file_that_vanishes_under_way(self):
        write_large(f"{self.source}/step_200/vanishing", 4 * MIB)
        run = self.start("--bwlimit=2M", self.source, self.target)
        wait_until(lambda: state_names(self.target), "the run has asked for it")
        # The bytes that are read again are others.
        write_large(f"{self.source}/step_200/vanishing", 4 * MIB, seed=9)
        self.assert_held_back(self.expect(24, run.wait()), "files vanished or changed")

    @needs_root
    def test_by_a_file_that_the_sender_may_not_read(self):
        program = let_users_run(self)
        write(f"{self.source}/step_200/secret", b"s", 0o600)
        for root, _, _ in os.walk(self.target):
            os.chown(root, USER_ID, USER_ID)
        result = self.fgsync(self.source, self.target, before=AS_USER, program=program)
        self.assert_held_back(self.expect(23, result), "files failed")

    def test_the_next_run_without_trouble_publishes_them(self):
        obstacle = f"{self.target}/step_200/5.distcp"
        os.makedirs(obstacle)
        self.expect(23, self.fgsync(self.source, self.target))
        os.rmdir(obstacle)
        self.expect(0, self.fgsync(self.source, self.target))
        self.assertEqual("step_200", os.readlink(f"{self.target}/latest"))


if __name__ == "__main__":
    main()
