// The digest of a file as it is on the disk, for comparing it: read past the page cache where that
// is possible, a large file by several lanes at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/io.h"
#include "memory/buffer_pool.h"
#include "storage/directory_tree.h"
#include "storage/source_file.h"
#include "transport/stage_meter.h"
#include "wire/checksum.h"

namespace fgsync::transfer {

// Where a file stands and what is known of it.
struct FilePlace {
  std::shared_ptr<storage::DirectoryTree> directories;
  std::uint64_t directory = 0;
  std::string name;
  storage::SourceIdentity identity;
};

// Of all files that are read.
struct Reading {
  explicit Reading(transport::StageMeter& stage_meter) : meter(stage_meter) {}
  transport::StageMeter& meter;   // Stage::kRead, summing included
  std::atomic<bool> stop{false};  // no further chunk is begun
};

// One reading of one file. kSourceChanged when it is not what its identity says, before or after.
class FileDigest {
 public:
  // The digest is made of chunks of this length, as protocol.md has it.
  FileDigest(io::FileSystem& files, FilePlace place, std::uint32_t chunk_bytes);

  std::uint64_t size() const { return place_.identity.size; }
  // A file of one chunk is read by one lane.
  std::uint64_t chunks() const { return chunks_; }

  // All of a small file, with a buffer of any length. Blocks.
  Result<wire::Checksum> read_whole(std::span<std::byte> buffer);

  // One lane's share: chunk after chunk until none is left. The lane that ends the file gets the
  // digest, or why there is none; the others, and one that comes when nothing is left, nullopt.
  io::Task<std::optional<Result<wire::Checksum>>> read_share(io::Io* io, Buffer* buffer,
                                                             Reading* reading);

 private:
  using SharedSource = std::shared_ptr<const storage::SourceFile>;
  Result<SharedSource> open();
  std::optional<std::uint64_t> take_chunk(const Reading& reading);
  std::optional<Result<wire::Checksum>> settle_chunk(std::uint64_t chunk,
                                                     const Result<wire::Checksum>& checksum);
  Result<wire::Checksum> finish();  // under mutex_
  io::Task<Result<wire::Checksum>> sum_chunk(io::Io* io, std::uint64_t chunk, Buffer* buffer,
                                             Reading* reading);
  static io::Task<Status> read_piece(io::Io* io, const storage::SourceFile* source,
                                     std::uint64_t offset, std::size_t length, Buffer* buffer);
  std::uint64_t chunk_length(std::uint64_t chunk) const;

  io::FileSystem& files_;
  const FilePlace place_;
  const std::uint32_t chunk_bytes_;
  const std::uint64_t chunks_;
  std::mutex mutex_;
  SharedSource source_;                              // guarded by mutex_
  Status failure_;                                   // guarded by mutex_
  std::uint64_t next_chunk_ = 0;                     // guarded by mutex_; to be taken
  std::uint64_t taken_ = 0;                          // guarded by mutex_; and not settled
  std::uint64_t summed_ = 0;                         // guarded by mutex_; chunks in sum_
  wire::ChecksumStream sum_;                         // guarded by mutex_; of their checksums
  std::map<std::uint64_t, wire::Checksum> waiting_;  // guarded by mutex_; for one before them
  wire::Checksum first_;                             // guarded by mutex_
};

}  // namespace fgsync::transfer
