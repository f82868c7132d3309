"""Small limits on descriptors, locked memory and memory: runs get by with them."""
import os

from mounts import AS_USER, let_users_run
from ssh_server import SshCase, each_way
from support import BINARY, GIB, MIB, USER_ID, by_scale, main, needs_root, not_sanitized
from trees import assert_replica, make_small_files, write_large

MEMORY_MAX = 128 * MIB


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
            os.chown(self.path(f"target-{way}"), USER_ID, USER_ID)
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
        program = let_users_run(self)
        config = self.write_client_configuration(self.port, name="config_of_user", key="key_of_user")
        self.shell = f"ssh -F {config}"
        os.chown(self.source, USER_ID, USER_ID)
        for root, directories, files in os.walk(self.source):
            for name in directories + files:
                os.chown(f"{root}/{name}", USER_ID, USER_ID)
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

    def test_too_few_descriptors_are_an_error_that_says_so(self):
        result = self.fgsync(self.source, self.path("target"), before=limited(10), seconds=30)
        self.assertNotEqual(0, result.code)
        self.assertIn("the limit of open files is", result.text())


@not_sanitized
class Memory(SshCase):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")

    def peak_memory(self, way, *options):
        """The most memory that each fgsync process of a run had resident, as the kernel has noted it."""
        target = self.path("target-" + way)
        run = self.start_way(way, self.source, target, *options)
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
        self.expect(0, run.wait(300))
        self.assertEqual(1 if way == "local" else 2, len(peaks))
        return target, max(peaks.values())

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

    def test_all_streams_and_the_largest_chunks_stay_bounded(self):
        os.mkdir(self.source)
        write_large(f"{self.source}/large", 64 * MIB)
        _, peak = self.peak_memory("push", "--streams=64", "--chunk-size=16M")
        self.assertLess(peak, 256 * MIB)


if __name__ == "__main__":
    main()
