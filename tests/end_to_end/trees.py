"""Makes source trees, and judges replicas by programs and calls that know nothing of fgsync."""
import contextlib
import os
import random
import stat
import subprocess

from support import MIB

OLD_TIME_NS = -86_400_000_000_000 * 365 + 123_456_789  # in 1969


def write(path, contents=b"", mode=None, time_ns=None):
    with open(path, "wb") as file:
        file.write(contents)
    if mode is not None:
        os.chmod(path, mode)
    if time_ns is not None:
        os.utime(path, ns=(time_ns, time_ns))
    return path


def write_large(path, size, seed=1):
    """A file without holes in which no MiB is like another."""
    block = random.Random(seed).randbytes(MIB)
    with open(path, "wb") as file:
        for number in range(0, size, MIB):
            file.write((number.to_bytes(8, "little") + block[8:])[: size - number])
    return path


def make_small_files(root, count, seed=2):
    """`count` files of up to 2 KiB in directories of 500."""
    contents = random.Random(seed).randbytes(4096)
    for number in range(count):
        directory = os.path.join(root, f"d{number // 500:04}")
        if number % 500 == 0:
            os.makedirs(directory)
        fd = os.open(f"{directory}/f{number}", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(fd, contents[number % 2048 : number % 2048 + number % 2049])
        os.close(fd)
    return root


def make_deep(root, depth, name):
    """Directories in one another, further than a path can name; a file in the last."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    file = os.open("leaf", os.O_WRONLY | os.O_CREAT, 0o640, dir_fd=fd)
    os.write(file, b"at the bottom\n")
    os.close(file)
    os.close(fd)


NAMES = [b"plain", b"with space", b" leading", b"trailing ", b"new\nline", b"-rf", b"--delete", b"a\\b", b"*", b"$(id)",
         b"'\"`", b"tab\t", b"\x01\x1b[31m\x7f", b"\xff\xfe not UTF-8", "\u00e9\u4e2d\U0001f600".encode(), b"x" * 255,
         b"\xe9" * 255, b"a:b", b"host:path", b".hidden", b"..dots", b"...", b"~", b"#x#", b"@fgsync-answer:"]


def make_names(root):
    """Every name as a file, as a directory with a file, and as a symlink."""
    for kind in (b"files", b"directories", b"links"):
        os.mkdir(os.path.join(os.fsencode(root), kind))
    for name in NAMES:
        base = os.fsencode(root)
        write(os.path.join(base, b"files", name), b"<" + name + b">")
        os.mkdir(os.path.join(base, b"directories", name))
        write(os.path.join(base, b"directories", name, name), name)
        os.symlink(name, os.path.join(base, b"links", name))


def make_kinds(root):
    """A little of everything that an entry can be; as root also of other owners."""
    os.makedirs(f"{root}/empty/within")
    os.makedirs(f"{root}/sticky")
    write(f"{root}/zero")
    write(f"{root}/one", b"1")
    write_large(f"{root}/some", 3 * MIB + 17)
    for mode in (0o600, 0o444, 0o755, 0o000, 0o4755, 0o2755, 0o6711, 0o1644, 0o7777):
        write(f"{root}/mode-{mode:04o}", b"m", mode)
    for name, time_ns in (("old", OLD_TIME_NS), ("epoch", 0), ("before", -1), ("ns", 1_700_000_000_987_654_321),
                          ("future", 4_500_000_000_000_000_001)):
        write(f"{root}/time-{name}", b"t", time_ns=time_ns)
    for name, to in (("dangling", "no/such"), ("absolute", "/etc/hostname"), ("directory", "empty"), ("file", "one"),
                     ("up", "../.."), ("self", "link-self"), ("long", "x/" * 2000)):
        os.symlink(to, f"{root}/link-{name}")
    os.utime(f"{root}/link-dangling", ns=(1, 1_234_567_890_123_456_789), follow_symlinks=False)
    if os.geteuid() == 0:
        write(f"{root}/of-another", b"o")
        os.chown(f"{root}/of-another", 12345, 54321)
        os.mkdir(f"{root}/directory-of-another")
        os.chown(f"{root}/directory-of-another", 1, 2)
        os.symlink("one", f"{root}/link-of-another")
        os.chown(f"{root}/link-of-another", 3, 4, follow_symlinks=False)
        write(f"{root}/setuid-of-another", b"s")
        os.chown(f"{root}/setuid-of-another", 12345, 54321)
        os.chmod(f"{root}/setuid-of-another", 0o6755)
    os.chmod(f"{root}/sticky", 0o1777)
    os.chmod(f"{root}/empty/within", 0o500)
    os.utime(f"{root}/empty", ns=(5, 1_600_000_000_000_000_007))
    os.utime(root, ns=(5, 1_500_000_000_000_000_009))


def entry_of(status, link_target):
    kind = stat.S_IFMT(status.st_mode)
    size = status.st_size if stat.S_ISREG(status.st_mode) else 0
    return (kind, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, size, status.st_mtime_ns, link_target)


def listing(root, with_state=False):
    """{relative path: what lstat(2) and readlink(2) say of it}, however deep; without .fgsync at the top."""
    found = {b".": entry_of(os.stat(root), None)}

    def walk(fd, prefix):
        for name in map(os.fsencode, os.listdir(fd)):
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            is_link = stat.S_ISLNK(status.st_mode)
            if name == b".fgsync" and not prefix and not with_state:
                continue
            found[prefix + name] = entry_of(status, os.readlink(name, dir_fd=fd) if is_link else None)
            if stat.S_ISDIR(status.st_mode):
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
                walk(below, prefix + name + b"/")
                os.close(below)

    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    walk(fd, b"")
    os.close(fd)
    return found


def sha256(path):
    done = subprocess.run(["sha256sum", "--", path], stdout=subprocess.PIPE, check=True)
    return done.stdout.split()[0].lstrip(b"\\")


def rsync_differences(source, target):
    """What rsync would still change, comparing contents: nothing, for a replica."""
    command = ["rsync", "-nac", "--delete", "-i", "--exclude=/.fgsync", f"{source}/", f"{target}/"]
    done = subprocess.run(command, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode("utf-8", "backslashreplace")


def assert_replica(case, source, target, rsync=True):
    """Names, kinds, modes, owners, times to the nanosecond and contents are the same, and nothing is left behind but
    the receipt."""
    wanted, got = listing(source), listing(target)
    differences = [f"{path[-200:]!r}: {wanted.get(path)} -> {got.get(path)}"
                   for path in sorted(wanted.keys() | got.keys()) if wanted.get(path) != got.get(path)]
    case.assertEqual([], differences[:10], f"{len(differences)} differences")
    assert_no_state(case, target)
    if rsync:
        case.assertEqual("", rsync_differences(source, target))


def names_in(directory):
    """Sorted, without the state directory."""
    return sorted(set(os.listdir(directory)) - {".fgsync"})


def state_names(target):
    """What runs have left besides the receipt."""
    try:
        return sorted(set(os.listdir(os.path.join(target, ".fgsync"))) - {"receipt"})
    except FileNotFoundError:
        return []


def assert_no_state(case, target):
    case.assertEqual([], state_names(target), "state is left behind")


def assert_only_resumable_state(case, target):
    """A run that was interrupted leaves a journal and the large files that it names, and no small ones."""
    left = {os.path.relpath(path, target): os.lstat(path).st_size for path in staged_files(target)}
    journals = [path for path in left if os.path.basename(path) == "journal"]
    case.assertEqual(1, len(journals), left)
    for path, size in left.items():
        case.assertEqual(os.path.dirname(journals[0]), os.path.dirname(path))
        case.assertTrue(path in journals or size >= MIB, left)


def journals(target):
    return [path for path in staged_files(target) if os.path.basename(path) == "journal"]


def has_journaled_chunks(target):
    """Whether a journal says more than that files have begun to come."""
    for path in journals(target):
        with contextlib.suppress(FileNotFoundError):
            if os.path.getsize(path) > 400:
                return True
    return False


def staged_files(target):
    """Paths of files that stand in the target's staging directories."""
    found = []
    state = os.path.join(target, ".fgsync")
    for root, _, names in os.walk(state):
        found += [os.path.join(root, name) for name in names if root != state]
    return found


def has_staged_data(target):
    """Whether any staged file holds data (not only reserved space)."""
    for path in staged_files(target):
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            os.lseek(fd, 0, os.SEEK_DATA)
            return True
        except OSError:
            pass
        finally:
            os.close(fd)
    return False
