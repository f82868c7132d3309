// The receipt: what a target's files were when they were published, so that they can be checked
// later without the source. A log of records, later ones of a path in place of earlier ones.
// Encoding and bounded decoding; no I/O. docs/receipt.md is the specification. A receipt may have
// been cut, overwritten or made by somebody else: no record is believed before its checksum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "fgsync/status.h"
#include "io/file_system.h"
#include "wire/checksum.h"

namespace fgsync::receipt {

inline constexpr std::uint16_t kFormatVersion = 1;
inline constexpr std::size_t kHeaderBytes = 64;
// No record crosses a multiple of this, so that damage costs the records of its block only.
inline constexpr std::size_t kBlockBytes = 128 * limits::kKiB;
// A file with a longer path has no record.
inline constexpr std::size_t kPathBytesMax = limits::kPathArgumentBytesMax;

// At the start of a receipt. The salt is random: records of an older receipt in reused blocks of
// the disk don't fit.
struct Header {
  std::uint64_t salt = 0;
};

// A file is published, as this.
struct FileRecord {
  std::string path;  // below the target's root, components joined by "/"
  std::uint64_t size = 0;
  io::FileTime mtime;
  std::uint32_t chunk_bytes = 0;  // the digest is made of the checksums of pieces of this length
  wire::Checksum digest;
  bool operator==(const FileRecord&) const = default;
};
// What stood at the path is no file of the receipt any more.
struct GoneRecord {
  std::string path;
  bool operator==(const GoneRecord&) const = default;
};
// A run has ended well: all that the records before this one say has happened and is durable. Those
// behind the last one of these may not have.
struct SettledRecord {
  std::uint64_t records = 0;  // of the other kinds before it
  std::uint64_t live = 0;     // so many when there was last only one for each path
  bool operator==(const SettledRecord&) const = default;
};
using Record = std::variant<FileRecord, GoneRecord, SettledRecord>;
// Null for a record that is about none.
const std::string* path_of(const Record& record);

// A record takes its body, and so much besides: a length in front, a checksum behind.
inline constexpr std::size_t kRecordLengthBytes = 4;
inline constexpr std::size_t kRecordFixedBytes = kRecordLengthBytes + wire::kChecksumBytes;
inline constexpr std::size_t kRecordBytesMax = kPathBytesMax + 128;
inline constexpr std::size_t kSettledRecordBytes = kRecordFixedBytes + 17;
static_assert(kHeaderBytes + kRecordBytesMax <= kBlockBytes);

// Whether a record can name this path: relative, no component empty, "." or "..", not too long.
bool is_possible_path(std::string_view path);

std::vector<std::byte> encode(const Header& header);
// kUnsupported for a newer format, kIoError for what is no receipt or a damaged one. `bytes` are
// the first kHeaderBytes.
Result<Header> decode_header(std::span<const std::byte> bytes);

// Appends the record as it stands at `offset` of the log: first zeros to the next block if it does
// not fit into this one. The place is part of what its checksum covers. Gives the number of bytes
// appended.
std::size_t encode(const Record& record, const Header& header, std::uint64_t offset,
                   std::vector<std::byte>& out);

struct PlacedRecord {
  std::uint64_t offset = 0;
  Record record;
};

// The one record that begins at `offset`; `bytes` begin with it and may go on. kIoError for
// anything that encode() would not have produced there.
Result<Record> decode_record(std::span<const std::byte> bytes, const Header& header,
                             std::uint64_t offset);

// The records of one block, one after the other. `bytes` are its bytes from `offset` on: the whole
// rest of the block, or less at the end of the log; they must outlive the cursor.
class BlockCursor {
 public:
  BlockCursor(std::span<const std::byte> bytes, const Header& header, std::uint64_t offset)
      : rest_(bytes), header_(header), offset_(offset) {}

  // nullopt at the end of the block, or where nothing more in it can be believed.
  std::optional<PlacedRecord> next();
  // After that: something stood there which is no record.
  bool is_damaged() const { return damaged_; }
  // Behind the last record.
  std::uint64_t offset() const { return offset_; }

 private:
  std::span<const std::byte> rest_;
  const Header header_;
  std::uint64_t offset_;
  bool damaged_ = false;
};

}  // namespace fgsync::receipt
