#!/usr/bin/env python3
"""Plants the bugs of tests/sim/mutations/ one by one and shows that the simulation finds them.

A mutation is a sentence that says what is wrong, then blocks of: "@@ FILE", the lines that must stand there exactly
once, "@@ becomes", and the lines that take their place. Only copies are changed: each changed source file is compiled
by the command that the build has for it and linked in front of the libraries, which then don't give theirs.

usage: mutate.py find SOURCE-TREE BUILD-DIRECTORY SEEDS JOBS [NAME...]
       mutate.py check SOURCE-TREE          only whether each still finds the lines that it changes
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


class Stale(Exception):
    """The code has changed, and the mutation must follow."""


def read_mutation(text):
    """[(file, before, after)]"""
    blocks, place = [], None
    for line in text.splitlines(keepends=True):
        if line == "@@ becomes\n":
            place = 2
        elif line.startswith("@@ "):
            blocks.append([line[3:].strip(), "", ""])
            place = 1
        elif place:
            blocks[-1][place] += line
    return blocks


def changed_files(tree, blocks):
    texts = {}
    for path, before, after in blocks:
        text = texts.get(path) or (tree / path).read_text()
        if text.count(before) != 1:
            raise Stale(f"{path}: this must stand there exactly once, is found {text.count(before)} times:\n{before}")
        texts[path] = text.replace(before, after)
    return texts


def build(tree, build_directory, blocks, work):
    commands = {entry["file"]: entry for entry in json.loads((build_directory / "compile_commands.json").read_text())}
    objects = []
    for path, text in changed_files(tree, blocks).items():
        source = work / pathlib.Path(path).name
        source.write_text(text)
        command = shlex.split(commands[str(tree / path)]["command"])
        output = source.with_suffix(".o")
        command[command.index("-o") + 1] = str(output)
        command[command.index("-c") + 1] = str(source)
        command = [word for word in command if word != "-Werror"]
        subprocess.run(command + ["-w"], cwd=build_directory, check=True)
        objects.append(str(output))
    link = subprocess.run(["ninja", "-C", str(build_directory), "-t", "commands", "simulate"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.splitlines()[-1]
    program = work / "simulate"
    link = re.sub(r"-o bin/simulate\b", lambda _: f"-o {program} {' '.join(objects)}", link)
    subprocess.run(["sh", "-c", link], cwd=build_directory, check=True)
    return program


def look_for(program, seeds, jobs):
    """(seeds that were run, the first violation or None)"""
    output = subprocess.run([program, f"--seeds={seeds}", f"--jobs={jobs}", "--failures=1", "--no-shrink"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    found = re.search(r"^seed \d+: .*$", output, re.MULTILINE)
    return int(re.search(r"^(\d+) seeds, ", output, re.MULTILINE).group(1)), found and found.group(0)


def mutations(tree):
    return {file.stem: read_mutation(file.read_text()) for file in sorted((tree / "tests/sim/mutations").iterdir())}


def check(tree):
    stale = 0
    for name, blocks in mutations(tree).items():
        try:
            changed_files(tree, blocks)
        except Stale as reason:
            stale += 1
            print(f"{name}: {reason}")
    print(f"{len(mutations(tree))} mutations, {stale} stale")
    sys.exit(1 if stale else 0)


def find(tree, build_directory, seeds, jobs, names):
    all_of_them = mutations(tree)
    missed = 0
    for name in names or all_of_them:
        with tempfile.TemporaryDirectory() as work:
            program = build(tree, build_directory, all_of_them[name], pathlib.Path(work))
            ran, violation = look_for(program, seeds, jobs)
        missed += violation is None
        verdict = f"caught  {name:28} after {ran:5} seeds: {violation[:150]}" if violation else \
            f"MISSED  {name:28} in {ran} seeds"
        print(verdict, flush=True)
    print(f"{len(names or all_of_them)} mutations, {missed} missed")
    sys.exit(1 if missed else 0)


def main():
    arguments = sys.argv[2:]
    if sys.argv[1:2] == ["check"] and len(arguments) == 1:
        check(pathlib.Path(arguments[0]).resolve())
    elif sys.argv[1:2] == ["find"] and len(arguments) >= 4:
        tree, build_directory = (pathlib.Path(path).resolve() for path in arguments[:2])
        find(tree, build_directory, arguments[2], arguments[3], arguments[4:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
