#include "list_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "fgsync/options.h"
#include "settings.h"
#include "text.h"

namespace fgsync::tools {
namespace {

[[noreturn]] void fail(const std::string& file, const char* doing, int error) {
  throw CommandError{1, escape_name(file) + ": " + doing + ": " + std::strerror(error)};
}

std::string read_whole(const std::string& file, std::size_t bytes_max) {
  const bool opens = file != "-";
  const int descriptor = opens ? ::open(file.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  if (descriptor < 0) fail(file, "opening", errno);
  std::string text;
  std::array<char, 65536> piece;
  ssize_t count = 0;
  int error = 0;
  do {
    count = ::read(descriptor, piece.data(), piece.size());
    if (count > 0) text.append(piece.data(), std::size_t(count));
    if (count < 0 && errno != EINTR) error = errno;
  } while (count != 0 && error == 0 && text.size() <= bytes_max);
  if (opens) ::close(descriptor);
  if (error != 0) fail(file, "reading", error);
  return text;
}

}  // namespace

std::vector<ListedLine> read_list_file(const std::string& file, bool ends_with_nul,
                                       std::size_t bytes_max) {
  const std::string text = read_whole(file, bytes_max);
  if (text.size() > bytes_max) {
    throw CommandError{1, escape_name(file) + ": longer than " + human_bytes(bytes_max)};
  }
  const std::string_view ends = ends_with_nul ? std::string_view("\0", 1) : "\n\r";
  std::vector<ListedLine> lines;
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find_first_of(ends, at), text.size());
    if (end > at) lines.push_back({text.substr(at, end - at), number});
    at = end + 1;
    // One line end, not two.
    if (!ends_with_nul && text.compare(end, 2, "\r\n") == 0) ++at;
    if (lines.empty() || lines.back().text.find('\0') == std::string::npos) continue;
    throw CommandError{
        1, escape_name(file) + ":" + std::to_string(number) + ": a NUL in the line (see --from0)"};
  }
  return lines;
}

std::vector<std::string> read_listed_paths(const std::string& file, bool ends_with_nul) {
  constexpr std::size_t kBytesMax = std::size_t{64} << 20;  // as limits of the library
  constexpr std::size_t kPathsMax = std::size_t{2} << 20;
  constexpr std::size_t kPathBytesMax = std::size_t{64} << 10;
  std::vector<std::string> paths;
  for (const ListedLine& line : read_list_file(file, ends_with_nul, kBytesMax)) {
    if (line.is_comment()) continue;
    const std::string where = escape_name(file) + ":" + std::to_string(line.number);
    Result<std::string> path = parse_listed_path(line.text);
    if (!path.ok()) {
      throw CommandError{1, where + ": " + escape_name(line.text) + ": " + path.status().message()};
    }
    if (path->size() > kPathBytesMax) throw CommandError{1, where + ": the path is too long"};
    if (paths.size() == kPathsMax) throw CommandError{1, where + ": at most 2097152 paths"};
    paths.push_back(std::move(*path));
  }
  return paths;
}

}  // namespace fgsync::tools
