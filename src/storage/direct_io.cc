#include "storage/direct_io.h"

#include <cerrno>
#include <utility>

#include "base/mark.h"

namespace fgsync::storage {
namespace {

bool is_wanted(std::uint64_t size, DirectIo direct) {
  switch (direct) {
    case DirectIo::kAuto:
      return size >= kDirectIoFileBytesMin;
    case DirectIo::kAlways:
      return size > limits::kPackedFileBytesMax;
    case DirectIo::kNever:
      return false;
  }
  return false;
}

io::OpenMode mode_of(OpenPurpose purpose, bool direct) {
  switch (purpose) {
    case OpenPurpose::kCreate:
      return direct ? io::OpenMode::kCreateDirect : io::OpenMode::kCreate;
    case OpenPurpose::kUpdate:
      return direct ? io::OpenMode::kUpdateDirect : io::OpenMode::kUpdate;
    case OpenPurpose::kRead:
      break;
  }
  return direct ? io::OpenMode::kReadDirect : io::OpenMode::kRead;
}

// Without a file where direct I/O is not offered; nothing is left behind then.
Result<OpenedFile> open_direct(io::FileSystem& files, const io::FileHandle& base,
                               const std::string& name, OpenPurpose purpose) {
  const io::OpenMode mode = mode_of(purpose, /*direct=*/true);
  auto handle = files.open_file(base, name, mode);
  if (!handle.ok()) {
    // open(2): the file system does not support the O_DIRECT flag.
    if (handle.status().system_errno() == EINVAL) {
      mark("direct_io_not_offered");
      return OpenedFile();
    }
    return handle.status();
  }
  auto status = files.stat(*handle);
  const std::uint32_t alignment = status.ok() ? status->direct_alignment : 0;
  if (alignment != 0 && alignment <= limits::kSlotAlignment) {
    return OpenedFile{std::move(*handle), alignment, /*in_memory=*/false};
  }
  if (creates(mode)) FGSYNC_RETURN_IF_ERROR(files.unlink(base, name));
  if (!status.ok()) return status.status();
  mark("direct_io_beyond_buffers");
  return OpenedFile();
}

}  // namespace

Result<OpenedFile> open_for(io::FileSystem& files, const io::FileHandle& base,
                            const std::string& name, OpenPurpose purpose, std::uint64_t size,
                            DirectIo direct) {
  if (is_wanted(size, direct)) {
    auto opened = open_direct(files, base, name, purpose);
    if (!opened.ok() || opened->handle) return opened;
    if (direct == DirectIo::kAlways) {
      mark("direct_io_demanded_in_vain");
      return Status(ErrorCode::kUnsupported, "opening: no direct I/O on this file system");
    }
  }
  auto handle = files.open_file(base, name, mode_of(purpose, /*direct=*/false));
  if (!handle.ok()) return handle.status();
  const bool in_memory = size > limits::kPackedFileBytesMax && files.is_in_memory(*handle);
  return OpenedFile{std::move(*handle), 0, in_memory};
}

}  // namespace fgsync::storage
