#!/usr/bin/env python3
"""Plants violations in a small clean tree and checks that scripts/tidy.py finds each of them, and nothing else."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import tidy  # noqa: E402

# The clean tree: what looks like a violation here is none (a comment, a literal, a member, a declaration).
CLEAN = {
    "CMakeLists.txt": "add_subdirectory(src)\nadd_subdirectory(tools/fgsync)\nadd_subdirectory(tests)\n",
    "src/CMakeLists.txt": "foreach(layer base io storage transfer extra)\nadd_subdirectory(${layer})\nendforeach()\n",
    "tests/CMakeLists.txt": "add_subdirectory(base)\nadd_subdirectory(end_to_end)\n",
    "include/fgsync/status.h": "#pragma once\n#include <string>\n",
    "include/fgsync/transfer.h": '#pragma once\n#include "fgsync/status.h"\n',
    "src/base/CMakeLists.txt": "fgsync_layer(base SOURCES text.cc)\n",
    "src/base/text.h": '#pragma once\n#include "fgsync/status.h"\n',
    "src/base/text.cc": """#include "base/text.h"

// system("rm"), exit(1) and std::cout are only words here; 10'000 does not start a literal.
int text_size() { return 10'000 + sizeof "getenv(x) // co_await"; }
""",
    "src/io/CMakeLists.txt": "fgsync_layer(io SOURCES file.cc LAYERS base LIBRARIES PkgConfig::LIBURING)\n",
    "src/io/file.h": "#pragma once\n",
    "src/io/file.cc": '#include "io/file.h"\n\n#include <unistd.h>\n\nint close_it(int fd) { return ::close(fd); }\n',
    "src/storage/CMakeLists.txt": "fgsync_layer(storage SOURCES place.cc LAYERS io)\n",
    "src/storage/place.cc": """#include <fcntl.h>

#include "base/text.h"
#include "io/file.h"

struct Place {
  const void* system() const { return nullptr; }
  void unhandled_exception() const { std::abort(); }
};
Task<void> run(Place place) {
  for (int i = place.first(); i < 3; ++i) co_await place.exit(i);
  for (const base::Name& name : place.names()) co_await place.exit(name);
}
auto pick = [](int value) { return value; };
""",
    "src/transfer/CMakeLists.txt": "fgsync_layer(transfer SOURCES session.cc LAYERS base io storage)\n",
    "src/transfer/session.cc": '#include "fgsync/transfer.h"\n',
    "tools/fgsync/CMakeLists.txt": "add_executable(fgsync main.cc)\ntarget_link_libraries(fgsync fgsync_transfer)\n",
    "tools/fgsync/main.cc": """#include <CLI/CLI.hpp>
#include <cstdlib>

#include "command_line.h"
#include "fgsync/transfer.h"

int main() { std::exit(std::getenv("HOME") == nullptr); }
""",
    "tools/fgsync/command_line.h": "#pragma once\n",
    "tests/base/CMakeLists.txt": "fgsync_unit_test(base SOURCES text_test.cc)\n",
    "tests/base/text_test.cc": '#include <gtest/gtest.h>\n\nTEST(Text, Ends) { GTEST_SKIP() << "no such disk"; }\n',
    "tests/end_to_end/CMakeLists.txt": "add_test(NAME run COMMAND run.sh)\n",
    "tests/end_to_end/run.sh": ". ./common.sh\n",
    "tests/end_to_end/common.sh": "true\n",
    "docs/testing.md": "[the sources](../src) and [elsewhere](https://example.org)\n",
}


def appended(path, text):
    return {path: CLEAN[path] + text}


TEXT, PLACE, TEST, MAIN = "src/base/text.cc", "src/storage/place.cc", "tests/base/text_test.cc", "tools/fgsync/main.cc"
LONG_BODY = "int long_one(int x) {\n" + "  x += 1;\n" * 70 + "  return x;\n}\n"

# (rule, files that are planted or replaced, the path that must be blamed)
PLANTS = [
    ("layers", appended("src/io/file.cc", '#include "storage/place.h"\n'), "src/io/file.cc"),
    ("layers", appended(PLACE, '#include "place.h"\n'), PLACE),
    ("layers", appended(PLACE, '#include "fgsync/transfer.h"\n'), PLACE),
    ("layers", appended(MAIN, '#include "base/text.h"\n'), MAIN),
    ("layers", appended("include/fgsync/status.h", '#include "base/text.h"\n'), "include/fgsync/status.h"),
    ("layers", {"src/extra/CMakeLists.txt": "fgsync_layer(extra SOURCES a.cc)\n",
                "src/extra/a.cc": '#include "fgsync/status.h"\n'}, "src/extra/a.cc"),
    ("links", {"src/base/CMakeLists.txt": "fgsync_layer(base SOURCES text.cc LAYERS io)\n"}, "src/base/CMakeLists.txt"),
    ("links", {"src/base/CMakeLists.txt": "fgsync_layer(basis SOURCES text.cc)\n"}, "src/base/CMakeLists.txt"),
    ("links", {"src/base/CMakeLists.txt": "fgsync_layer(base SOURCES text.cc LIBRARIES OpenSSL::SSL)\n"},
     "src/base/CMakeLists.txt"),
    ("links", {"src/storage/CMakeLists.txt": "fgsync_layer(storage SOURCES place.cc)\n"}, PLACE),
    ("links", appended("tools/fgsync/CMakeLists.txt", "target_link_libraries(fgsync fgsync_io)\n"),
     "tools/fgsync/CMakeLists.txt"),
    ("third-party", appended(MAIN, "#include <liburing.h>\n"), MAIN),
    ("third-party", appended(TEST, "#include <CLI/CLI.hpp>\n"), TEST),
    ("third-party", appended(TEXT, "#include <openssl/evp.h>\n"), TEXT),
    ("third-party", appended(TEXT, "#include <boost/asio.hpp>\n"), TEXT),
    ("kernel", appended(PLACE, "#include <unistd.h>\n"), PLACE),
    ("kernel", appended(PLACE, "#include <thread>\n"), PLACE),
    ("kernel", appended(PLACE, "int f(int fd) { return ::fsync(fd); }\n"), PLACE),
    ("kernel", appended(PLACE, "auto f() { return std::chrono::steady_clock::now(); }\n"), PLACE),
    ("kernel", appended(PLACE, "std::jthread worker;\n"), PLACE),
    ("coroutine", appended(PLACE, "auto f = [&](int x) -> Task<int> { co_return x; };\n"), PLACE),
    ("coroutine", appended(PLACE, "auto f = [this] { co_await stop(); };\n"), PLACE),
    ("coroutine", appended(PLACE, "Task<int> f(bool b) { co_return b ? co_await g() : 0; }\n"), PLACE),
    ("coroutine", appended(PLACE, "Task<int> f() { for (int x : co_await g()) use(x); }\n"), PLACE),
    ("names", appended(TEXT, "class FileManager {};\n"), TEXT),
    ("names", appended(TEXT, "struct [[nodiscard]] EntryInfo {};\n"), TEXT),
    ("names", appended(TEXT, "void process_chunk(int) {}\n"), TEXT),
    ("names", {"tests/support/path_util.h": "#pragma once\n", **appended(TEST, '#include "support/path_util.h"\n')},
     "tests/support/path_util.h"),
    ("headers", {"src/base/text.h": "#include <string>\n"}, "src/base/text.h"),
    ("headers", {"src/base/lonely.h": "#pragma once\n"}, "src/base/lonely.h"),
    ("headers", {TEXT: '#include <string>\n\n#include "base/text.h"\n'}, TEXT),
    ("line-length", appended(TEXT, "// " + "x" * 98 + "\n"), TEXT),
    ("line-length", appended("tests/end_to_end/run.sh", "# " + "x" * 119 + "\n"), "tests/end_to_end/run.sh"),
    ("file-length", appended(TEXT, "\n" * 400), TEXT),
    ("function-length", appended(TEXT, LONG_BODY), TEXT),
    ("function-length", appended(TEXT, "class Long {\n public:\n" + LONG_BODY + "};\n"), TEXT),
    ("function-length", appended(TEST, "TEST(Text, IsLong) {\n" + "\n" * 70 + "}\n"), TEST),
    ("leftovers", appended(TEXT, "// TO" "DO: more\n"), TEXT),
    ("leftovers", appended("tests/end_to_end/run.sh", "# FIX" "ME\n"), "tests/end_to_end/run.sh"),
    ("leftovers", appended(TEST, 'const char* kPath = "/wo' 'rk/tree";\n'), TEST),
    ("leftovers", appended(TEXT, "#if 0\nint x;\n#endif\n"), TEXT),
    ("leftovers", appended(TEXT, "int x;  // NOLINT\n"), TEXT),
    ("disabled-tests", appended(TEST, "TEST(Text, DISABLED_Starts) {}\n"), TEST),
    ("disabled-tests", appended(TEST, "TEST(Text, Starts) { GTEST_SKIP(); }\n"), TEST),
    ("disabled-tests", appended(TEST, "// TEST(Text, Starts) {}\n"), TEST),
    ("registered", {"src/base/new.cc": "\n"}, "src/base/new.cc"),
    ("registered", {"tests/base/new_test.cc": "\n"}, "tests/base/new_test.cc"),
    ("registered", {"tests/io/CMakeLists.txt": "fgsync_unit_test(io SOURCES ring_test.cc)\n",
                    "tests/io/ring_test.cc": "\n"}, "tests/io/CMakeLists.txt"),
    ("registered", {"tests/fuzz/frame_fuzz.cc": "\n"}, "tests/fuzz/frame_fuzz.cc"),
    ("registered", {"tests/end_to_end/kill.sh": "\n"}, "tests/end_to_end/kill.sh"),
    ("registered", appended("src/base/CMakeLists.txt", "file(GLOB all *.cc)\n"), "src/base/CMakeLists.txt"),
    ("document-links", {"docs/testing.md": "[gone](gone.md)\n"}, "docs/testing.md"),
]
# Every banned call, with the file in which it is planted.
for call in ("sprintf(b, f)", "std::strcpy(a, b)", "system(c)", "::popen(c, m)", "rand()", "worker.detach()"):
    PLANTS.append(("banned", appended(MAIN, f"void f() {{ {call}; }}\n"), MAIN))
for call in ("std::exit(1)", "_exit(1)", "abort()", "std::cerr << 1", "std::printf(f)", "fputs(s, stderr)", "getenv(n)",
             "std::filesystem::remove(p)", "return exit(1)"):
    PLANTS.append(("banned", appended(TEXT, f"void f() {{ {call}; }}\n"), TEXT))
for call in ("usleep(5)", "::sleep(1)", "std::this_thread::sleep_for(x)"):
    PLANTS.append(("banned", appended(TEST, f"void f() {{ {call}; }}\n"), TEST))


def violations(changes, exempt=None):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**CLEAN, **changes}.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as stream:
                stream.write(text)
        return tidy.check(root, exempt or {})


def main():
    failures = []

    def expect(what, found, wanted):
        if {(name, path) for path, _, name, _ in found} != wanted:
            failures.append(f"{what}: expected {sorted(wanted)}, found {found}")

    expect("the clean tree", violations({}), set())
    for name, changes, path in PLANTS:
        last_lines = [text.strip().rsplit("\n", 1)[-1] for text in changes.values()]
        expect(f"{name} planted by {last_lines}", violations(changes), {(name, path)})
    planted = {name for name, _, _ in PLANTS}
    if planted != set(tidy.RULES):
        failures.append(f"rules without a planted violation: {sorted(set(tidy.RULES) - planted)}")

    noisy = appended(TEXT, "void f() { abort(); }\n")
    expect("an exemption in use", violations(noisy, {("banned", TEXT): "reason"}), set())
    expect("an exemption out of use", violations({}, {("banned", TEXT): "reason"}), {("exemptions", TEXT)})

    for failure in failures[:5]:
        print(failure)
    print(f"tidy_selftest: {len(PLANTS)} planted violations, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
