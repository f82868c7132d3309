#include "io/posix_directory_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace fgsync::io {
namespace {

FileType type_of_dirent(unsigned char type) {
  switch (type) {
    case DT_REG:
      return FileType::kRegular;
    case DT_DIR:
      return FileType::kDirectory;
    case DT_LNK:
      return FileType::kSymlink;
    case DT_FIFO:
      return FileType::kFifo;
    case DT_SOCK:
      return FileType::kSocket;
    case DT_BLK:
      return FileType::kBlockDevice;
    case DT_CHR:
      return FileType::kCharacterDevice;
    default:
      return FileType::kUnknown;
  }
}

}  // namespace

Result<std::unique_ptr<DirectoryReader>> PosixDirectoryReader::open(int directory_descriptor) {
  int descriptor = -1;
  do {
    descriptor = ::openat(directory_descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return Status::from_errno(errno, "listing");
  return std::unique_ptr<DirectoryReader>(std::make_unique<PosixDirectoryReader>(descriptor));
}

PosixDirectoryReader::~PosixDirectoryReader() { ::close(descriptor_); }

Result<bool> PosixDirectoryReader::fill() {
  ssize_t bytes = -1;
  do {
    bytes = ::getdents64(descriptor_, buffer_, sizeof buffer_);
  } while (bytes < 0 && errno == EINTR);
  position_ = 0;
  filled_ = bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  if (bytes < 0) return Status::from_errno(errno, "listing");
  return bytes > 0;
}

Result<bool> PosixDirectoryReader::next(std::size_t count, std::vector<DirectoryEntry>& entries) {
  const std::size_t end = entries.size() + count;
  const std::size_t begin = entries.size();
  while (entries.size() < end) {
    if (position_ == filled_) {
      // What is already there is handed out before the kernel is asked again.
      if (entries.size() > begin) break;
      auto more = fill();
      if (!more.ok()) return more;
      if (!*more) return false;
    }
    const auto* entry = reinterpret_cast<const dirent64*>(buffer_ + position_);
    position_ += entry->d_reclen;
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    entries.push_back({std::string(name), type_of_dirent(entry->d_type)});
  }
  return true;
}

}  // namespace fgsync::io
