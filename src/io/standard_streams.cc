#include "io/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

namespace fgsync::io {
namespace {

// Waits until standard input has something to say (its end included).
bool is_input_ready(std::chrono::milliseconds wait) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, int(wait.count())) > 0;
}

}  // namespace

Result<std::string> read_standard_input_line(std::size_t bytes_max,
                                             std::chrono::milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  std::string line;
  while (line.size() < bytes_max) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !is_input_ready(left)) {
      return Status(ErrorCode::kTimeout, "no request came on standard input");
    }
    char next = 0;
    const ssize_t count = ::read(STDIN_FILENO, &next, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Status(ErrorCode::kConnectionLost, "standard input ended");
    if (next == '\n') return line;
    line += next;
  }
  return Status(ErrorCode::kProtocolError, "the request on standard input is too long");
}

bool is_standard_input_closed() {
  char dropped[512];
  while (is_input_ready(std::chrono::milliseconds(0))) {
    const ssize_t count = ::read(STDIN_FILENO, dropped, sizeof dropped);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (count <= 0) return true;
  }
  return false;
}

Status write_standard_output(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::from_errno(errno, "writing to standard output");
    done += std::size_t(count);
  }
  return Status();
}

bool has_terminal() {
  const int terminal = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return false;
  ::close(terminal);
  return true;
}

std::string address_reached_by_ssh() {
  // "client-address client-port server-address server-port", ssh(1).
  const char* connection = std::getenv("SSH_CONNECTION");
  if (connection == nullptr) return "";
  std::istringstream fields(connection);
  std::string client_address, client_port, server_address;
  fields >> client_address >> client_port >> server_address;
  return server_address;
}

}  // namespace fgsync::io
