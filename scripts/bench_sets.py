"""Data sets of scripts/bench: incompressible files from fixed seeds, their digests, and memory to put copies into."""
import hashlib
import math
import mmap
import os
import random
from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PAGE = 4096
STATE_DIRECTORY = ".fgsync"  # fgsync's receipt in a target; no part of the tree


@dataclass
class DataSet:
    """`count` files in `directories` (0: at the top), of `least` to `most` bytes, sizes log-uniform between them."""
    name: str
    count: int
    least: int
    most: int
    directories: int
    seed: int

    def sizes(self):
        generator = random.Random(self.seed)
        if self.least == self.most:
            return [self.least] * self.count
        spread = math.log(self.most / self.least)
        return [int(self.least * math.exp(generator.random() * spread)) for _ in range(self.count)]

    def bytes(self):
        return sum(self.sizes())

    def memory(self):
        """What a copy takes on a tmpfs: whole pages, and about one for each file's own structures."""
        return sum(-(-size // PAGE) * PAGE + PAGE for size in self.sizes())

    def make(self, root):
        """Writes the files and returns their digests, as digests() would."""
        generator = random.Random(self.seed + 1)
        made = {}
        for number in range(self.directories):
            os.makedirs(os.path.join(root, f"d{number:03}"))
        os.makedirs(root, exist_ok=True)
        for number, size in enumerate(self.sizes()):
            folder = f"d{number % self.directories:03}/" if self.directories else ""
            name, sha256 = f"{folder}f{number:05}.bin", hashlib.sha256()
            with open(os.path.join(root, name), "wb") as file:
                for offset in range(0, size, 4 * MIB):
                    piece = generator.randbytes(min(4 * MIB, size - offset))
                    sha256.update(piece)
                    file.write(piece)
            made[name] = sha256.hexdigest()
        return made


def data_sets(smoke):
    """All of them, by name."""
    if smoke:
        sets = [DataSet("BIG", 2, 8 * MIB, 8 * MIB, 0, 1), DataSet("SMALL", 200, KIB, 64 * KIB, 10, 2),
                DataSet("TINY", 200, 512, 512, 10, 3)]
    else:
        sets = [DataSet("BIG", 4, GIB, GIB, 0, 1), DataSet("SMALL", 20000, KIB, 64 * KIB, 200, 2),
                DataSet("TINY", 50000, 512, 512, 100, 3)]
    return {data_set.name: data_set for data_set in sets}


def names(root):
    for folder, folders, files in os.walk(root):
        if folder == root and STATE_DIRECTORY in folders:
            folders.remove(STATE_DIRECTORY)
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)


def sizes(root):
    return {name: os.lstat(os.path.join(root, name)).st_size for name in names(root)}


def digests(root):
    """The sha256 of every file, by relative name."""
    found = {}
    piece = memoryview(bytearray(MIB))
    for name in names(root):
        sha256 = hashlib.sha256()
        with open(os.path.join(root, name), "rb", buffering=0) as file:
            while length := file.readinto(piece):
                sha256.update(piece[:length])
        found[name] = sha256.hexdigest()
    return found


def difference(expected, found):
    """What is wrong with a tree, or None; both are sizes() or digests()."""
    if missing := expected.keys() - found.keys():
        return f"{len(missing)} files are missing, {min(missing)} among them"
    if surplus := found.keys() - expected.keys():
        return f"{len(surplus)} files too many, {min(surplus)} among them"
    if damaged := [name for name in expected if expected[name] != found[name]]:
        return f"{len(damaged)} files differ, {min(damaged)} among them"
    return None


def warm(length):
    """Touches so much free memory and gives it back. A virtual machine may have returned freed memory to its host, and
    the first touch of such pages costs several times the normal price: unwarmed runs measured half the throughput."""
    with mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                memory.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                pass  # a kernel without huge pages: small ones are warmed as well
        memory[::PAGE] = b"\1" * len(range(0, length, PAGE))
