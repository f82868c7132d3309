#include "storage/copy_file.h"

#include <cerrno>
#include <cstring>
#include <vector>

namespace fgsync::storage {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

Status copy_bytes(io::FileSystem& files, const io::FileHandle& from, const io::FileHandle& to) {
  std::vector<std::byte> piece(kPieceBytes);
  for (std::uint64_t offset = 0;;) {
    auto count = files.read(from, piece, offset);
    if (!count.ok()) return count.status();
    if (*count == 0) return Status();
    FGSYNC_RETURN_IF_ERROR(files.write(to, std::span(piece).first(*count), offset));
    offset += *count;
  }
}

// Past the page cache.
Status compare_bytes(io::FileSystem& files, const io::FileHandle& from, const io::FileHandle& to) {
  FGSYNC_RETURN_IF_ERROR(files.drop_cached(to));
  std::vector<std::byte> wanted(kPieceBytes);
  std::vector<std::byte> found(kPieceBytes);
  for (std::uint64_t offset = 0;;) {
    auto count = files.read(from, wanted, offset);
    if (!count.ok()) return count.status();
    auto there = files.read(to, found, offset);
    if (!there.ok()) return there.status();
    if (*count != *there || std::memcmp(wanted.data(), found.data(), *count) != 0) {
      return Status(ErrorCode::kChecksumMismatch, "reading back: the copy differs");
    }
    if (*count == 0) return Status();
    offset += *count;
  }
}

}  // namespace

Status copy_file(io::FileSystem& files, const io::FileHandle& from, const io::FileHandle& to,
                 const std::string& name, const Metadata& metadata, const AsidePlace& aside) {
  Status cleared = files.unlink(aside.directory, aside.name);
  if (!cleared.ok() && cleared.system_errno() != ENOENT) return cleared;
  auto source = files.open_file(from, name, io::OpenMode::kRead);
  if (!source.ok()) return source.status();
  auto copy = files.open_file(aside.directory, aside.name, io::OpenMode::kCreate);
  if (!copy.ok()) return copy.status();
  Status copied = copy_bytes(files, *source, *copy);
  if (copied.ok()) copied = apply_metadata(files, *copy, metadata);
  if (copied.ok() && aside.durable) copied = files.sync(*copy);
  if (copied.ok() && aside.durable && aside.read_back) {
    copied = compare_bytes(files, *source, *copy);
  }
  if (copied.ok()) copied = files.rename(aside.directory, aside.name, to, name);
  if (!copied.ok()) (void)files.unlink(aside.directory, aside.name);
  return copied;
}

}  // namespace fgsync::storage
