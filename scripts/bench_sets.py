"""Data sets of scripts/bench: incompressible files from fixed seeds, and what stands at the target before a run."""
import enum
import hashlib
import math
import os
import random
from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PAGE = 4096


class Start(enum.Enum):
    """What a run finds at its target."""
    EMPTY = "an empty directory"
    EQUAL = "all of it, with its metadata"
    INTERRUPTED = "what an earlier run of the same tool had brought when it was ended half-way"


@dataclass
class Part:
    """`count` files in `directories` (0: at the top), of `least` to `most` bytes, sizes log-uniform between them."""
    prefix: str
    count: int
    least: int
    most: int
    directories: int = 0

    def sizes(self, generator):
        if self.least == self.most:
            return [self.least] * self.count
        spread = math.log(self.most / self.least)
        return [int(self.least * math.exp(generator.random() * spread)) for _ in range(self.count)]


@dataclass
class DataSet:
    name: str
    seed: int
    parts: list
    counts_files: bool = False  # its speed is files in a second, not bytes
    start: Start = Start.EMPTY
    bytes_per_second: int = 0   # of the run that is interrupted

    def files(self):
        """[(relative name, size)]"""
        generator = random.Random(self.seed)
        found = []
        for part in self.parts:
            for number, size in enumerate(part.sizes(generator)):
                folder = f"{part.prefix}d{number % part.directories:03}/" if part.directories else ""
                found.append((f"{folder}{part.prefix}{number:05}.bin", size))
        return found

    def count(self):
        return sum(part.count for part in self.parts)

    def bytes(self):
        return sum(size for _, size in self.files())

    def amount(self):
        """What its speed counts."""
        return self.count() if self.counts_files else self.bytes() / 1e9

    def unit(self):
        return "files/s" if self.counts_files else "GB/s"

    def memory(self):
        """What a copy takes on a tmpfs: whole pages, and about one for each file's own structures."""
        return sum(-(-size // PAGE) * PAGE + PAGE for _, size in self.files())

    def make(self, root):
        """Writes the files and returns their digests, as bench_trees.digests() would."""
        generator = random.Random(self.seed + 1)
        made = {}
        for name, size in self.files():
            path, sha256 = os.path.join(root, name), hashlib.sha256()
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                for offset in range(0, size, 4 * MIB):
                    piece = generator.randbytes(min(4 * MIB, size - offset))
                    sha256.update(piece)
                    file.write(piece)
            made[name] = sha256.hexdigest()
        return made


def data_sets(smoke):
    """All of them, by name."""
    if smoke:
        sets = [
            DataSet("BIG", 1, [Part("f", 2, 8 * MIB, 8 * MIB)]),
            DataSet("CKPT", 4, [Part("a", 1, 8 * MIB, 8 * MIB), Part("b", 2, MIB, MIB),
                                Part("c", 3, KIB, 60 * KIB, 1)]),
            DataSet("SMALL", 2, [Part("f", 100, KIB, 64 * KIB, 5)], counts_files=True),
            DataSet("TINY", 3, [Part("f", 100, 512, 512, 5)], counts_files=True),
            DataSet("RESYNC", 5, [Part("f", 200, 512, 512, 5)], counts_files=True, start=Start.EQUAL),
            DataSet("RESUME", 6, [Part("f", 1, 16 * MIB, 16 * MIB)], start=Start.INTERRUPTED,
                    bytes_per_second=64 * MIB),
        ]
    else:
        sets = [
            DataSet("BIG", 1, [Part("f", 4, GIB, GIB)]),
            DataSet("CKPT", 4, [Part("a", 1, 2 * GIB, 2 * GIB), Part("b", 8, 200 * MIB, 200 * MIB),
                                Part("c", 30, KIB, 60 * KIB, 1)]),
            DataSet("SMALL", 2, [Part("f", 20000, KIB, 64 * KIB, 200)], counts_files=True),
            DataSet("TINY", 3, [Part("f", 50000, 512, 512, 100)], counts_files=True),
            DataSet("RESYNC", 5, [Part("f", 200000, 512, 512, 400)], counts_files=True, start=Start.EQUAL),
            DataSet("RESUME", 6, [Part("f", 4, GIB, GIB)], start=Start.INTERRUPTED, bytes_per_second=512 * MIB),
        ]
    return {data_set.name: data_set for data_set in sets}
