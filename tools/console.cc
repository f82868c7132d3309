#include "console.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace fgsync::tools {
namespace {

constexpr std::size_t kWidthDefault = 80;

bool can_redraw(int fd) {
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return ::isatty(fd) == 1 && !dumb;
}

}  // namespace

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      // Another program on the same terminal, ssh for one, may have made it non-blocking.
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
      continue;
    }
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Console::Console(int fd) : fd_(fd), is_terminal_(can_redraw(fd)) {}

std::size_t Console::width() const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kWidthDefault;
}

// ECMA-48: CUU (cursor up) and ED (erase below). The cursor rests at the end of the display's last
// line.
std::string Console::take_erasure() {
  if (progress_lines_ == 0) return {};
  std::string erasure = "\r";
  if (progress_lines_ > 1) erasure += "\x1b[" + std::to_string(progress_lines_ - 1) + "A";
  erasure += "\x1b[J";
  progress_lines_ = 0;
  return erasure;
}

void Console::print(std::string_view line) {
  std::string text = take_erasure();
  text += line;
  text += '\n';
  write_all(fd_, text);
}

void Console::show_progress(const std::vector<std::string>& lines) {
  std::string text = take_erasure();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += '\n';
    text += lines[i];
  }
  progress_lines_ = lines.size();
  write_all(fd_, text);
}

}  // namespace fgsync::tools
