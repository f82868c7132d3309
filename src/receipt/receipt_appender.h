// Writes records behind each other, in pieces large enough for a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "receipt/receipt_format.h"

namespace fgsync::receipt {

// Not thread-safe. Blocks.
class ReceiptAppender {
 public:
  // Goes on at `offset` of the file.
  ReceiptAppender(io::FileSystem& files, const io::FileHandle& file, const Header& header,
                  std::uint64_t offset)
      : files_(files), file_(file), header_(header), offset_(offset) {}

  Status add(const Record& record) {
    encode(record, header_, end(), pending_);
    return pending_.size() < kPieceBytes ? Status() : flush();
  }
  // What was added is in the file when this has returned. After a failure it is not known what is.
  Status flush() {
    FGSYNC_RETURN_IF_ERROR(files_.write(file_, pending_, offset_));
    offset_ += pending_.size();
    pending_.clear();
    return Status();
  }
  // Behind what was added.
  std::uint64_t end() const { return offset_ + pending_.size(); }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  io::FileSystem& files_;
  const io::FileHandle& file_;
  const Header header_;
  std::uint64_t offset_;
  std::vector<std::byte> pending_;
};

}  // namespace fgsync::receipt
