"""What scripts/tidy.py checks against: change a rule of the project here."""
import re

# A folder of src/ is a layer; it may include itself and exactly these. src/CMakeLists.txt links by the same table.
LAYERS = {
    "base": [],
    "memory": ["base"],
    "wire": ["base"],
    "io": ["base", "memory"],
    "selection": ["base"],
    "storage": ["base", "memory", "io", "selection"],
    "transport": ["base", "memory", "io"],
    "journal": ["base", "memory", "wire", "io", "storage"],
    "receipt": ["base", "memory", "wire", "io", "storage"],
    "transfer": ["base", "memory", "wire", "io", "selection", "storage", "transport", "journal", "receipt"],
    "verify": ["base", "memory", "wire", "io", "storage", "transport", "journal", "receipt", "transfer"],
    "daemon": ["base", "memory", "wire", "io", "storage", "transport", "journal", "receipt", "transfer"],
}
# Plain values, and a question to the host, that every layer may use. The entry points (transfer.h) belong to the top
# layers.
VALUE_HEADERS = {"fgsync/status.h", "fgsync/options.h", "fgsync/report.h", "fgsync/lock_holder.h"}
ENTRY_LAYERS = {"transfer", "verify", "daemon"}

# Third-party headers, and the only files that know them. Tests may use an independent source of truth.
THIRD_PARTY = {
    "xxhash.h": ["src/wire/checksum.cc", "tests/*"],
    "xxh_x86dispatch.h": ["src/wire/checksum.cc", "tests/*"],
    "liburing*": ["src/io/uring_io*"],
    "openssl/*": ["src/transport/session_secret.cc", "src/transport/frame_cipher.cc",
                  "src/transport/tls_*", "src/transport/openssl_status.cc", "tests/*"],
    "infiniband/*": ["src/transport/rdma_*", "tests/transport/rdma_*"],
    "CLI/*": ["tools/*"],
    "nlohmann/*": ["tools/*", "tests/*"],
    "gtest/*": ["tests/*"],
    "gmock/*": ["tests/*"],
    "benchmark/*": ["bench/*"],
    "seccomp.h": ["tests/*"],
}
# What an angled include with a slash may begin with and be the system's own.
SYSTEM_FOLDERS = ("sys/", "linux/", "asm/", "netinet/", "net/", "arpa/")
LIBRARIES = {
    "PkgConfig::XXHASH": ["wire"],
    "PkgConfig::LIBURING": ["io"],
    "Threads::Threads": ["io"],
    "OpenSSL::SSL": ["transport"],
    "OpenSSL::Crypto": ["transport"],
}

# The kernel is behind the seam in src/io. Other layers may take types, constants and conversions from these ...
KERNEL_VALUE_HEADERS = {"sys/stat.h", "sys/types.h", "sys/uio.h", "sys/socket.h", "netinet/in.h", "arpa/inet.h",
                        "fcntl.h", "strings.h", "endian.h", "sys/auxv.h", "asm/hwcap.h"}
# ... but none of these, whose only use is to act.
ACTING_HEADERS = {"thread", "future", "condition_variable", "semaphore", "random", "ctime", "csignal", "fstream",
                  "filesystem", "iostream"}
KERNEL_CALL = re.compile(r"(?<![\w>:])::([a-z_0-9]+)\s*\(")
KERNEL_CALL_ALLOWED = {"strerror_r", "htons", "ntohs", "htonl", "ntohl", "inet_pton", "inet_ntop", "getauxval"}
CLOCK_OR_THREAD = re.compile(
    r"_clock::now\b|\bclock_gettime\b|\bgettimeofday\b|\btime\s*\(\s*(?:nullptr|NULL|0|&)"
    r"|\bstd::(?:thread|jthread|async|this_thread|condition_variable|random_device)\b|\bpthread_\w+|\bgetrandom\b")

BELOW_TOOLS = ["src/*", "include/*"]
EVERYWHERE = ["src/*", "include/*", "tools/*", "tests/*", "bench/*"]
# Not a member, not another namespace's function, not part of a longer name.
FREE = r"(?<![\w.:>])(?:std::|::)?"
BANNED = [
    (FREE + r"(?:sprintf|vsprintf|strcpy|strcat|gets|strtok|alloca)\s*\(", EVERYWHERE, "unbounded or stateful"),
    (FREE + r"(?:system\s*\((?!\s*\))|popen\s*\()", EVERYWHERE, "no shell between us and a program"),
    (FREE + r"s?rand\s*\(", EVERYWHERE, "use a seeded generator or the Environment"),
    (FREE + r"using\s+namespace\s+std\b(?!::chrono_literals)", EVERYWHERE, "name what is used"),
    (r"\.detach\s*\(\s*\)", EVERYWHERE, "every thread is joined"),
    (r"\bstd::filesystem\b", BELOW_TOOLS, "it throws and follows symlinks"),
    (FREE + r"(?:_exit|_Exit|exit|quick_exit|abort|terminate)\s*\(", BELOW_TOOLS, "return a Status"),
    (r"\bstd::(?:cout|cerr|clog)\b|\b(?:stdout|stderr)\b|" + FREE + r"(?:printf|puts|perror)\s*\(", BELOW_TOOLS,
     "output belongs to tools/"),
    (FREE + r"(?:secure_)?getenv\s*\(", BELOW_TOOLS, "settings come as options"),
    (FREE + r"(?:usleep|nanosleep)\s*\(|::sleep\s*\(\s*\d|\bsleep_(?:for|until)\s*\(", ["tests/*", "bench/*"],
     "wait for the event, not for a time"),
]

# Ends of class names that say nothing; `do_` and `process_` likewise in front of functions.
EMPTY_WORDS = r"(?:Manager|Helper|Util|Utils|Handler|Info|Data|Base|Impl)"
EMPTY_CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:\[\[\w+\]\]\s*)?(\w*" + EMPTY_WORDS + r")\b(?!::)")
EMPTY_FUNCTION = re.compile(r"\b((?:do|process)_\w+)\s*\(")
EMPTY_FILE = re.compile(r"(?:^|_)(?:manager|helpers?|utils?|handler|info|impl)\.(?:h|cc)$")

LINE_COLUMNS = 100
SCRIPT_COLUMNS = 120
FILE_LINES = 400
FUNCTION_LINES = 70

# What may break a rule, and why. An entry that nothing needs any more is a violation itself.
EXEMPT = {
    ("kernel", "src/memory/buffer_pool.cc"): "the pool's slab is one mapping; it is memory, not I/O",
    ("banned", "src/base/assert.cc"): "a failed assertion prints and aborts",
    ("banned", "src/io/standard_streams.cc"): "sshd says by SSH_CONNECTION where it was reached",
    ("banned", "tests/sim/far_starter.cc"): "it waits in virtual time",
}
# The ratchet: files and functions longer than the rule, with the length they may not exceed.
LONG_FILES = {"src/io/posix_file_system.cc": 417}  # path: lines
LONG_FUNCTIONS = {}  # (path, name): lines
