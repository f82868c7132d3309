// A regular file that the receiver asked for, while its contents are read and sent.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "storage/source_file.h"
#include "transfer/source_tree.h"
#include "wire/checksum.h"
#include "wire/message.h"

namespace fgsync::transfer {

// Chunks of one file are read by several lanes at once: thread-safe. What opens, reads or checks
// blocks: call it inside a blocking job.
class OutgoingFile {
 public:
  // `directory` and `name` are the file's place in `tree`; `held` what the receiver has of it,
  // within its chunks.
  OutgoingFile(std::uint64_t id, const SourceTree& tree, std::uint64_t directory, std::string name,
               storage::SourceIdentity identity, std::uint32_t chunk_bytes,
               const std::vector<wire::HeldChunks>& held = {});

  std::uint64_t id() const { return id_; }
  std::uint64_t size() const { return identity_.size; }
  // What need not be sent.
  std::uint64_t held_bytes() const { return held_bytes_; }
  // The first chunk at or behind the offset that must be sent; the size if there is none.
  std::uint64_t next_missing(std::uint64_t offset) const;
  std::string display_path() const { return tree_.display_path(directory_, name_); }

  // Opens it if no lane has done so yet. The file stays open until the last chunk is settled.
  Result<std::shared_ptr<const storage::SourceFile>> open(io::FileSystem& files, DirectIo direct);
  // Null when it is not open; does not block.
  std::shared_ptr<const storage::SourceFile> opened() const;

  // It will not be published; the reason has been noted. True for the first who says so.
  bool withdraw();
  bool is_withdrawn() const;

  // A chunk has been sent, or given up because the file is withdrawn. True for the last one.
  bool settle_chunk(std::uint64_t offset, const wire::Checksum& checksum);
  // A chunk that was settled before has been read and sent again; true as it was for the last one.
  bool settle_chunk_again() const;
  // Whether a chunk that was settled before has still this checksum.
  bool is_same(std::uint64_t offset, const wire::Checksum& checksum) const;
  // After the last chunk: that the source is still what it was, then closes it.
  Status check_and_close();
  // What the receiver must be told of the file now: its digest when all of it has been read, once;
  // or that it is withdrawn, once, also after its digest.
  std::optional<wire::FileEnd> last_word();
  // For a file that travels in a pack: its contents have been read.
  void set_digest(const wire::Checksum& digest);
  // Digest of the contents once all of them have been read; nullopt before.
  std::optional<wire::Checksum> digest() const;

 private:
  const std::uint64_t id_;
  const SourceTree& tree_;
  const std::uint64_t directory_;
  const std::string name_;
  const storage::SourceIdentity identity_;
  const std::uint32_t chunk_bytes_;
  std::vector<bool> held_;  // by chunk; empty if nothing is held
  std::uint64_t held_bytes_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<const storage::SourceFile> source_;  // guarded by mutex_
  std::vector<wire::Checksum> checksums_;        // guarded by mutex_; sized with the first chunk
  std::uint64_t chunks_left_;                    // guarded by mutex_
  bool withdrawn_ = false;                       // guarded by mutex_
  bool told_digest_ = false;                     // guarded by mutex_
  bool told_withdrawn_ = false;                  // guarded by mutex_
  std::optional<wire::Checksum> packed_digest_;  // guarded by mutex_
};

}  // namespace fgsync::transfer
