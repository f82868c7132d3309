"""Room for a data set and its copy, and memory that is warm before a run."""
import mmap
import os

from bench_ends import read

PAGE = 4096


def shortage(directory, needed, margin):
    """Why `needed` bytes in files there, and a margin beside them in memory, cannot be had; or None."""
    place = os.statvfs(directory)
    if place.f_bavail * place.f_frsize < needed:
        return f"{directory} needs {needed >> 20} MiB free"
    available = next(int(line.split()[1]) << 10 for line in read("/proc/meminfo").splitlines()
                     if line.startswith("MemAvailable:"))
    if available < needed + margin:
        return f"{(needed + margin) >> 20} MiB of free memory are needed"
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
