#include "run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "console.h"
#include "text.h"

namespace fgsync::tools {

Result<RunLog> RunLog::open(const std::string& path) {
  if (path.empty()) return RunLog(path, -1);
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
  if (fd < 0) return Status::from_errno(errno, path + ": opening the log");
  return RunLog(path, fd);
}

RunLog::RunLog(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

RunLog::RunLog(RunLog&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      status_(std::move(other.status_)) {}

RunLog::~RunLog() {
  if (fd_ >= 0) ::close(fd_);
}

void RunLog::write(std::string_view line) {
  if (fd_ < 0) return;
  std::string text = iso8601(std::chrono::system_clock::now());
  text += " fgsync[" + std::to_string(::getpid()) + "]: ";
  text += line;
  text += '\n';
  if (!write_all(fd_, text) && status_.ok()) {
    status_ = Status::from_errno(errno, path_ + ": writing the log");
  }
}

}  // namespace fgsync::tools
