// Appends to the journal of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "journal/journal_format.h"
#include "journal/journal_reader.h"

namespace fgsync::journal {

// Not thread-safe. Everything blocks.
class JournalWriter {
 public:
  // A new journal, in place of whatever has its name in the staging directory.
  static Result<std::unique_ptr<JournalWriter>> create(io::FileSystem& files,
                                                       const io::FileHandle& staging,
                                                       const Header& header);
  // Goes on with one that was loaded; what followed its good records is cut off first.
  static Result<std::unique_ptr<JournalWriter>> go_on(io::FileSystem& files,
                                                      const io::FileHandle& staging,
                                                      const LoadedJournal& loaded);

  // In one write, so that a crash leaves whole records and at most one torn one. After a failure
  // nothing more must be appended: what is on the disk is not known any more.
  Status append(std::span<const Record> records);
  // Makes everything that was appended durable.
  Status sync();

 private:
  JournalWriter(io::FileSystem& files, io::FileHandle file, const Header& header,
                std::uint64_t offset)
      : files_(files), file_(std::move(file)), header_(header), offset_(offset) {}

  io::FileSystem& files_;
  const io::FileHandle file_;
  const Header header_;
  std::uint64_t offset_;
};

}  // namespace fgsync::journal
