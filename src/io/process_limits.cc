// What this process may use: descriptors, cores and the instructions that matter.
#include <sched.h>
#include <sys/resource.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "io/runtime.h"

namespace fgsync::io {
namespace {

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// The whole cores that one group's cpu.max ("200000 100000": quota and period in microseconds, or
// "max 100000") amounts to, rounded up. Linux, Documentation/admin-guide/cgroup-v2.rst.
std::optional<std::size_t> quota_of(const std::string& group) {
  std::ifstream file("/sys/fs/cgroup" + group + "/cpu.max");
  std::string quota_text;
  std::string period_text;
  if (!(file >> quota_text >> period_text)) return std::nullopt;
  const auto quota = parse_number(quota_text);
  const auto period = parse_number(period_text);
  if (!quota || !period || *period == 0) return std::nullopt;
  return std::max<std::size_t>(1, (*quota + *period - 1) / *period);
}

// The tightest quota of this process's control group and of those around it.
std::optional<std::size_t> cgroup_quota() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("0::/")) {
  }
  if (!line.starts_with("0::/")) return std::nullopt;
  std::string group = line.substr(3);
  std::optional<std::size_t> tightest;
  for (;;) {
    const auto quota = quota_of(group == "/" ? "" : group);
    if (quota) tightest = std::min(tightest.value_or(*quota), *quota);
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos || group.size() <= 1) return tightest;
    group.resize(std::max<std::size_t>(slash, 1));
  }
}

// The kernel wants room for every core that it could have; 8192 is the most that Linux is built
// for.
std::size_t affinity_count() {
  constexpr int kCoresMax = 8192;
  cpu_set_t* const set = CPU_ALLOC(kCoresMax);
  const std::size_t bytes = CPU_ALLOC_SIZE(kCoresMax);
  const bool known = ::sched_getaffinity(0, bytes, set) == 0;
  const int count = known ? CPU_COUNT_S(bytes, set) : 0;
  CPU_FREE(set);
  return count > 0 ? static_cast<std::size_t>(count) : std::thread::hardware_concurrency();
}

}  // namespace

std::size_t usable_cores() {
  const std::size_t cores = std::max<std::size_t>(1, affinity_count());
  return std::min(cores, cgroup_quota().value_or(cores));
}

bool processor_has_aes() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
  return (::getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
  return false;
#endif
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace fgsync::io
