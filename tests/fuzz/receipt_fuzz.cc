// The receipt: what decodes encodes to the same bytes again, whether the bytes are a log or (sealed
// anew, so that the checksum lets them pass) the body of one record.
#include <algorithm>

#include "base/assert.h"
#include "fuzz/fuzz_target.h"
#include "receipt/receipt_format.h"
#include "wire/byte_writer.h"
#include "wire/frame.h"

namespace fgsync::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

constexpr receipt::Header kHeader = {.salt = 0x5eed};

void check_same(std::span<const std::byte> bytes, const receipt::Record& record,
                std::uint64_t offset) {
  Bytes again;
  receipt::encode(record, kHeader, offset, again);
  FGSYNC_ASSERT(std::ranges::equal(again, bytes));
}

void check_log(std::span<const std::byte> bytes) {
  if (bytes.size() > receipt::kBlockBytes) return;
  receipt::BlockCursor cursor(bytes, kHeader, 0);
  while (const auto placed = cursor.next()) {
    FGSYNC_ASSERT(cursor.offset() <= bytes.size() && placed->offset < cursor.offset());
    check_same(bytes.subspan(placed->offset, cursor.offset() - placed->offset), placed->record,
               placed->offset);
  }
  FGSYNC_ASSERT(!cursor.next());
  (void)receipt::decode_header(bytes);
  (void)receipt::decode_header(bytes.first(std::min(bytes.size(), receipt::kHeaderBytes)));
}

void check_body(std::span<const std::byte> body) {
  constexpr std::uint64_t kOffset = receipt::kBlockBytes;
  wire::ByteWriter writer;
  writer.u32(std::uint32_t(body.size()));
  writer.bytes(body);
  const auto checksum = wire::checksum_of(writer.written());
  writer.bytes(wire::bind_checksum(checksum, kHeader.salt, kOffset).bytes);
  const auto record = receipt::decode_record(writer.written(), kHeader, kOffset);
  if (record.ok()) check_same(writer.written(), *record, kOffset);
}

}  // namespace

std::vector<Bytes> valid_samples() {
  const std::vector<receipt::Record> records = {
      receipt::FileRecord{.path = "a/b\n\xff",
                          .size = 77,
                          .mtime = {1'700'000'000, 123},
                          .chunk_bytes = 1 << 20,
                          .digest = wire::checksum_of({})},
      receipt::GoneRecord{"c"}, receipt::SettledRecord{2, 1}};
  std::vector<Bytes> samples = {receipt::encode(kHeader)};
  Bytes log;
  for (const receipt::Record& record : records) {
    const std::size_t begin = log.size();
    receipt::encode(record, kHeader, begin, log);
    // The body alone.
    samples.emplace_back(log.begin() + std::ptrdiff_t(begin + receipt::kRecordLengthBytes),
                         log.end() - std::ptrdiff_t(wire::kChecksumBytes));
  }
  samples.push_back(log);
  return samples;
}

}  // namespace fgsync::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t length) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(input, length));
  fgsync::fuzz::check_log(bytes);
  if (length <= fgsync::receipt::kRecordBytesMax) fgsync::fuzz::check_body(bytes);
  return 0;
}
