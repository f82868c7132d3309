// Files that the receiver has asked for and that are not settled yet.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "io/sync.h"
#include "storage/staged_file.h"
#include "transfer/space_check.h"
#include "wire/checksum.h"
#include "wire/message.h"

namespace fgsync::transfer {

// One file on its way in. Its chunks come on any stream; `mutex` guards everything that changes.
struct IncomingFile {
  explicit IncomingFile(wire::ManifestEntry manifest_entry, bool marker = false)
      : entry(std::move(manifest_entry)), is_marker(marker) {}

  // With `failed`, under the lock: only the number is needed from then on, for what still comes.
  void forget() {
    staged.reset();
    room = {};
    checksums = {};
    claimed = {};
  }

  const wire::ManifestEntry entry;
  const bool is_marker;          // published after all else
  EntryDifferences differences;  // set before anybody else knows the file
  io::AsyncMutex writing;        // held by the one chunk that goes through the page cache
  std::mutex mutex;
  std::shared_ptr<storage::StagedFile> staged;  // from the first chunk on
  SpaceClaim room;                              // set before anybody else knows the file
  std::vector<wire::Checksum> checksums;        // one per chunk
  std::vector<bool> claimed;                    // chunks that have come; a second copy is refused
  std::uint64_t chunks_left = 0;                // not yet written
  std::optional<wire::FileEnd> end;             // the sender's last word
  bool finishing = false;                       // everything has come: one coroutine publishes it
  bool failed = false;                          // settled: what still comes of it is dropped
  // For the journal. `path`, relative to the target's root, is set before anybody else knows the
  // file; empty if it is not journaled.
  std::string path;
  bool begun = false;      // the journal names it
  std::uint64_t held = 0;  // bytes that an earlier run has left
};

// Thread-safe.
class IncomingTable {
 public:
  void add(std::shared_ptr<IncomingFile> file) {
    std::lock_guard lock(mutex_);
    const std::uint64_t id = file->entry.id;
    files_.emplace(id, std::move(file));
  }
  std::shared_ptr<IncomingFile> find(std::uint64_t id) const {
    std::lock_guard lock(mutex_);
    const auto found = files_.find(id);
    return found == files_.end() ? nullptr : found->second;
  }
  // Null if there is none.
  std::shared_ptr<IncomingFile> take(std::uint64_t id) {
    std::lock_guard lock(mutex_);
    auto node = files_.extract(id);
    return node.empty() ? nullptr : std::move(node.mapped());
  }
  // Files that neither came whole nor failed.
  std::size_t unsettled() const {
    std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& [id, file] : files_) count += file->failed ? 0 : 1;
    return count;
  }
  std::vector<std::shared_ptr<IncomingFile>> all() const {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<IncomingFile>> files;
    for (const auto& [id, file] : files_) files.push_back(file);
    return files;
  }
  void clear() {
    std::lock_guard lock(mutex_);
    files_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<IncomingFile>> files_;  // guarded by mutex_
};

}  // namespace fgsync::transfer
