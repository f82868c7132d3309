#!/usr/bin/env python3
"""Plants one bug of tests/sim/mutations/ into a copy of the tree, or takes it out again.

A mutation is a sentence that says what is wrong, then blocks of: "@@ FILE", the lines that must stand there exactly
once, "@@ becomes", and the lines that take their place.

usage: mutate.py plant|remove MUTATION TREE
"""
import pathlib
import sys


def blocks_of(text):
    path, before, after, place = None, [], [], None
    blocks = []
    for line in text.splitlines(keepends=True):
        if line == "@@ becomes\n":
            place = after
        elif line.startswith("@@ "):
            if path:
                blocks.append((path, "".join(before), "".join(after)))
            path, before, after = line[3:].strip(), [], []
            place = before
        elif place is not None:
            place.append(line)
    blocks.append((path, "".join(before), "".join(after)))
    return blocks


def plant(blocks, tree):
    for path, before, after in blocks:
        file = tree / path
        text = file.read_text()
        if text.count(before) != 1:
            sys.exit(f"{path}: this must stand there exactly once and is found {text.count(before)} times:\n{before}")
        kept = file.with_name(file.name + ".kept")
        if not kept.exists():
            kept.write_text(text)
        file.write_text(text.replace(before, after))


def remove(blocks, tree):
    for path in {path for path, _, _ in blocks}:
        file = tree / path
        kept = file.with_name(file.name + ".kept")
        if kept.exists():
            file.write_text(kept.read_text())
            kept.unlink()


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("plant", "remove"):
        sys.exit(__doc__)
    blocks = blocks_of(pathlib.Path(sys.argv[2]).read_text())
    (plant if sys.argv[1] == "plant" else remove)(blocks, pathlib.Path(sys.argv[3]))


main()
