// The receiver's journal: which chunks of which files are on stable storage, so that the next run
// sends only the others. Encoding and bounded decoding; no I/O. docs/journal.md is the
// specification. A journal may have been cut, overwritten or made by somebody else: nothing in it
// is believed before its checksum, and nothing past the first record that does not fit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "wire/checksum.h"

namespace fgsync::journal {

inline constexpr std::uint16_t kFormatVersion = 1;
inline constexpr std::size_t kHeaderBytes = 64;

// At the start of a journal.
struct Header {
  wire::Checksum transfer;  // which sources it is about: see transfer/chunk_journal.h
  std::array<std::byte, 16>
      salt{};  // random: records of an older journal in reused blocks don't fit
};

// Which version of a source file a partial one is of, and in which pieces it came. All of it must
// be equal for the pieces to be worth anything.
struct FileVersion {
  std::uint64_t size = 0;
  io::FileTime mtime;
  io::FileTime ctime;
  std::uint64_t inode = 0;
  std::uint32_t chunk_bytes = 0;
  bool operator==(const FileVersion&) const = default;

  std::uint64_t chunks() const { return (size + chunk_bytes - 1) / chunk_bytes; }
};

// A file has begun to come. One that had this number before is forgotten.
struct Begin {
  std::uint64_t number = 0;  // its name in the staging directory
  FileVersion version;
  std::array<std::byte, 16> host{};  // io::Environment::host_identity() of the run that wrote this
  std::uint64_t staged_inode = 0;
  std::string path;  // relative to the target's root
};
// These chunks of it, which follow each other, are on stable storage.
struct Chunks {
  std::uint64_t number = 0;
  std::uint64_t first = 0;
  std::vector<wire::Checksum> checksums;  // at most limits::kHeldChunksMax
};
// It is published or given up.
struct Done {
  std::uint64_t number = 0;
};
using Record = std::variant<Begin, Chunks, Done>;

// A record takes its body, and so much besides: a length in front, a checksum behind.
inline constexpr std::size_t kRecordBytesMax = std::size_t{1} << 20;  // of a body
inline constexpr std::size_t kRecordLengthBytes = 4;
inline constexpr std::size_t kRecordFixedBytes = kRecordLengthBytes + wire::kChecksumBytes;

std::vector<std::byte> encode(const Header& header);
// kUnsupported for a newer format, kIoError for what is no journal or a damaged one. `bytes` are
// the first kHeaderBytes.
Result<Header> decode_header(std::span<const std::byte> bytes);

// Appends the record as it stands at `offset` of the journal with this salt: the place is part of
// what its checksum covers.
void encode(const Record& record, const Header& header, std::uint64_t offset,
            std::vector<std::byte>& out);
// The length of the record's body, by its first kRecordLengthBytes; 0 for one that is out of
// bounds.
std::size_t record_body_bytes(std::span<const std::byte> bytes);
// `bytes` are the whole record. kIoError for anything that encode() would not have produced there.
Result<Record> decode_record(std::span<const std::byte> bytes, const Header& header,
                             std::uint64_t offset);

}  // namespace fgsync::journal
