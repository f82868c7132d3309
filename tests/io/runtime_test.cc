// Which engine is chosen, and what a poor environment allows. Each limit is set in a child of its
// own.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "engine_fixture.h"
#include "memory/buffer_pool.h"

namespace fgsync::io::testing {
namespace {

// Runs `check` in a child process; true when it returned true.
bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Makes io_uring_setup fail with `error`, as a container's seccomp profile does. For good: only in
// a child.
bool refuse_uring(std::uint32_t error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

RuntimeOptions options_for(IoEngine engine, std::size_t workers = 2) {
  RuntimeOptions options;
  options.engine = engine;
  options.workers = workers;
  return options;
}

Task<void> exchange(Runtime& runtime, bool& done) {
  Io& io = runtime.worker(0);
  co_await resume_on(io);
  Connection connection = co_await make_connection(io);
  const std::vector<std::byte> sent = pattern(100);
  std::vector<std::byte> received(sent.size());
  const Status sending = co_await send_all(io, connection.near, sent);
  const Status receiving = co_await receive_exactly(io, connection.far, received);
  co_await resume_on(runtime.control());
  done = sending.ok() && receiving.ok() && received == sent;
}

bool works(Runtime& runtime) {
  bool done = false;
  runtime.run(exchange(runtime, done));
  return done;
}

TEST(RuntimeTest, AutomaticChoiceTakesTheRingWhereThereIsOne) {
  auto runtime = create_runtime(options_for(IoEngine::kAuto));
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  const char* const expected = uring_unavailable_reason().empty() ? "uring" : "posix";
  EXPECT_STREQ((*runtime)->engine_name(), expected);
  EXPECT_TRUE(works(**runtime));
}

bool demanded_ring_is_unsupported(std::uint32_t error, const std::string& hint) {
  if (!refuse_uring(error)) return false;
  const auto runtime = create_runtime(options_for(IoEngine::kUring));
  return !runtime.ok() && runtime.status().code() == ErrorCode::kUnsupported &&
         runtime.status().message() == uring_unavailable_reason() &&
         runtime.status().message().starts_with("io_uring_setup: ") &&
         runtime.status().message().find(hint) != std::string::npos;
}

TEST(RuntimeTest, ADemandedRingThatSeccompRefusesIsUnsupportedWithAHint) {
  EXPECT_TRUE(holds_in_child([] { return demanded_ring_is_unsupported(EPERM, "seccomp"); }));
}

TEST(RuntimeTest, ADemandedRingThatTheKernelLacksIsUnsupportedWithAHint) {
  EXPECT_TRUE(holds_in_child([] { return demanded_ring_is_unsupported(ENOSYS, "kernel"); }));
}

TEST(RuntimeTest, AutomaticChoiceFallsBackToPosixWhereTheRingIsRefused) {
  EXPECT_TRUE(holds_in_child([] {
    if (!refuse_uring(EPERM)) return false;
    auto runtime = create_runtime(options_for(IoEngine::kAuto));
    return runtime.ok() && (*runtime)->engine_name() == std::string("posix") && works(**runtime);
  }));
}

Task<void> register_much(Runtime& runtime, BufferPool& pool) {
  for (std::size_t i = 0; i < runtime.worker_count(); ++i) {
    co_await resume_on(runtime.worker(i));
    runtime.worker(i).register_region(pool.region());
  }
  co_await resume_on(runtime.control());
}

bool works_when_poor(IoEngine engine) {
  const rlimit descriptors{64, 64};
  const rlimit locked{64 * 1024, 64 * 1024};
  if (::setrlimit(RLIMIT_NOFILE, &descriptors) != 0) return false;
  if (::setrlimit(RLIMIT_MEMLOCK, &locked) != 0) return false;
  for (int round = 0; round < 2; ++round) {
    auto runtime = create_runtime(options_for(engine, 16));
    auto pool = BufferPool::create(1024 * 1024, 8);
    if (!runtime.ok() || !pool.ok()) return false;
    const bool done =
        round == 0 ? works(**runtime) : ((*runtime)->run(register_much(**runtime, **pool)), true);
    if (!done) return false;
  }
  return true;
}

TEST(RuntimeTest, SixtyFourDescriptorsAndLittleLockedMemoryAreEnoughForPosix) {
  EXPECT_TRUE(holds_in_child([] { return works_when_poor(IoEngine::kPosix); }));
}

TEST(RuntimeTest, SixtyFourDescriptorsAndLittleLockedMemoryAreEnoughForTheRing) {
  const std::string reason = uring_unavailable_reason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  EXPECT_TRUE(holds_in_child([] { return works_when_poor(IoEngine::kUring); }));
}

// Bytes of each ring's submission entries, as mapped: 64 bytes an entry, in whole pages.
std::vector<std::size_t> submission_entry_bytes() {
  constexpr std::size_t kOffset = 0x10000000;  // IORING_OFF_SQES, io_uring_setup(2)
  std::ifstream maps("/proc/self/maps");
  std::vector<std::size_t> found;
  for (std::string line; std::getline(maps, line);) {
    std::size_t start = 0, end = 0, offset = 0;
    const int fields = std::sscanf(line.c_str(), "%zx-%zx %*s %zx", &start, &end, &offset);
    const bool is_ring = line.find("io_uring") != std::string::npos;
    if (fields == 3 && is_ring && offset == kOffset) found.push_back(end - start);
  }
  return found;
}

// Whether the rings of a runtime with two workers take so many bytes each, under this soft limit of
// locked memory.
bool rings_take(std::size_t bytes, rlim_t locked_memory) {
  rlimit locked{};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) != 0) return false;
  locked.rlim_cur = locked_memory;
  if (::setrlimit(RLIMIT_MEMLOCK, &locked) != 0) return false;
  const auto runtime = create_runtime(options_for(IoEngine::kUring, 2));
  return runtime.ok() && submission_entry_bytes() == std::vector<std::size_t>(3, bytes);
}

TEST(RuntimeTest, RingsAreSmallWhereLittleMemoryMayBeLocked) {
  const std::string reason = uring_unavailable_reason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_TRUE(holds_in_child([&] { return rings_take(page, 64 * 1024); }));
  rlimit locked{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &locked), 0);
  if (locked.rlim_max < 1024 * 1024) GTEST_SKIP() << "1 MiB of memory may not be locked here";
  EXPECT_TRUE(holds_in_child([&] { return rings_take(page, 1024 * 1024 - 1); }));
  const std::size_t large = std::max<std::size_t>(page, 256 * 64);
  EXPECT_TRUE(holds_in_child([&] { return rings_take(large, 1024 * 1024); }));
}

TEST(RuntimeTest, TooFewDescriptorsAreAnErrorAndNotAnAbort) {
  EXPECT_TRUE(holds_in_child([] {
    // The undefined-behaviour sanitizer needs descriptors itself when it first sees a type.
    if (!create_runtime(options_for(IoEngine::kPosix)).ok()) return false;
    const rlimit descriptors{12, 12};
    if (::setrlimit(RLIMIT_NOFILE, &descriptors) != 0) return false;
    const auto runtime = create_runtime(options_for(IoEngine::kPosix, 16));
    return !runtime.ok() && runtime.status().system_errno() == EMFILE;
  }));
}

TEST(ProcessLimitsTest, TheSoftDescriptorLimitRisesToTheHardOne) {
  EXPECT_TRUE(holds_in_child([] {
    const rlimit low{64, 200};
    if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return false;
    rlimit now{};
    const bool raised = raise_descriptor_limit() == 200;
    return raised && ::getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 200;
  }));
}

TEST(ProcessLimitsTest, CoresAreThoseThatTheAffinityMaskAllows) {
  EXPECT_GE(usable_cores(), 1U);
  EXPECT_TRUE(holds_in_child([] {
    cpu_set_t one;
    if (::sched_getaffinity(0, sizeof one, &one) != 0) return false;
    int first = 0;
    while (!CPU_ISSET(first, &one)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    return ::sched_setaffinity(0, sizeof one, &one) == 0 && usable_cores() == 1;
  }));
}

TEST(EnvironmentTest, HostIdentityIsTheBootIdAndUsageIsCounted) {
  auto runtime = create_runtime(options_for(IoEngine::kPosix));
  ASSERT_TRUE(runtime.ok());
  Environment& environment = (*runtime)->environment();
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string expected;
  file >> expected;
  std::string text;
  for (const std::byte byte : environment.host_identity()) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(byte));
    text += digits;
  }
  for (const std::size_t dash : {8, 13, 18, 23}) text.insert(dash, "-");
  EXPECT_EQ(text, expected);
  EXPECT_GT(environment.peak_memory_bytes(), 1024U * 1024U);
  EXPECT_GE(environment.cpu_seconds(), 0.0);
}

TEST(EnvironmentTest, RandomBytesDiffer) {
  auto runtime = create_runtime(options_for(IoEngine::kPosix));
  ASSERT_TRUE(runtime.ok());
  std::array<std::byte, 1000> first{};
  std::array<std::byte, 1000> second{};
  (*runtime)->environment().random_bytes(first);
  (*runtime)->environment().random_bytes(second);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace fgsync::io::testing
