#!/usr/bin/env python3
"""The rules of this project that no compiler checks. Run by ctest as hygiene.tidy.

usage: scripts/tidy.py [--root DIRECTORY]

Prints one line for each violation, `path:line: rule: what is wrong`, and ends with 1 if there was any.
tests/hygiene/tidy_selftest.py plants a violation of every rule and checks that it is found.
"""
import argparse
import fnmatch
import os
import re
import sys

sys.dont_write_bytecode = True  # nothing is left behind in the source tree

from tidy_source import Tree, closing, cmake_words, functions
from tidy_tables import (ACTING_HEADERS, BANNED, CLOCK_OR_THREAD, EMPTY_CLASS, EMPTY_FILE, EMPTY_FUNCTION, ENTRY_LAYERS,
                         EXEMPT, FILE_LINES, FUNCTION_LINES, KERNEL_CALL, KERNEL_CALL_ALLOWED, KERNEL_VALUE_HEADERS,
                         LAYERS, LIBRARIES, LINE_COLUMNS, LONG_FILES, LONG_FUNCTIONS, SCRIPT_COLUMNS, SYSTEM_FOLDERS,
                         THIRD_PARTY, VALUE_HEADERS)

RULES = {}


def rule(function):
    RULES[function.__name__.replace("_", "-")] = function
    return function


# --- Layers ---------------------------------------------------------------------------------------------------------


@rule
def layers(tree):
    """Includes go down only, by the table."""
    for file in tree.cpp:
        top = file.path.split("/")[0]
        for line, angled, name in file.includes:
            folder = name.split("/")[0]
            if angled:
                continue
            if file.layer:
                if file.layer not in LAYERS:
                    yield file, 1, f"src/{file.layer} is not in the table of layers"
                    break
                if "/" not in name:
                    yield file, line, f'write "{file.layer}/{name}"'
                elif folder == "fgsync":
                    if name not in VALUE_HEADERS and file.layer not in ENTRY_LAYERS:
                        yield file, line, f"{file.layer} is below {name}"
                elif folder != file.layer and folder not in LAYERS[file.layer]:
                    yield file, line, f"{file.layer} may not include {name}"
            elif top == "include" and folder != "fgsync":
                yield file, line, f"a public header includes public headers only, not {name}"
            elif top == "tools" and folder != "fgsync" and not tool_header(tree, file, name):
                yield file, line, f"a tool uses include/fgsync and its own folder, not {name}"


def tool_header(tree, file, name):
    return any(f"{base}/{name}" in tree.by_path for base in (file.folder, "tools"))


@rule
def links(tree):
    """CMake links what the table allows and what is included."""
    for file in tree.files:
        if file.name != "CMakeLists.txt":
            continue
        if file.path.startswith("tools/"):
            for line, found in file.find(r"\bfgsync_(\w+)(?=[\s)])"):
                if found.group(1) in LAYERS and found.group(1) not in ENTRY_LAYERS:
                    yield file, line, f"tools link the top layers, not {found.group(1)}"
        if not file.layer:
            continue
        listed = tree.layer_lists[file.layer]
        if listed["NAME"] != [file.layer]:
            yield file, 1, f"must define the one layer {file.layer}"
        for below in listed["LAYERS"]:
            if below not in LAYERS.get(file.layer, []):
                yield file, 1, f"{file.layer} may not link {below}"
        for library in listed["LIBRARIES"]:
            if file.layer not in LIBRARIES.get(library, []):
                yield file, 1, f"{library} does not belong to {file.layer}"
    for file in tree.cpp:
        for line, angled, name in file.includes:
            folder = name.split("/")[0]
            if not angled and folder in LAYERS.get(file.layer, []):
                if file.layer in tree.layer_lists and folder not in tree.linked_layers(file.layer):
                    yield file, line, f"src/{file.layer}/CMakeLists.txt does not link {folder}"


@rule
def third_party(tree):
    """A library's headers are known to the files that wrap it."""
    for file in tree.cpp:
        for line, angled, name in file.includes:
            for pattern, places in THIRD_PARTY.items():
                if fnmatch.fnmatch(name, pattern):
                    if not file.within(places):
                        yield file, line, f"{name} belongs to {', '.join(places)}"
                    break
            else:
                if angled and "/" in name and not name.startswith(SYSTEM_FOLDERS):
                    yield file, line, f"{name}: which library is this? add it to the table"


@rule
def kernel(tree):
    """Files, sockets, clocks and threads are reached through src/io alone."""
    for file in tree.cpp:
        if not file.layer or file.layer == "io":
            continue
        for line, angled, name in file.includes:
            system_header = name.endswith(".h") and not any(fnmatch.fnmatch(name, known) for known in THIRD_PARTY)
            if angled and (name in ACTING_HEADERS or system_header and name not in KERNEL_VALUE_HEADERS):
                yield file, line, f"<{name}> is for src/io"
        for line, found in file.find(KERNEL_CALL):
            if found.group(1) not in KERNEL_CALL_ALLOWED:
                yield file, line, f"::{found.group(1)}() is for src/io"
        for line, found in file.find(CLOCK_OR_THREAD):
            yield file, line, f"{found.group(0)} is for src/io"


# --- Code -----------------------------------------------------------------------------------------------------------


# A type in front of the name makes it a declaration of our own; a coroutine promise must end the program somehow.
DECLARED = re.compile(r"(?:[>*&]|\b(?!return\b|co_return\b|else\b|do\b)[A-Za-z_]\w*)[ \t]+$")


@rule
def banned(tree):
    """Calls that are refused, each with its reason."""
    for file in tree.cpp:
        for pattern, places, reason in BANNED:
            if file.within(places):
                for line, found in file.find(pattern):
                    before = file.code[:found.start()].rsplit("\n", 1)[-1]
                    if not DECLARED.search(before) and "unhandled_exception()" not in before:
                        yield file, line, f"{found.group(0).strip()}: {reason}"


LAMBDA = re.compile(r"(?<![\w\])[])\[[^\[\]]+\]\s*(?:\([^(){}]*(?:\([^(){}]*\)[^(){}]*)*\))?[^;{}()]*\{")


@rule
def coroutine(tree):
    """A capturing lambda coroutine outlives its captures; g++ 12 miscompiles co_await in two places."""
    for file in tree.cpp:
        for line, found in file.find(LAMBDA):
            if re.search(r"\bco_(?:await|return|yield)\b", file.code[found.end():closing(file.code, found.end())]):
                yield file, line, "a lambda that captures may not be a coroutine"
        for line, found in file.find(r"\?[^;{}?]*\bco_await\b"):
            yield file, line, "co_await inside a conditional expression"
        for line, found in file.find(r"\bfor\s*\("):
            header = file.code[found.end():closing(file.code, found.end(), "()")].split(";")[-1]
            if re.search(r"[^:?]:[^:].*\bco_await\b", header, re.S):
                yield file, line, "co_await in the header of a range-for"


@rule
def names(tree):
    """Names that say nothing."""
    for file in tree.cpp:
        for line, found in file.find(EMPTY_CLASS):
            yield file, line, f"{found.group(1)}: name what it is"
        for line, found in file.find(EMPTY_FUNCTION):
            yield file, line, f"{found.group(1)}: name what it does"
        if EMPTY_FILE.search(file.name):
            yield file, 1, "name the file after what it holds"


@rule
def headers(tree):
    """Headers are guarded, used, and included first by their own source."""
    included = {name for file in tree.cpp for _, _, name in file.includes}
    for file in tree.cpp:
        if file.name.endswith(".h"):
            if "#pragma once" not in file.code:
                yield file, 1, "#pragma once is missing"
            tail = file.path.split("/", 1)[-1]
            if tail not in included and file.name not in included:
                yield file, 1, "nothing includes this header"
        elif file.layer and file.path[:-2] + "h" in tree.by_path:
            own = f"{file.layer}/{file.name[:-2]}h"
            if not file.includes or file.includes[0][2] != own:
                yield file, 1, f'"{own}" must be the first include, so that it is known to stand alone'


# --- Sizes ----------------------------------------------------------------------------------------------------------


@rule
def line_length(tree):
    for file in tree.files:
        limit = LINE_COLUMNS if file.cpp else SCRIPT_COLUMNS
        if file.path.startswith("docs/") or file.name.endswith((".md", ".json")):
            continue
        for number, line in enumerate(file.text.splitlines(), 1):
            if len(line) > limit:
                yield file, number, f"{len(line)} columns, the limit is {limit}"


def ratchet(file, what, length, limit, listed):
    if listed is None:
        return f"{what} has {length} lines, the limit is {limit}" if length > limit else None
    if length > listed:
        return f"{what} has grown to {length} lines, it is listed with {listed}"
    if length < listed:
        return f"{what} has shrunk to {length} lines: lower its entry, or drop it at {limit}"
    return None


@rule
def file_length(tree):
    for file in tree.cpp:
        trouble = ratchet(file, "the file", file.text.count("\n"), FILE_LINES, LONG_FILES.get(file.path))
        if trouble:
            yield file, 1, trouble


@rule
def function_length(tree):
    for file in tree.cpp:
        for name, first, last in functions(file.code):
            trouble = ratchet(file, name, last - first + 1, FUNCTION_LINES, LONG_FUNCTIONS.get((file.path, name)))
            if trouble:
                yield file, first, trouble


# --- Leftovers, tests, documents ------------------------------------------------------------------------------------

SELF = {"scripts/tidy.py", "scripts/tidy_tables.py", "tests/hygiene/tidy_selftest.py"}


@rule
def leftovers(tree):
    """Nothing unfinished, nothing switched off, no path of one machine."""
    for file in tree.files:
        if file.path in SELF:
            continue
        for line, found in file.find(r"\b(?:TODO|FIXME|XXX|HACK)\b", file.text):
            yield file, line, f"{found.group(0)}: do it or drop it"
        for line, found in file.find(r"(?<![\w.])/(?:work|tmp/build)\b[-/]", file.text):
            yield file, line, f"{found.group(0)} is a path of one machine"
        if file.cpp:
            for line, _ in file.find(r"^[ \t]*#[ \t]*if[ \t]+0\b|\n[ \t]*#[ \t]*if[ \t]+0\b"):
                yield file, line, "code that is switched off"
            for line, _ in file.find(r"NOLINT(?:NEXTLINE|BEGIN|END)?(?:\([^)]*\))?[ \t]*(?=\n)", file.text):
                yield file, line, "NOLINT wants its reason on the same line"


@rule
def disabled_tests(tree):
    for file in tree.cpp:
        for line, _ in file.find(r"\bDISABLED_\w"):
            yield file, line, "a disabled test"
        for line, _ in file.find(r"\bGTEST_SKIP\s*\(\s*\)\s*;"):
            yield file, line, "GTEST_SKIP must say why"
        for line, _ in file.find(r"//[ \t]*TEST(?:_[FP])?\s*\(", file.text):
            yield file, line, "a test that is commented out"


@rule
def registered(tree):
    """What exists is built and run: every source and every test is named in a CMakeLists.txt, without globs."""
    for file in tree.files:
        if file.name == "CMakeLists.txt":
            for line, _ in file.find(r"\bGLOB(?:_RECURSE)?\b"):
                yield file, line, "name the files, so that a forgotten one is noticed"
            parent, own = os.path.split(file.folder)
            if own and not any(word.split("/")[-1] == own for word in nearest_list(tree, parent)):
                yield file, 1, "no CMakeLists.txt above adds this folder"
            continue
        is_test = file.path.startswith("tests/") and file.name.endswith(("_test.cc", "_fuzz.cc"))
        is_source = file.path.startswith(("src/", "tools/", "bench/")) and file.name.endswith(".cc")
        is_scenario = file.path.startswith("tests/end_to_end/") and not file.cpp
        if is_test or is_source or is_scenario:
            words = nearest_list(tree, file.folder)
            named = any(word.split("/")[-1] == file.name for word in words)
            if is_test and file.name.endswith("_fuzz.cc") or is_scenario:
                named = named or os.path.splitext(file.name)[0] in words
            if is_scenario and not file.executable:
                named = named or used_by_sibling(tree, file)
            if not named:
                yield file, 1, "no CMakeLists.txt names this file"


def nearest_list(tree, folder):
    """The words of the CMakeLists.txt in this folder, or in the nearest one above."""
    while os.path.join(folder, "CMakeLists.txt") not in tree.by_path and folder:
        folder = os.path.dirname(folder)
    list_file = tree.by_path.get(os.path.join(folder, "CMakeLists.txt"))
    return cmake_words(list_file.text) if list_file else []


def used_by_sibling(tree, file):
    stem = os.path.splitext(file.name)[0]
    pattern = rf"\b{re.escape(file.name)}\b|\b(?:import|from)\s+{re.escape(stem)}\b"
    return any(other is not file and other.folder == file.folder and re.search(pattern, other.text)
               for other in tree.files)


@rule
def document_links(tree):
    for file in tree.files:
        if file.name.endswith(".md"):
            for line, found in file.find(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", file.text):
                target = os.path.normpath(os.path.join(file.folder, found.group(1)))
                if target not in tree.by_path and not any(path.startswith(target + "/") for path in tree.by_path):
                    yield file, line, f"the link to {found.group(1)} leads nowhere"


def check(root, exempt=None):
    """A sorted list of (path, line, rule, message)."""
    exempt = EXEMPT if exempt is None else exempt
    tree, found, used = Tree(root), [], set()
    for name, function in RULES.items():
        for file, line, message in function(tree):
            if (name, file.path) in exempt:
                used.add((name, file.path))
            else:
                found.append((file.path, line, name, message))
    for name, path in exempt.keys() - used:
        found.append((path, 1, "exemptions", f"nothing here needs the exemption from `{name}` any more"))
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    violations = check(parser.parse_args().root)
    for path, line, name, message in violations:
        print(f"{path}:{line}: {name}: {message}")
    print(f"tidy: {len(RULES)} rules, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
