#include "storage/source_file.h"

#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/mark.h"
#include "storage/direct_io.h"

namespace fgsync::storage {
namespace {

Status source_changed(std::string_view how) {
  return Status(ErrorCode::kSourceChanged, std::string(how));
}

// What opening says of a name that was a regular file when the tree was walked and no longer is.
bool says_changed(const Status& opening) {
  switch (opening.system_errno()) {
    case ENOENT:  // vanished
    case ESTALE:  // vanished, on NFS
    case ELOOP:   // a symlink now
    case EISDIR:  // a directory now
    case ENXIO:   // a FIFO, a socket or a device now
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::unique_ptr<SourceFile>> SourceFile::open(io::FileSystem& files,
                                                     const io::FileHandle& directory,
                                                     const std::string& name,
                                                     const SourceIdentity& expected,
                                                     DirectIo direct) {
  auto opened = open_for(files, directory, name, OpenPurpose::kRead, expected.size, direct);
  if (!opened.ok()) {
    if (!says_changed(opened.status())) return opened.status();
    mark("source_vanished");
    return source_changed("it vanished or was replaced before it was read");
  }
  auto status = files.stat(opened->handle);
  if (!status.ok()) return status.status();
  const bool same = status->size == expected.size && status->mtime == expected.mtime &&
                    status->ctime == expected.ctime.value_or(status->ctime) &&
                    status->inode == expected.inode.value_or(status->inode);
  if (!same) {
    mark("source_changed_before");
    return source_changed("it changed before it was read");
  }
  return std::unique_ptr<SourceFile>(new SourceFile(files, std::move(*opened), *status));
}

Status SourceFile::read(std::span<std::byte> bytes, std::uint64_t offset) const {
  FGSYNC_ASSERT(!is_direct());
  auto count = files_.read(handle_, bytes, offset);
  if (!count.ok()) return count.status();
  if (*count == bytes.size()) return Status();
  mark("source_became_shorter");
  return source_changed("it became shorter while it was read");
}

Status SourceFile::check_unchanged() const {
  auto now = files_.stat(handle_);
  if (!now.ok()) return now.status();
  if (now->size != opened_.size || now->mtime != opened_.mtime || now->ctime != opened_.ctime) {
    mark("source_changed_while_read");
    return source_changed("it changed while it was read");
  }
  // Files of /proc and the like say that they are empty, and are not.
  if (is_direct()) return Status();
  std::byte beyond{};
  auto count = files_.read(handle_, {&beyond, 1}, opened_.size);
  if (!count.ok()) return count.status();
  return *count == 0 ? Status() : source_changed("it is longer than its size says");
}

}  // namespace fgsync::storage
