#include "receipt/tree_lookup.h"

#include <cerrno>
#include <utility>

namespace fgsync::receipt {
namespace {

// A directory on the way is missing, or is a symlink or something else now.
bool says_missing(const Status& opening) {
  const int reason = opening.system_errno();
  return reason == ENOENT || reason == ENOTDIR || reason == ELOOP;
}

}  // namespace

Status TreeLookup::enter(const std::string& directory) {
  if (directory == directory_ && (handle_ || directory.empty())) return Status();
  directory_.clear();
  handle_.reset();
  for (std::size_t start = 0; start < directory.size();) {
    const std::size_t end = std::min(directory.find('/', start), directory.size());
    auto opened =
        files_.open_directory(handle_ ? handle_ : root_, directory.substr(start, end - start));
    if (!opened.ok()) {
      handle_.reset();
      return opened.status();
    }
    handle_ = std::move(*opened);
    start = end + 1;
  }
  directory_ = directory;
  return Status();
}

Result<io::FileStatus> TreeLookup::stat(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash);
  const Status entered = enter(directory);
  if (!entered.ok()) {
    if (!says_missing(entered)) return entered;
    return Status(ErrorCode::kNotFound, entered.message(), entered.system_errno());
  }
  return files_.stat_at(handle_ ? handle_ : root_, path.substr(slash + 1));
}

}  // namespace fgsync::receipt
