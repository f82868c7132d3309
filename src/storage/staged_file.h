// One file on its way in: written under a staging name, then published by rename.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fgsync/options.h"
#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/direct_io.h"
#include "storage/directory_tree.h"
#include "storage/metadata.h"

namespace fgsync::storage {

// Writes at different offsets may come from several threads; the rest from one at a time.
// Everything but the queries blocks. Destroying it before publish() removes the staging name.
class StagedFile {
 public:
  // Creates it, reserves room for `size` bytes where that is worth a call, and opens it for direct
  // I/O as direct_io.h says. A name that exists is kIoError (EEXIST).
  static Result<std::unique_ptr<StagedFile>> create(io::FileSystem& files,
                                                    DirectoryReference staging, std::string name,
                                                    std::uint64_t size, DirectIo direct);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  const io::FileHandle& handle() const { return handle_; }
  // Multiples of this for offset, length and memory of direct writes; 0 without direct I/O. A
  // direct write of the file's unaligned tail is rounded up; finish() cuts the file to its size.
  std::uint32_t direct_alignment() const { return direct_alignment_; }

  // Through the page cache, so not with direct I/O.
  Status write(std::span<const std::byte> bytes, std::uint64_t offset);
  // Exact size, then owner, mode, mtime.
  Status finish(const Metadata& metadata);
  Status sync();  // fsync: data and metadata durable
  // Gives the descriptor up, after finish(): the file waits for publish() by its staging name
  // alone.
  void close() { handle_.reset(); }
  const io::FileHandle& staging_directory() const { return *staging_; }
  // Renames it to its final name. A directory standing there is kIoError (EISDIR).
  Status publish(const io::FileHandle& directory, const std::string& name);

 private:
  StagedFile(io::FileSystem& files, DirectoryReference staging, std::string name,
             io::FileHandle handle, std::uint64_t size, std::uint32_t direct_alignment)
      : files_(files),
        staging_(std::move(staging)),
        name_(std::move(name)),
        handle_(std::move(handle)),
        size_(size),
        direct_alignment_(direct_alignment) {}
  io::FileSystem& files_;
  const DirectoryReference staging_;
  const std::string name_;
  io::FileHandle handle_;
  const std::uint64_t size_;
  const std::uint32_t direct_alignment_;
  bool published_ = false;
};

}  // namespace fgsync::storage
