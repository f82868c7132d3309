#include "transfer/workshop_record.h"

#include <array>
#include <cerrno>
#include <string_view>

#include "wire/byte_reader.h"
#include "wire/byte_writer.h"

namespace fgsync::transfer {
namespace {

constexpr const char* kNewName = "base.new";
constexpr std::string_view kMagic = "fgsync-t";
constexpr std::size_t kBodyBytes = 8 + wire::kChecksumBytes + 4 * 8 + 8 + 4;

std::vector<std::byte> encode(const WorkshopRecord& base) {
  wire::ByteWriter writer;
  writer.bytes(std::as_bytes(std::span(kMagic)));
  writer.bytes(base.transfer.bytes);
  writer.u64(base.new_inode);
  writer.u64(base.old_inode);
  writer.u64(base.receipt_inode);
  writer.u64(base.receipt_size);
  writer.i64(base.receipt_mtime.seconds);
  writer.u32(base.receipt_mtime.nanoseconds);
  const wire::Checksum checksum = wire::checksum_of(writer.written());
  writer.bytes(checksum.bytes);
  return writer.take();
}

Result<WorkshopRecord> decode(std::span<const std::byte> bytes) {
  wire::ByteReader reader(bytes);
  const std::span<const std::byte> magic = reader.bytes(kMagic.size());
  reader.require(std::ranges::equal(magic, std::as_bytes(std::span(kMagic))), "another format");
  WorkshopRecord base;
  base.transfer = reader.checksum();
  base.new_inode = reader.u64();
  base.old_inode = reader.u64();
  base.receipt_inode = reader.u64();
  base.receipt_size = reader.u64();
  base.receipt_mtime.seconds = reader.i64();
  base.receipt_mtime.nanoseconds = reader.u32();
  reader.require(
      reader.checksum() == wire::checksum_of(bytes.first(std::min(bytes.size(), kBodyBytes))),
      "its checksum differs");
  FGSYNC_RETURN_IF_ERROR(reader.finish("base of a new tree"));
  return base;
}

}  // namespace

Result<WorkshopRecord> load_base(io::FileSystem& files, const io::FileHandle& workshop) {
  auto file = files.open_file(workshop, kBaseName, io::OpenMode::kRead);
  if (!file.ok()) return file.status();
  std::array<std::byte, kBodyBytes + wire::kChecksumBytes + 1> bytes{};
  auto count = files.read(*file, bytes, 0);
  if (!count.ok()) return count.status();
  return decode(std::span(bytes).first(*count));
}

Status store_base(io::FileSystem& files, const io::FileHandle& workshop, const WorkshopRecord& base,
                  bool durable) {
  Status cleared = files.unlink(workshop, kNewName);
  if (!cleared.ok() && cleared.system_errno() != ENOENT) return cleared;
  auto file = files.open_file(workshop, kNewName, io::OpenMode::kCreate);
  if (!file.ok()) return file.status();
  FGSYNC_RETURN_IF_ERROR(files.write(*file, encode(base), 0));
  if (durable) FGSYNC_RETURN_IF_ERROR(files.sync(*file));
  FGSYNC_RETURN_IF_ERROR(files.rename(workshop, kNewName, workshop, kBaseName));
  return durable ? files.sync(workshop) : Status();
}

}  // namespace fgsync::transfer
