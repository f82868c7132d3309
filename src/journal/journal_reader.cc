#include "journal/journal_reader.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/mark.h"

namespace fgsync::journal {
namespace {

// A view of the file that moves forward; holds at least one whole record.
class Window {
 public:
  Window(io::FileSystem& files, const io::FileHandle& file, std::uint64_t offset)
      : files_(files), file_(file), offset_(offset) {}

  // At least `bytes` from here on if the file has them; fewer at its end.
  Result<std::span<const std::byte>> look(std::size_t bytes) {
    if (filled_ - begin_ < bytes) {
      std::copy(buffer_.begin() + std::ptrdiff_t(begin_), buffer_.begin() + std::ptrdiff_t(filled_),
                buffer_.begin());
      filled_ -= std::exchange(begin_, 0);
      auto count = files_.read(file_, std::span(buffer_).subspan(filled_), offset_ + filled_);
      if (!count.ok()) return count.status();
      filled_ += *count;
    }
    return std::span<const std::byte>(buffer_).subspan(begin_, std::min(bytes, filled_ - begin_));
  }
  void advance(std::size_t bytes) {
    begin_ += bytes;
    offset_ += bytes;
  }
  std::uint64_t offset() const { return offset_; }

 private:
  io::FileSystem& files_;
  const io::FileHandle& file_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(2 * kRecordBytesMax);
  std::size_t begin_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t offset_;  // of buffer_[begin_] in the file
};

// The next record; kNotFound at the end of the file.
Result<Record> next_record(Window& window, const Header& header) {
  auto length = window.look(kRecordLengthBytes);
  if (!length.ok()) return length.status();
  if (length->empty()) return Status(ErrorCode::kNotFound, "no more records");
  if (length->size() < kRecordLengthBytes) return Status(ErrorCode::kIoError, "a torn length");
  const std::size_t bytes = record_body_bytes(*length) + kRecordFixedBytes;
  auto whole = window.look(bytes);
  if (!whole.ok()) return whole.status();
  Result<Record> record = decode_record(*whole, header, window.offset());
  if (record.ok()) window.advance(bytes);
  return record;
}

Result<io::FileHandle> open(io::FileSystem& files, const io::FileHandle& staging) {
  return files.open_file(staging, kJournalName, io::OpenMode::kRead);
}

Result<Header> read_header(io::FileSystem& files, const io::FileHandle& file) {
  std::array<std::byte, kHeaderBytes> bytes{};
  auto count = files.read(file, bytes, 0);
  if (!count.ok()) return count.status();
  return decode_header(std::span(bytes).first(*count));
}

}  // namespace

Result<Header> load_header(io::FileSystem& files, const io::FileHandle& staging) {
  auto file = open(files, staging);
  if (!file.ok()) return file.status();
  return read_header(files, *file);
}

Result<LoadedJournal> load(io::FileSystem& files, const io::FileHandle& staging) {
  auto file = open(files, staging);
  if (!file.ok()) return file.status();
  auto status = files.stat(*file);
  if (!status.ok()) return status.status();
  auto header = read_header(files, *file);
  if (!header.ok()) return header.status();

  LoadedJournal journal;
  journal.header = *header;
  journal.written = status->mtime;
  Window window(files, *file, kHeaderBytes);
  journal.good_bytes = kHeaderBytes;
  while (true) {
    Result<Record> record = next_record(window, *header);
    if (!record.ok()) break;  // the end, or a place from which on nothing can be believed
    if (!journal.state.apply(std::move(*record)).ok()) break;
    journal.good_bytes = window.offset();
  }
  journal.bytes_cut = status->size > journal.good_bytes ? status->size - journal.good_bytes : 0;
  if (journal.bytes_cut > 0) mark("journal_cut");
  return journal;
}

}  // namespace fgsync::journal
