// A journal's header and records as hostile bytes: what is accepted is exactly what encode() makes,
// and what records say in any order leaves a state within its bounds.
#include <algorithm>

#include "base/assert.h"
#include "fuzz/fuzz_target.h"
#include "journal/journal_format.h"
#include "journal/record_samples.h"
#include "journal/resume_state.h"

namespace {

namespace journal = fgsync::journal;
namespace wire = fgsync::wire;

// The checksum would stop nearly every mutation: it is made right again, so that bodies are read.
std::vector<std::byte> with_right_checksum(std::span<const std::byte> bytes,
                                           const journal::Header& header) {
  std::vector<std::byte> record(bytes.begin(), bytes.end());
  if (record.size() < journal::kRecordFixedBytes) return record;
  const auto place = std::span(record).last(wire::kChecksumBytes);
  std::vector<std::byte> covered(header.salt.begin(), header.salt.end());
  covered.insert(covered.end(), 8, std::byte{0});  // the offset
  covered.insert(covered.end(), record.begin(), record.end() - wire::kChecksumBytes);
  std::ranges::copy(wire::checksum_of(covered).bytes, place.begin());
  return record;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t length) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(input, length));
  const auto header = journal::decode_header(bytes);
  if (header.ok()) FGSYNC_ASSERT(journal::encode(*header).size() == bytes.size());

  const journal::Header sample = journal::sample_header();
  const std::vector<std::byte> whole = with_right_checksum(bytes, sample);
  auto record = journal::decode_record(whole, sample, 0);
  if (!record.ok()) {
    FGSYNC_ASSERT(record.status().code() == fgsync::ErrorCode::kIoError);
    return 0;
  }
  std::vector<std::byte> again;
  journal::encode(*record, sample, 0, again);
  FGSYNC_ASSERT(std::ranges::equal(again, whole));
  journal::ResumeState state;
  (void)state.apply(journal::sample_begin());
  (void)state.apply(std::move(*record));
  return 0;
}

std::vector<std::vector<std::byte>> fgsync::fuzz::valid_samples() {
  std::vector<std::vector<std::byte>> samples = {journal::encode(journal::sample_header())};
  for (const journal::Record& record : journal::sample_records()) {
    samples.emplace_back();
    journal::encode(record, journal::sample_header(), 0, samples.back());
  }
  return samples;
}
