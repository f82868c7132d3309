#include "io/posix_environment.h"

#include <sys/random.h>
#include <sys/resource.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>

#include "base/assert.h"
#include "io/posix_file_system.h"
#include "io/posix_network.h"
#include "io/runtime.h"

namespace fgsync::io {
namespace {

using HostIdentity = std::array<std::byte, 16>;

void fill_with_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    // Only a signal may interrupt it (getrandom(2)); going on without randomness is never an
    // option.
    FGSYNC_ASSERT(count > 0 || errno == EINTR);
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

// The kernel's boot id, a UUID in text form (random(4)).
std::optional<HostIdentity> boot_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (!(file >> text)) return std::nullopt;
  std::erase(text, '-');
  HostIdentity identity{};
  if (text.size() != 2 * identity.size()) return std::nullopt;
  for (std::size_t i = 0; i < identity.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    std::uint8_t value = 0;
    const auto [stop, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc() || stop != digits + 2) return std::nullopt;
    identity[i] = std::byte{value};
  }
  return identity;
}

// Where /proc does not tell, a random one: this process is then like no other, which only ever
// makes two sides on one host look like two hosts.
HostIdentity find_host_identity() {
  if (const auto identity = boot_identity()) return *identity;
  HostIdentity identity{};
  fill_with_random(identity);
  return identity;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

rusage usage_so_far() {
  rusage usage{};
  FGSYNC_ASSERT(::getrusage(RUSAGE_SELF, &usage) == 0);  // cannot fail with these arguments
  return usage;
}

class PosixEnvironment final : public Environment {
 public:
  TimePoint now() override { return std::chrono::steady_clock::now(); }
  std::chrono::system_clock::time_point wall_clock() override {
    return std::chrono::system_clock::now();
  }
  void random_bytes(std::span<std::byte> bytes) override { fill_with_random(bytes); }
  HostIdentity host_identity() override { return host_identity_; }
  double cpu_seconds() override {
    const rusage usage = usage_so_far();
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  std::uint64_t peak_memory_bytes() override {
    return static_cast<std::uint64_t>(usage_so_far().ru_maxrss) *
           1024;  // kept in KiB, getrusage(2)
  }
  std::size_t usable_cores() override { return io::usable_cores(); }
  bool has_aes() override { return processor_has_aes(); }
  FileSystem& files() override { return *files_; }
  FileSystem& files_through_links() override { return *files_through_links_; }
  Network& network() override { return network_; }

 private:
  const std::unique_ptr<FileSystem> files_ = make_posix_file_system();
  const std::unique_ptr<FileSystem> files_through_links_ = make_file_system_through_links();
  PosixNetwork network_;
  const HostIdentity host_identity_ = find_host_identity();
};

}  // namespace

std::unique_ptr<Environment> make_posix_environment() {
  return std::make_unique<PosixEnvironment>();
}

}  // namespace fgsync::io
