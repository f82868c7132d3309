#include "transfer/read_back.h"

#include <algorithm>

#include "base/limits.h"
#include "base/mark.h"

namespace fgsync::transfer {
namespace {

// Read and summed at a time: fits a core's cache beside the rest.
constexpr std::size_t kPieceBytes = 256 * limits::kKiB;

Status differs(std::uint64_t offset, std::uint64_t length) {
  mark("read_back_differs");
  return Status(ErrorCode::kChecksumMismatch, "reading back: bytes " + std::to_string(offset) +
                                                  " to " + std::to_string(offset + length) +
                                                  " differ from what arrived");
}

// What is there of the stretch, which may be less than was written.
Result<wire::Checksum> checksum_on_disk(Session& session, const io::FileHandle& file,
                                        std::uint64_t offset, std::uint64_t length,
                                        std::span<std::byte> buffer) {
  wire::ChecksumStream sum;
  for (std::uint64_t done = 0; done < length;) {
    if (session.failed()) return session.status();
    const std::size_t wanted = std::size_t(std::min<std::uint64_t>(buffer.size(), length - done));
    transport::StageTimer verifying(session.meter(), Stage::kVerify, wanted);
    auto count = session.files().read(file, buffer.first(wanted), offset + done);
    if (!count.ok()) return count.status();
    if (*count == 0) break;
    sum.update(buffer.first(*count));
    done += *count;
  }
  return sum.finish();
}

}  // namespace

Status read_back(Session& session, const StagedEntry& entry) {
  FGSYNC_RETURN_IF_ERROR(entry.staged->open_for_reading());
  const std::uint64_t size = entry.file->entry.size;
  const bool packed = size <= session.parameters.packed_file_bytes_max();
  const std::uint64_t chunk_bytes = session.parameters.chunk_bytes;
  std::vector<std::byte> buffer(std::size_t(std::min<std::uint64_t>(size, kPieceBytes)));
  std::uint64_t offset = 0;
  do {
    const std::uint64_t length = packed ? size : std::min(chunk_bytes, size - offset);
    const wire::Checksum& arrived =
        packed ? entry.digest : entry.file->checksums[std::size_t(offset / chunk_bytes)];
    auto found = checksum_on_disk(session, entry.staged->handle(), offset, length, buffer);
    if (!found.ok()) return found.status();
    if (*found != arrived) return differs(offset, length);
    offset += length;
  } while (offset < size);
  entry.staged->close();
  return Status();
}

}  // namespace fgsync::transfer
