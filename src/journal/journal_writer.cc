#include "journal/journal_writer.h"

#include <cerrno>
#include <utility>

namespace fgsync::journal {

Result<std::unique_ptr<JournalWriter>> JournalWriter::create(io::FileSystem& files,
                                                             const io::FileHandle& staging,
                                                             const Header& header) {
  const Status removed = files.unlink(staging, kJournalName);
  if (!removed.ok() && removed.system_errno() != ENOENT) return removed;
  auto file = files.open_file(staging, kJournalName, io::OpenMode::kCreate);
  if (!file.ok()) return file.status();
  const std::vector<std::byte> bytes = encode(header);
  FGSYNC_RETURN_IF_ERROR(files.write(*file, bytes, 0));
  return std::unique_ptr<JournalWriter>(
      new JournalWriter(files, std::move(*file), header, bytes.size()));
}

Result<std::unique_ptr<JournalWriter>> JournalWriter::go_on(io::FileSystem& files,
                                                            const io::FileHandle& staging,
                                                            const LoadedJournal& loaded) {
  auto file = files.open_file(staging, kJournalName, io::OpenMode::kUpdate);
  if (!file.ok()) return file.status();
  if (loaded.bytes_cut > 0) FGSYNC_RETURN_IF_ERROR(files.truncate(*file, loaded.good_bytes));
  return std::unique_ptr<JournalWriter>(
      new JournalWriter(files, std::move(*file), loaded.header, loaded.good_bytes));
}

Status JournalWriter::append(std::span<const Record> records) {
  std::vector<std::byte> bytes;
  for (const Record& record : records) encode(record, header_, offset_ + bytes.size(), bytes);
  FGSYNC_RETURN_IF_ERROR(files_.write(file_, bytes, offset_));
  offset_ += bytes.size();
  return Status();
}

Status JournalWriter::sync() { return files_.sync_data(file_); }

}  // namespace fgsync::journal
