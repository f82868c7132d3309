// Reads a receipt, once through or record by record.
#pragma once

#include <cstdint>
#include <functional>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "receipt/receipt_format.h"

namespace fgsync::receipt {

// In the target's state directory.
inline constexpr const char* kReceiptName = "receipt";

// What reading all of a receipt tells.
struct LogSummary {
  std::uint64_t records = 0;                 // without the settled ones
  std::uint64_t unsettled = 0;               // of these, behind the last settled one
  std::uint64_t settled_end = kHeaderBytes;  // behind the last settled one
  std::uint64_t live = 0;                    // what that one says
  std::uint64_t end = kHeaderBytes;          // where the next record belongs
  // In front of settled_end something is no record, or records are missing. Behind it that is what
  // an interrupted run leaves.
  bool damaged = false;
};

// An open receipt. Everything blocks; reads from several threads at once are fine. Memory is
// bounded whatever the file holds.
class ReceiptReader {
 public:
  // `file` must outlive the reader. Errors as decode_header(); of a file without contents,
  // kNotFound.
  static Result<ReceiptReader> open(io::FileSystem& files, const io::FileHandle& file);

  const Header& header() const { return header_; }

  // All records that can be believed, in their order.
  Status for_each(const std::function<void(const PlacedRecord& placed)>& visit) const;
  Result<LogSummary> summarize() const;
  // The one at this offset, as for_each() gave it.
  Result<Record> at(std::uint64_t offset) const;

 private:
  // Either a record, with the offset behind it, or (null) damage at that offset.
  using Visit = std::function<void(const PlacedRecord* placed, std::uint64_t end)>;
  ReceiptReader(io::FileSystem& files, const io::FileHandle& file, const Header& header)
      : files_(&files), file_(&file), header_(header) {}
  Status scan(const Visit& visit) const;
  void scan_block(std::span<const std::byte> block, std::uint64_t offset, bool last,
                  const Visit& visit) const;

  io::FileSystem* files_;
  const io::FileHandle* file_;
  Header header_;
};

// Places paths into an index: the same for a path always, and spread evenly.
std::uint64_t path_hash(std::string_view path);

}  // namespace fgsync::receipt
