#!/usr/bin/env python3
"""Plants the bugs of tests/sim/mutations/ one by one and shows that the simulation finds them.

A mutation is a sentence that says what is wrong, then blocks of: "@@ FILE", the lines that must stand there exactly
once, "@@ becomes", and the lines that take their place. Only copies are changed: each changed source file is compiled
by the command that the build has for it and linked in front of the libraries, which then don't give theirs.

usage: mutate.py SOURCE-TREE BUILD-DIRECTORY SEEDS JOBS [NAME...]
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


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
            sys.exit(f"{path}: this must stand there exactly once, is found {text.count(before)} times:\n{before}")
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


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    tree, build_directory = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    folder = tree / "tests/sim/mutations"
    names = sys.argv[5:] or sorted(file.stem for file in folder.glob("*.mutation"))
    missed = 0
    for name in names:
        blocks = read_mutation((folder / f"{name}.mutation").read_text())
        with tempfile.TemporaryDirectory() as work:
            program = build(tree, build_directory, blocks, pathlib.Path(work))
            seeds, violation = look_for(program, sys.argv[3], sys.argv[4])
        missed += violation is None
        verdict = f"caught  {name:26} after {seeds:5} seeds: {violation[:150]}" if violation else \
            f"MISSED  {name:26} in {seeds} seeds"
        print(verdict, flush=True)
    print(f"{len(names)} mutations, {missed} missed")
    sys.exit(1 if missed else 0)


main()
