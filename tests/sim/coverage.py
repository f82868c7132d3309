#!/usr/bin/env python3
"""Prints which share of the branches of src/journal, src/receipt, src/storage and src/transfer was taken, after a
campaign of a build with --coverage.

Counted are the branches that gcov finds in lines with a condition in them: what coroutines, destructors and the like
add to other lines says nothing about the code as it is written. Files that the simulation replaces by ends of its own
(tests/sim/ends.h) are left out.

usage: coverage.py SOURCE-TREE BUILD-DIRECTORY [--unreached]     with each line of which a branch was never taken
"""
import collections
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

LAYERS = ["journal", "receipt", "storage", "transfer"]
# The command line, the remote shell and what is chosen before there is a session.
REPLACED = {"capabilities.cc", "exit_status.cc", "far_side.cc", "location.cc", "replicate.cc", "resources.cc",
            "serve.cc"}
CONDITION = re.compile(r"\b(?:if|while|for|case|switch)\b|\?|&&|\|\||RETURN_IF_ERROR")


# gcc/gcov-io.h: a record of a function in a .gcno file, since GCC 12.
FUNCTION = 0x01000000


def with_coroutines(notes):
    """The notes with no function marked as made by the compiler: gcov leaves those out, with bodies of coroutines."""
    def word(place):
        return struct.unpack_from("<I", notes, place)[0]

    if notes[:4] != b"oncg" or notes[7:8] < b"B" or notes[6:8] < b"2B":
        sys.exit("coverage.py: needs the notes of GCC 12 or later")
    notes = bytearray(notes)
    at = 16
    at += 4 + word(at) + 4  # the directory, and a flag
    while at + 8 <= len(notes):
        tag, length = word(at), word(at + 4)
        if tag == FUNCTION:
            name = at + 8 + 3 * 4  # behind an identity and two checksums
            struct.pack_into("<I", notes, name + 4 + word(name), 0)
        at += 8 + length
    return bytes(notes)


def gcov(notes):
    with tempfile.TemporaryDirectory() as work:
        copy = pathlib.Path(work) / notes.name
        copy.write_bytes(with_coroutines(notes.read_bytes()))
        counts = notes.with_suffix(".gcda")
        if counts.exists():
            shutil.copy(counts, work)
        text = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", str(copy)], cwd=work,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return json.loads(text)["files"]


def branches_of(tree, build_directory):
    """{(file, line, function, number): count}"""
    counts = collections.Counter()
    for notes in sorted(build_directory.rglob("*.gcno")):
        for file in gcov(notes):
            path = (build_directory / file["file"]).resolve()
            if not any(path.is_relative_to(tree / "src" / layer) for layer in LAYERS) or path.name in REPLACED:
                continue
            for line in file["lines"]:
                for number, branch in enumerate(line["branches"]):
                    place = (path, line["line_number"], line.get("function_name"), number)
                    counts[place] += branch["count"]
    return counts


def main():
    tree, build_directory = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    texts = {}
    taken, total, never = collections.Counter(), collections.Counter(), collections.Counter()
    for (path, line, _, _), count in branches_of(tree, build_directory).items():
        text = texts.setdefault(path, path.read_text().splitlines())[line - 1]
        if not CONDITION.search(text):
            continue
        total[path] += 1
        taken[path] += count > 0
        never[path, line] += count == 0
    for path in sorted(total):
        print(f"{taken[path] / total[path]:6.1%} of {total[path]:4} branches  {path.relative_to(tree)}")
        for (where, line), count in sorted(never.items()):
            if "--unreached" in sys.argv and where == path and count > 0:
                print(f"        {line:4}: {texts[path][line - 1].strip()}")
    all_of_them = sum(total.values())
    print(f"{sum(taken.values()) / all_of_them:6.1%} of {all_of_them:4} branches in all")


main()
