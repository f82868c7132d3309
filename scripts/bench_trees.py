"""What is in a tree, and in what it differs from what is expected there."""
import hashlib
import os

STATE_DIRECTORY = ".fgsync"  # fgsync's receipt in a target; no part of the tree
PIECE_BYTES = 1 << 20


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
    piece = memoryview(bytearray(PIECE_BYTES))
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


def allocated_bytes(root):
    """What the files of a tree take now, those that are still on their way included; some may go meanwhile."""
    total = 0
    for folder, _, files in os.walk(root):
        for name in files:
            try:
                total += 512 * os.lstat(os.path.join(folder, name)).st_blocks
            except FileNotFoundError:
                pass
    return total
