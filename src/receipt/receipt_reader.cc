#include "receipt/receipt_reader.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "wire/byte_reader.h"

namespace fgsync::receipt {
namespace {

constexpr std::size_t kBlocksPerRead = 8;
// Nearly every record: a longer one is read again, whole.
constexpr std::size_t kShortRecordBytes = 512;

}  // namespace

std::uint64_t path_hash(std::string_view path) {
  const wire::Checksum checksum = wire::checksum_of(std::as_bytes(std::span(path)));
  return wire::load_little_endian(std::span(checksum.bytes).first<8>());
}

Result<ReceiptReader> ReceiptReader::open(io::FileSystem& files, const io::FileHandle& file) {
  std::array<std::byte, kHeaderBytes> bytes{};
  auto count = files.read(file, bytes, 0);
  if (!count.ok()) return count.status();
  // A crash can leave a new one as zeros.
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  if (std::all_of(bytes.begin(), bytes.begin() + std::ptrdiff_t(*count), is_zero)) {
    return Status(ErrorCode::kNotFound, "it is empty");
  }
  Result<Header> header = decode_header(std::span(bytes).first(*count));
  if (!header.ok()) return header.status();
  return ReceiptReader(files, file, *header);
}

Status ReceiptReader::scan(const Visit& visit) const {
  std::vector<std::byte> buffer(kBlocksPerRead * kBlockBytes);
  for (std::uint64_t start = 0;; start += buffer.size()) {
    auto count = files_->read(*file_, buffer, start);
    if (!count.ok()) return count.status();
    const bool last = *count < buffer.size();
    for (std::size_t at = start == 0 ? kHeaderBytes : 0; at < *count;) {
      const std::size_t end = std::min(*count, (at / kBlockBytes + 1) * kBlockBytes);
      const auto block = std::span<const std::byte>(buffer).subspan(at, end - at);
      scan_block(block, start + at, last && end == *count, visit);
      at = end;
    }
    if (last) return Status();
  }
}

void ReceiptReader::scan_block(std::span<const std::byte> block, std::uint64_t offset, bool last,
                               const Visit& visit) const {
  BlockCursor cursor(block, header_, offset);
  while (const auto placed = cursor.next()) visit(&*placed, cursor.offset());
  if (!cursor.is_damaged()) return;
  visit(nullptr, cursor.offset());
  // Where the last run ended well, the log ends with a settled record: so damage in front of it is
  // told apart from a torn tail, in a receipt of one block too.
  const std::uint64_t end = offset + block.size();
  if (!last || end - cursor.offset() < kSettledRecordBytes) return;
  const std::uint64_t at = end - kSettledRecordBytes;
  Result<Record> record = decode_record(block.last(kSettledRecordBytes), header_, at);
  if (!record.ok() || !std::holds_alternative<SettledRecord>(*record)) return;
  const PlacedRecord placed{at, std::move(*record)};
  visit(&placed, end);
}

Status ReceiptReader::for_each(const std::function<void(const PlacedRecord& placed)>& visit) const {
  return scan([&visit](const PlacedRecord* placed, std::uint64_t) {
    if (placed != nullptr) visit(*placed);
  });
}

Result<LogSummary> ReceiptReader::summarize() const {
  LogSummary summary;
  std::uint64_t damage = 0;  // where the last one begins; no record stands at 0
  const Status read = scan([&](const PlacedRecord* placed, std::uint64_t end) {
    if (placed == nullptr) {
      damage = end;
      return;
    }
    // Behind damage nothing would be found before the next block.
    const std::uint64_t block_end = (placed->offset / kBlockBytes + 1) * kBlockBytes;
    const bool in_damaged_block = damage != 0 && damage >= block_end - kBlockBytes;
    summary.end = in_damaged_block ? block_end : end;
    const auto* settled = std::get_if<SettledRecord>(&placed->record);
    if (settled == nullptr) {
      ++summary.records;
      ++summary.unsettled;
      return;
    }
    // Blocks that became zero look like the end of a block; the count tells.
    summary.damaged = summary.damaged || damage != 0 || settled->records != summary.records;
    summary.settled_end = end;
    summary.live = settled->live;
    summary.unsettled = 0;
  });
  if (!read.ok()) return read;
  return summary;
}

Result<Record> ReceiptReader::at(std::uint64_t offset) const {
  std::vector<std::byte> bytes(kShortRecordBytes);
  while (true) {
    auto count = files_->read(*file_, bytes, offset);
    if (!count.ok()) return count.status();
    Result<Record> record = decode_record(std::span(bytes).first(*count), header_, offset);
    if (record.ok() || *count < bytes.size() || bytes.size() >= kRecordBytesMax) return record;
    bytes.resize(kRecordBytesMax);
  }
}

}  // namespace fgsync::receipt
