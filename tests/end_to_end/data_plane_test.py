"""Engines, streams, chunks, rates, direct I/O, and the file systems below."""
import os
import shutil

from mounts import mount_ext4, mount_tmpfs
from ssh_server import REMOTE_WAYS, SshCase, each_way
from support import ENGINE, MIB, main, needs_root
from trees import assert_no_state, assert_replica, make_kinds, make_names, make_small_files, write, write_large

REFUSE_IO_URING = os.environ.get("FGSYNC_REFUSE_IO_URING", "refuse_io_uring")


class DataPlaneCase(SshCase):
    def setUp(self):
        super().setUp()
        self.source, self.target = self.path("source"), self.path("target")
        os.mkdir(self.source)
        write_large(f"{self.source}/large", 8 * MIB + 4097)
        make_small_files(f"{self.source}/small", 50)

    def check(self, way, *options, target=None, **more):
        target = target or self.path(f"target-{way}-{len(os.listdir(self.directory))}")
        result = self.expect(0, self.go(way, self.source, target, "--json", *options, **more))
        assert_replica(self, self.source, target)
        return result


class Engines(DataPlaneCase):
    @each_way()
    def test_the_engine_that_is_asked_for_is_used(self, way):
        self.assertEqual(ENGINE, self.check(way).json()["io_engine"])
        self.assertEqual("posix", self.check(way, "--io-engine=posix").json()["io_engine"])

    def without_choice(self):
        environment = self.environment()
        del environment["FGSYNC_IO_ENGINE"]
        return environment

    @each_way()
    def test_where_io_uring_is_refused_posix_is_chosen_and_said(self, way):
        result = self.check(way, before=[REFUSE_IO_URING], env=self.without_choice())
        self.assertEqual("posix", result.json()["io_engine"])
        self.assertRegex(result.text(), r"(?m)^.*posix.*")

    @each_way(*REMOTE_WAYS)
    def test_a_far_side_that_is_refused_io_uring_chooses_posix(self, way):
        self.far = self.far_program(f"exec {REFUSE_IO_URING}")
        self.check(way, env=self.without_choice())

    @each_way()
    def test_io_uring_that_is_asked_for_and_refused_is_an_error(self, way):
        result = self.expect(4, self.go(way, self.source, self.target, "--io-engine=uring", before=[REFUSE_IO_URING]))
        self.assertIn("io_uring", result.text())
        self.assertFalse(os.path.exists(self.target))

    @each_way(*REMOTE_WAYS)
    def test_io_uring_that_the_far_side_is_refused_is_an_error_that_names_it(self, way):
        if ENGINE != "uring":
            self.skipTest("with io_uring on the near side only")
        self.far = self.far_program(f"exec {REFUSE_IO_URING}")
        result = self.expect(4, self.go(way, self.source, self.target, "--io-engine=uring"))
        self.assertIn("near", result.text())
        self.assertFalse(os.path.exists(self.target))


class StreamsAndChunks(DataPlaneCase):
    @each_way()
    def test_any_number_of_streams(self, way):
        for streams in (1, 2, 7, 33, 64):
            with self.subTest(streams=streams):
                self.assertEqual(streams, self.check(way, f"--streams={streams}").json()["streams"])

    @each_way()
    def test_any_size_of_chunk(self, way):
        for size in ("64K", "68K", "1M", "3M", "16M"):
            with self.subTest(size=size):
                self.check(way, f"--chunk-size={size}", "--streams=2")

    def test_what_is_out_of_bounds_is_a_usage_error(self):
        for option in ("--streams=65", "--streams=-1", "--streams=x", "--chunk-size=1K", "--chunk-size=17M",
                       "--chunk-size=", "--chunk-size=65537", "--bwlimit=fast", "--port=0", "--port=70000",
                       "--port=9-8", "--timeout=-1", "--io-engine=aio", "--direct-io=maybe",
                       "--transport=carrier-pigeon"):
            with self.subTest(option=option):
                target = self.path("target" + option)
                result = self.expect(1, self.fgsync(option, self.source, target))
                self.assertIn(option.partition("=")[0], result.text())
                self.assertFalse(os.path.exists(target))

    @each_way()
    def test_a_limit_on_the_rate_is_kept(self, way):
        for options in (("--bwlimit=4M",), ("--bwlimit=4M", "--streams=8"), ("--bwlimit=32Mbit", "--chunk-size=1M")):
            with self.subTest(options=options):
                report = self.check(way, *options).json()
                # 2 s for all of it; the first quarter may pass at once.
                self.assertGreater(report["seconds"], 1.4)
                self.assertEqual("bwlimit", report["limited_by"])


@needs_root
class FileSystems(DataPlaneCase):
    def on_ext4(self):
        """Source and target on an ext4 each."""
        source = mount_ext4(self, "ext4-source", 192 * MIB)
        target = mount_ext4(self, "ext4-target", 192 * MIB)
        os.rename(self.source, self.path("unused"))
        self.source = source
        return f"{target}/replica"

    def test_every_kind_of_entry_arrives_on_ext4(self):
        target = self.on_ext4()
        os.mkdir(f"{self.source}/kinds")
        make_kinds(f"{self.source}/kinds")
        make_names(self.source)
        make_small_files(f"{self.source}/small", 1000)
        write_large(f"{self.source}/large", 40 * MIB + 5)
        for way in ("push", "pull", "local"):
            with self.subTest(way=way):
                self.check(way, target=f"{target}-{way}" if way == "local" else target)

    @each_way()
    def test_direct_io_always_and_never_on_ext4(self, way):
        if way == "local":
            self.ext4_target = self.on_ext4()
            for size in (0, 1, 511, 4096, 4097, MIB - 1, 16 * MIB, 20 * MIB + 513):
                write_large(f"{self.source}/{size}", size, seed=size)
        for choice in ("always", "never", "auto"):
            with self.subTest(choice=choice):
                self.check(way, f"--direct-io={choice}", target=self.ext4_target)
                shutil.rmtree(self.ext4_target)

    def test_direct_io_where_the_kernel_has_none_is_an_error_that_says_so(self):
        target = mount_tmpfs(self, "memory", "size=64m")
        result = self.go("local", self.source, f"{target}/t", "--direct-io=always")
        self.assertIn(result.code, (0, 4), result.text())  # as the kernel has it: tmpfs learned it in Linux 6.6
        if result.code == 4:
            self.assertIn("direct", result.text())
            assert_no_state(self, f"{target}/t")
        else:
            assert_replica(self, self.source, f"{target}/t")

    @each_way()
    def test_another_file_system_within_the_target(self, way):
        target = self.path("target-" + way)
        for name in ("small/d0000", "other", "other/nested"):
            os.makedirs(f"{self.source}/{name}", exist_ok=True)
            write(f"{self.source}/{name}/file", name.encode() * 1000)
            write_large(f"{self.source}/{name}/large", 2 * MIB)
            mount_tmpfs(self, f"target-{way}/{name}", "size=16m")
        self.check(way, target=target)
        for directory, names, _ in os.walk(target):
            if directory != target:
                self.assertNotIn(".fgsync", names, directory)

    @each_way()
    def test_another_file_system_within_the_source(self, way):
        if way == "local":
            mount_tmpfs(self, "source/mounted", "size=16m")
            write_large(f"{self.source}/mounted/large", 2 * MIB)
        self.check(way)


if __name__ == "__main__":
    main()
