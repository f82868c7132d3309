#include "io/file_system.h"

#include <cerrno>

namespace fgsync::io {

Result<std::size_t> FileSystem::read(const FileHandle& file, std::span<std::byte> bytes,
                                     std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::int64_t count = read_some(file, bytes.subspan(done), offset + done);
    if (count < 0) return Status::from_errno(static_cast<int>(-count), "reading");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Status FileSystem::write(const FileHandle& file, std::span<const std::byte> bytes,
                         std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::int64_t count = write_some(file, bytes.subspan(done), offset + done);
    // A regular file that takes nothing and gives no reason.
    if (count == 0) return Status::from_errno(EIO, "writing");
    if (count < 0) return Status::from_errno(static_cast<int>(-count), "writing");
    done += static_cast<std::size_t>(count);
  }
  return Status();
}

}  // namespace fgsync::io
