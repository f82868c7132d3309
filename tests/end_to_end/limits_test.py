"""Small limits on descriptors, locked memory and memory: runs get by with them."""
import os
import signal

from journal_file import put_settled_files_first
from mounts import become, let_users_run
from ssh_server import REMOTE_WAYS, SshCase, each_way
from support import BINARY, ENGINE, GIB, KIB, MIB, by_scale, main, needs_root, not_sanitized, wait_until
from trees import assert_replica, has_journaled_chunks, journals, make_small_files, write_large

MEMORY_MAX = 128 * MIB
# Users of this topic's own, daemon and bin on every Linux: what the kernel locks for io_uring it counts over all of a
# user's processes, so other tests as the same user would take from the limit meanwhile.
USER = 1 if ENGINE == "uring" else 2
AS_USER = become(USER)


def limited(descriptors):
    return ("prlimit", "--memlock=65536:65536", f"--nofile={descriptors}:{descriptors}")


class Descriptors(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        make_small_files(self.source, by_scale(500, 2_000, 2_000))
        write_large(f"{self.source}/large", 64 * MIB)

    def check(self, way, descriptors, *before, program=BINARY, **more):
        limits = limited(descriptors)
        target = self.path(f"target-{way}/t")
        os.mkdir(self.path(f"target-{way}"))
        if AS_USER[0] in before:
            os.chown(self.path(f"target-{way}"), USER, USER)
        self.far = self.far_program(f"exec {' '.join([*limits, *before])}", program=program)
        result = self.expect(0, self.go(way, self.source, target, "--streams=8", before=[*limits, *before],
                                        program=program, **more))
        return result, target

    @each_way()
    def test_64_descriptors_and_64_kib_of_locked_memory_are_enough(self, way):
        _, target = self.check(way, 64)
        assert_replica(self, self.source, target)

    @each_way()
    def test_40_descriptors_are_enough(self, way):
        _, target = self.check(way, 40)
        assert_replica(self, self.source, target)

    def become_user(self):
        program = let_users_run(self, USER)
        config = self.write_client_configuration(self.port, name="config_of_user", key="key_of_user")
        self.shell = f"ssh -F {config}"
        os.chown(self.source, USER, USER)
        for root, directories, files in os.walk(self.source):
            for name in directories + files:
                os.chown(f"{root}/{name}", USER, USER)
        return program

    @needs_root
    @each_way()
    def test_they_are_enough_without_roots_privileges(self, way):
        _, target = self.check(way, 64, *AS_USER, program=self.become_user())
        assert_replica(self, self.source, target)

    @needs_root
    @each_way()
    def test_an_engine_that_fits_is_found_without_being_named(self, way):
        program = self.become_user()
        environment = self.environment(FGSYNC_IO_ENGINE="auto")
        _, target = self.check(way, 64, *AS_USER, program=program, env=environment)
        assert_replica(self, self.source, target)

    @not_sanitized
    @each_way()
    def test_35_descriptors_are_enough(self, way):
        _, target = self.check(way, 35)
        assert_replica(self, self.source, target)

    @each_way()
    def test_too_few_descriptors_are_an_error_that_says_so(self, way):
        target = self.path("target-" + way)
        result = self.expect(3, self.go(way, self.source, target, before=limited(34), seconds=30))
        self.assertIn("the limit of open files is 34", result.text())
        self.assertFalse(os.path.exists(target))

    @each_way(*REMOTE_WAYS)
    def test_too_few_descriptors_of_the_far_side_are_told_with_its_name(self, way):
        self.far = self.far_program(f"exec {' '.join(limited(34))}")
        target = self.path("target-" + way)
        result = self.expect(3, self.go(way, self.source, target, seconds=30))
        self.assertRegex(result.text(), r"(?m)^fgsync: near: the limit of open files is 34")
        self.assertFalse(os.path.exists(target))


@not_sanitized
class Memory(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")

    def watch(self, way, run, is_enough=lambda: False):
        """The most memory that any fgsync process of a run had resident, as the kernel has noted it. The run is killed
        when it is enough."""
        peaks = {}
        while run.process.poll() is None:
            for pid in [run.pid, *self.far_pids()]:
                try:
                    with open(f"/proc/{pid}/status") as file:
                        fields = dict(line.split(":", 1) for line in file)
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if fields["Name"].strip() == "fgsync" and "VmHWM" in fields:
                    peaks[pid] = int(fields["VmHWM"].split()[0]) * 1024
            if is_enough():
                run.signal(signal.SIGKILL)
                break
        self.assertEqual(1 if way == "local" else 2, len(peaks))
        return max(peaks.values())

    def peak_memory(self, way, *options):
        target = self.path("target-" + way)
        run = self.start_way(way, self.source, target, *options)
        peak = self.watch(way, run)
        self.expect(0, run.wait(300))
        return target, peak

    @each_way()
    def test_a_large_file_needs_little_memory(self, way):
        os.makedirs(self.source, exist_ok=True)
        if way == "local":
            write_large(f"{self.source}/large", by_scale(64 * MIB, 512 * MIB, 4 * GIB))
        target, peak = self.peak_memory(way)
        self.assertLess(peak, MEMORY_MAX)
        assert_replica(self, self.source, target, rsync=False)
        os.unlink(f"{target}/large")

    @each_way()
    def test_many_files_need_little_memory(self, way):
        if way == "local":
            make_small_files(self.source, by_scale(5_000, 60_000, 200_000))
        target, peak = self.peak_memory(way)
        self.assertLess(peak, MEMORY_MAX)
        assert_replica(self, self.source, target, rsync=False)
        _, peak = self.peak_memory(way)  # and to find that nothing has to be sent
        self.assertLess(peak, MEMORY_MAX)

    @each_way()
    def test_many_files_that_are_journaled_need_little_memory(self, way):
        """Killed when half of them have come, and gone on with."""
        count, chunks = by_scale(200, 1_000, 5_000), "--chunk-size=64K"
        if way == "local":
            os.mkdir(self.source)
            for number in range(count):
                write_large(f"{self.source}/f{number}", 256 * KIB, seed=number)
        target = self.path("target-" + way)
        run = self.start_way(way, self.source, target, chunks, "--bwlimit=400M")
        peak = self.watch(way, run, lambda: os.path.isdir(target) and len(os.listdir(target)) > count // 2)
        run.wait()
        self.wait_gone(self.far_pids())
        self.assertLess(peak, MEMORY_MAX)
        _, peak = self.peak_memory(way, chunks)
        self.assertLess(peak, MEMORY_MAX)
        assert_replica(self, self.source, target, rsync=False)

    def test_a_journal_of_very_many_files_needs_little_memory(self):
        """Of files that have come and are settled nothing is kept, however many there were; what comes behind them in
        the journal is used."""
        count, target = by_scale(20_000, 100_000, 1_000_000), self.path("target-local")
        os.mkdir(self.source)
        write_large(f"{self.source}/large", 64 * MIB)
        run = self.start("--bwlimit=32M", "--chunk-size=256K", self.source, target)
        wait_until(lambda: has_journaled_chunks(target), "chunks are journaled")
        run.signal(signal.SIGKILL)
        run.wait()
        put_settled_files_first(journals(target)[0], count)
        run = self.start("--json", "--chunk-size=256K", self.source, target)
        self.assertLess(self.watch("local", run), MEMORY_MAX)
        self.assertGreater(self.expect(0, run.wait()).json()["bytes"]["resumed"], 0)
        assert_replica(self, self.source, target, rsync=False)

    def test_all_streams_and_the_largest_chunks_stay_bounded(self):
        os.mkdir(self.source)
        write_large(f"{self.source}/large", 64 * MIB)
        _, peak = self.peak_memory("push", "--streams=64", "--chunk-size=16M")
        self.assertLess(peak, 256 * MIB)


if __name__ == "__main__":
    main()
