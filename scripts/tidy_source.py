"""How scripts/tidy.py sees the tree: files, their includes, and C++ without comments and literals."""
import fnmatch
import os
import re

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<number>\b\d[\w.']*)"""
    r"""|(?P<raw>R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)")|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)


def spaces(match):
    return re.sub(r"[^\n]", " ", match.group())


def blank(match):
    """Comments and the insides of literals become spaces; lines and columns stay."""
    token = match.group(0)
    if match.lastgroup == "number":
        return token
    inside = spaces(match)
    return inside if match.group("comment") else token[0] + inside[1:-1] + token[-1]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def cmake_words(text):
    return re.findall(r"[^\s()]+", re.sub(r"#[^\n]*", "", text))


class File:
    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as stream:
            self.text = stream.read()
        self.executable = os.access(os.path.join(root, path), os.X_OK)
        self.folder, self.name = os.path.split(path)
        self.cpp = path.endswith((".cc", ".h"))
        parts = path.split("/")
        self.layer = parts[1] if parts[0] == "src" and len(parts) > 2 else None
        self.code = TOKEN.sub(blank, self.text) if self.cpp else self.text
        self.includes = [(line_of(self.text, found.start(2)), found.group(1) == "<", found.group(2))
                         for found in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)', self.text, re.M)
                         ] if self.cpp else []

    def within(self, patterns):
        return any(fnmatch.fnmatch(self.path, pattern) for pattern in patterns)

    def find(self, pattern, text=None):
        text = self.code if text is None else text
        for found in re.finditer(pattern, text):
            yield line_of(text, found.start()), found


class Tree:
    FOLDERS = ("include", "src", "tools", "tests", "bench", "scripts", "docs", ".ci")

    def __init__(self, root):
        # `.git` is a file in a linked worktree; what it says is of one machine.
        paths = [name for name in os.listdir(root) if name != ".git" and os.path.isfile(os.path.join(root, name))]
        for folder in self.FOLDERS:
            for directory, folders, names in os.walk(os.path.join(root, folder)):
                folders[:] = [name for name in folders if not name.startswith((".", "__"))]
                paths += [os.path.relpath(os.path.join(directory, name), root) for name in names]
        self.files = [File(root, path) for path in sorted(paths)]
        self.cpp = [file for file in self.files if file.cpp]
        self.by_path = {file.path: file for file in self.files}
        self.layer_lists = {}  # layer: {"SOURCES": [...], "LAYERS": [...], "LIBRARIES": [...]}
        for file in self.files:
            if file.layer and file.name == "CMakeLists.txt":
                self.layer_lists[file.layer] = self.layer_list(file)

    @staticmethod
    def layer_list(file):
        lists, current = {"NAME": [], "SOURCES": [], "LAYERS": [], "LIBRARIES": []}, "NAME"
        for found in re.finditer(r"\bfgsync_layer\((.*?)\)", re.sub(r"#[^\n]*", "", file.text), re.S):
            for word in found.group(1).split():
                if word in lists:
                    current = word
                else:
                    lists[current].append(word)
        return lists

    def linked_layers(self, layer):
        reached, queue = set(), [layer]
        while queue:
            for below in self.layer_lists.get(queue.pop(), {}).get("LAYERS", []):
                if below not in reached:
                    reached.add(below)
                    queue.append(below)
        return reached


def closing(code, position, pair="{}"):
    """The end of the block or list that is open at position."""
    depth = 1
    for found in re.compile("[" + re.escape(pair) + "]").finditer(code, position):
        depth += 1 if found.group() == pair[0] else -1
        if depth == 0:
            return found.end()
    return len(code)


CONTAINER = re.compile(r"\s*(?:(?:public|private|protected)\s*:\s*)?(?:template\s*<[^{]*>\s*)?(?:inline\s+|typedef\s+)?"
                       r"(?:namespace|class|struct|union|enum|extern)\b")


def functions(code):
    """(name, first line, last line) of each function that is not inside another one."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", spaces, code, flags=re.M)
    scopes, head_start = [], 0
    for found in re.finditer(r"[;{}]", code):
        if found.group() == "{":
            head = re.sub(r"alignas\s*\([^)]*\)", "", code[head_start:found.start()])
            inside = any(name is not None for name, _ in scopes)
            name = None
            if "(" in head and not inside and not (CONTAINER.match(head) and ")" not in head):
                name = re.search(r"TEST\w*\s*\([^)]*\)|[~\w:<>]*\s*(?=\()", head).group().strip()
            first = head_start + len(code[head_start:found.start()]) - len(code[head_start:found.start()].lstrip())
            scopes.append((name, line_of(code, first)))
        elif found.group() == "}" and scopes:
            name, first = scopes.pop()
            if name is not None:
                yield name, first, line_of(code, found.start())
        head_start = found.end()
