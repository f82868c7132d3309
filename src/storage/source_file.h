// A source file being read: notices when it changes under the reader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fgsync/options.h"
#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/direct_io.h"

namespace fgsync::storage {

// What the walk saw of a file, and what it must still be when it is read.
struct SourceIdentity {
  std::uint64_t size = 0;
  io::FileTime mtime;
  // Asked only of files that an earlier run has sent in part: nothing of another version may be
  // mixed in, even where size and mtime are the same.
  std::optional<io::FileTime> ctime = std::nullopt;
  std::optional<std::uint64_t> inode = std::nullopt;
};

// Open for reading; reads from several threads at once are fine. Everything blocks: call it inside
// a blocking job.
class SourceFile {
 public:
  // kSourceChanged when it vanished, is no regular file any more, or differs from what the walk
  // saw; other codes when it cannot be opened. Direct I/O is used as direct_io.h says.
  static Result<std::unique_ptr<SourceFile>> open(io::FileSystem& files,
                                                  const io::FileHandle& directory,
                                                  const std::string& name,
                                                  const SourceIdentity& expected, DirectIo direct);

  const io::FileHandle& handle() const { return handle_; }
  bool is_direct() const { return direct_alignment_ != 0; }
  // Offsets, lengths and memory of direct reads must be multiples of this; 0 without direct I/O.
  std::uint32_t direct_alignment() const { return direct_alignment_; }
  std::uint64_t size() const { return opened_.size; }
  // Whether read() may wait for a device; not asked for files that may travel packed.
  bool may_block() const { return !in_memory_; }

  // Exactly bytes.size() bytes at offset, through the page cache (so not of a file that
  // is_direct()); kSourceChanged when the file has become shorter.
  Status read(std::span<std::byte> bytes, std::uint64_t offset) const;
  // After the last read: kSourceChanged when size, mtime or ctime are not what they were at opening
  // (a write moves the ctime even where the mtime is put back).
  Status check_unchanged() const;

 private:
  SourceFile(io::FileSystem& files, OpenedFile file, const io::FileStatus& opened)
      : files_(files),
        handle_(std::move(file.handle)),
        opened_(opened),
        direct_alignment_(file.direct_alignment),
        in_memory_(file.in_memory) {}
  io::FileSystem& files_;
  const io::FileHandle handle_;
  const io::FileStatus opened_;
  const std::uint32_t direct_alignment_;
  const bool in_memory_;
};

}  // namespace fgsync::storage
