// What went wrong or differs, notes, figures; and giving up.
#include <cmath>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/message_codec.h"

namespace fgsync::wire {
namespace {

constexpr std::size_t kErrorBytesMin = 4 + 1 + 4;
constexpr std::size_t kNoteBytesMin = 4;
constexpr std::size_t kDifferenceBytesMin = 1 + 4 + 4;
// Times go over in microseconds, at most 2^50 of them (35 years): so far a double holds them
// exactly, and seconds made of them give the same number again.
constexpr std::uint64_t kMicrosecondsMax = std::uint64_t{1} << 50;

// Error codes are numbers of the protocol: append, never reorder.
static_assert(std::uint8_t(ErrorCode::kInvalidArgument) == 1);
static_assert(std::uint8_t(ErrorCode::kProtocolError) == 8);
static_assert(std::uint8_t(ErrorCode::kRemoteShellFailed) == 19);
static_assert(std::uint8_t(kLastErrorCode) == 20);
// So are the kinds of differences.
static_assert(std::uint8_t(DifferenceKind::kMissing) == 1);
static_assert(std::uint8_t(DifferenceKind::kContents) == 6);
// So are the stages' places in a summary.
static_assert(kStageCount == 9 && std::size_t(Stage::kSync) == 8);

void write_seconds(ByteWriter& writer, double seconds) {
  const double microseconds = seconds * 1e6;
  if (!(microseconds > 0)) {  // also what is not a number
    writer.u64(0);
  } else if (microseconds >= double(kMicrosecondsMax)) {
    writer.u64(kMicrosecondsMax);
  } else {
    writer.u64(std::uint64_t(std::llround(microseconds)));
  }
}

double read_seconds(ByteReader& reader) {
  return double(reader.ranged(reader.u64(), 0, kMicrosecondsMax, "time out of bounds")) / 1e6;
}

void write_error(ByteWriter& writer, const ErrorEntry& error) {
  FGSYNC_ASSERT(error.code != ErrorCode::kOk);
  writer.text(error.path, limits::kErrorTextBytesMax);
  writer.u8(std::uint8_t(error.code));
  writer.text(error.message, limits::kErrorTextBytesMax);
}

ErrorEntry read_error(ByteReader& reader) {
  ErrorEntry error;
  error.path = reader.string(limits::kErrorTextBytesMax);
  error.code = reader.enumerator(ErrorCode::kInvalidArgument, kLastErrorCode);
  error.message = reader.string(limits::kErrorTextBytesMax);
  return error;
}

// The counters of the two groups in the order in which they travel, for writing and for reading.
template <typename Figures>
auto file_counters(Figures& files) {
  return std::array{&files.total,   &files.sent,   &files.unchanged, &files.linked,
                    &files.deleted, &files.failed, &files.vanished};
}
template <typename Figures>
auto byte_counters(Figures& bytes) {
  return std::array{&bytes.total, &bytes.sent, &bytes.resumed, &bytes.unchanged, &bytes.wire};
}

void write_side(ByteWriter& writer, const SideFigures& figures) {
  for (const StageFigures& stage : figures.stages) {
    write_seconds(writer, stage.busy_seconds);
    writer.u64(stage.bytes);
  }
  write_seconds(writer, figures.cpu_seconds);
  writer.u32(figures.cores);
  writer.u64(figures.peak_memory_bytes);
}

SideFigures read_side(ByteReader& reader) {
  SideFigures figures;
  for (StageFigures& stage : figures.stages) {
    stage.busy_seconds = read_seconds(reader);
    stage.bytes = reader.u64();
  }
  figures.cpu_seconds = read_seconds(reader);
  figures.cores = reader.u32();
  figures.peak_memory_bytes = reader.u64();
  return figures;
}

}  // namespace

void write_body(ByteWriter& writer, const Summary& body) {
  write_side(writer, body.figures);
  for (const std::uint64_t* counter : file_counters(body.files)) writer.u64(*counter);
  for (const std::uint64_t* counter : byte_counters(body.bytes)) writer.u64(*counter);
  writer.bytes(body.digest.bytes);
  writer.u64(body.errors_total);
}

template <>
Summary read_body<Summary>(ByteReader& reader) {
  Summary body;
  body.figures = read_side(reader);
  for (std::uint64_t* counter : file_counters(body.files)) *counter = reader.u64();
  for (std::uint64_t* counter : byte_counters(body.bytes)) *counter = reader.u64();
  body.digest = reader.checksum();
  body.errors_total = reader.u64();
  return body;
}

void write_body(ByteWriter& writer, const ErrorBatch& body) {
  FGSYNC_ASSERT(body.errors.size() <= limits::kErrorBatchEntries);
  write_list(writer, body.errors, write_error);
}

template <>
ErrorBatch read_body<ErrorBatch>(ByteReader& reader) {
  return ErrorBatch{read_list(reader, limits::kErrorBatchEntries, kErrorBytesMin, read_error)};
}

void write_body(ByteWriter& writer, const DifferenceBatch& body) {
  FGSYNC_ASSERT(body.differences.size() <= limits::kErrorBatchEntries);
  write_list(writer, body.differences, [](ByteWriter& out, const Difference& difference) {
    FGSYNC_ASSERT(difference.kind <= DifferenceKind::kContents);
    out.u8(std::uint8_t(difference.kind));
    out.text(difference.path, limits::kErrorTextBytesMax);
    out.text(difference.detail, limits::kErrorTextBytesMax);
  });
}

template <>
DifferenceBatch read_body<DifferenceBatch>(ByteReader& reader) {
  const auto read_difference = [](ByteReader& in) {
    Difference difference;
    difference.kind = in.enumerator(DifferenceKind::kMissing, DifferenceKind::kContents);
    difference.path = in.string(limits::kErrorTextBytesMax);
    difference.detail = in.string(limits::kErrorTextBytesMax);
    return difference;
  };
  return DifferenceBatch{
      read_list(reader, limits::kErrorBatchEntries, kDifferenceBytesMin, read_difference)};
}

void write_body(ByteWriter& writer, const NoteBatch& body) {
  FGSYNC_ASSERT(body.notes.size() <= limits::kNoteBatchEntries);
  write_list(writer, body.notes, [](ByteWriter& out, const std::string& note) {
    out.text(note, limits::kErrorTextBytesMax);
  });
}

template <>
NoteBatch read_body<NoteBatch>(ByteReader& reader) {
  return NoteBatch{read_list(reader, limits::kNoteBatchEntries, kNoteBytesMin,
                             [](ByteReader& in) { return in.string(limits::kErrorTextBytesMax); })};
}

void write_body(ByteWriter& writer, const Abort& body) { write_error(writer, body.error); }

template <>
Abort read_body<Abort>(ByteReader& reader) {
  return Abort{read_error(reader)};
}

}  // namespace fgsync::wire
