// One file or symlink on its way in: made under a staging name, then published by rename.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "fgsync/options.h"
#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/direct_io.h"
#include "storage/directory_tree.h"
#include "storage/metadata.h"

namespace fgsync::storage {

// Writes at different offsets may come from several threads, sync_data() beside them; the rest from
// one at a time. Everything but the queries blocks. Destroying it before publish() removes the
// staging name, unless keep() was called.
class StagedFile {
 public:
  // Creates it, reserves room for `size` bytes where that is worth a call, and opens it for direct
  // I/O as direct_io.h says. A name that exists is kIoError (EEXIST).
  static Result<std::unique_ptr<StagedFile>> create(io::FileSystem& files,
                                                    DirectoryReference staging, std::string name,
                                                    std::uint64_t size, DirectIo direct);
  // Opens one that an earlier run has kept. kIoError when it is not a regular file of at least
  // this size.
  static Result<std::unique_ptr<StagedFile>> reopen(io::FileSystem& files,
                                                    DirectoryReference staging, std::string name,
                                                    std::uint64_t size, DirectIo direct);
  // A symlink has no contents and no descriptor: it only waits for publish().
  static Result<std::unique_ptr<StagedFile>> create_symlink(io::FileSystem& files,
                                                            DirectoryReference staging,
                                                            std::string name,
                                                            const std::string& target,
                                                            const Metadata& metadata);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  const io::FileHandle& handle() const { return handle_; }
  const std::string& name() const { return name_; }
  // Multiples of this for offset, length and memory of direct writes; 0 without direct I/O. A
  // direct write of the file's unaligned tail is rounded up; finish() cuts the file to its size.
  std::uint32_t direct_alignment() const { return direct_alignment_; }

  // Whether write() may wait for a device; not asked for files that may travel packed.
  bool may_block() const { return !in_memory_; }

  // Through the page cache, so not with direct I/O.
  Status write(std::span<const std::byte> bytes, std::uint64_t offset);
  // Exact size, then owner, mode, mtime.
  Status finish(const Metadata& metadata);
  // fsync: data and metadata durable. Fails for good once sync_data() has failed: the kernel tells
  // of a lost page only once.
  Status sync();
  // fdatasync. Any thread, beside everything else; of a closed file nothing is left to do.
  Status sync_data();
  // It stays under its staging name for a later run.
  void keep() { kept_ = true; }
  // Gives the descriptor up, after finish(): the file waits for publish() by its staging name
  // alone.
  void close();
  // After sync(): handle() reads, through the page cache, what the disk has.
  Status open_for_reading();
  const DirectoryReference& staging_directory() const { return staging_; }
  // Renames it to its final name. A directory standing there is kIoError (EISDIR).
  Status publish(const io::FileHandle& directory, const std::string& name);

 private:
  StagedFile(io::FileSystem& files, DirectoryReference staging, std::string name, OpenedFile file,
             std::uint64_t size)
      : files_(files),
        staging_(std::move(staging)),
        name_(std::move(name)),
        handle_(std::move(file.handle)),
        size_(size),
        direct_alignment_(file.direct_alignment),
        in_memory_(file.in_memory) {}
  io::FileSystem& files_;
  const DirectoryReference staging_;
  const std::string name_;
  io::FileHandle handle_;
  const std::uint64_t size_;
  const std::uint32_t direct_alignment_;
  const bool in_memory_;
  std::mutex sync_mutex_;
  Status sync_failure_;  // guarded by sync_mutex_
  bool published_ = false;
  bool kept_ = false;
};

}  // namespace fgsync::storage
