// From staged to published: what makes files durable and gives them their final names, in the order
// that the design states once (docs/architecture.md, "Durability order"):
//
//   data and metadata written -> durable -> rename -> settled -> (at the end) directories durable
//
// Files share one syncfs per batch; only a large one has its own fsync.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/directory_tree.h"
#include "storage/staged_file.h"
#include "transfer/incoming_table.h"
#include "transfer/session.h"
#include "wire/checksum.h"

namespace fgsync::transfer {

// A file whose bytes are verified and written and whose metadata is set.
struct StagedEntry {
  std::shared_ptr<IncomingFile> file;
  std::shared_ptr<storage::StagedFile> staged;
  wire::Checksum digest;
};

// Thread-safe. Everything that touches files blocks: call it inside a blocking job.
class Committer {
 public:
  Committer(Session& session, storage::DirectoryTree& directories, std::string root_display)
      : session_(session), directories_(directories), root_display_(std::move(root_display)) {}

  // Files are published together with others when enough have come; one of kOwnSyncBytesMin or more
  // is synced by itself and published now.
  void add(std::vector<StagedEntry> entries);
  void add_one(StagedEntry entry);
  // Publishes everything that waits.
  void flush();
  // Whether something has waited since the last call: files don't wait for company longer than two
  // calls.
  bool is_stale();

  // The file is given up; the reason goes to the report. Not for what the sender has withdrawn.
  void fail(IncomingFile& file, const Status& status);
  // The same without a reason of this side's own: the sender has named it.
  void settle_failed(const IncomingFile& file);

  std::string display_path(const wire::ManifestEntry& entry) const;
  std::uint64_t files_replicated() const;
  std::uint64_t bytes_replicated() const;
  // Of everything that this run has replicated. After the last flush.
  wire::TreeDigest digest() const;

 private:
  void publish_batch(std::vector<StagedEntry> entries);
  Status sync_batch(const std::vector<StagedEntry>& entries);
  Status flush_mounts(const std::vector<StagedEntry>& entries);
  // With the outcome of making them durable: a failed sync is never retried (the kernel may have
  // dropped the pages and forgotten the error), its files fail.
  void publish(std::vector<StagedEntry> entries, const Status& synced);
  void commit_now(StagedEntry entry);
  Status publish_one(StagedEntry& entry);

  Session& session_;
  storage::DirectoryTree& directories_;
  const std::string root_display_;
  std::mutex flush_mutex_;  // held over a flush, so that who comes next knows how it went
  Status flush_failure_;    // guarded by flush_mutex_; the first one
  mutable std::mutex mutex_;
  std::vector<StagedEntry> waiting_;    // guarded by mutex_
  std::uint64_t waiting_bytes_ = 0;     // guarded by mutex_
  bool was_waiting_ = false;            // guarded by mutex_
  wire::TreeDigest digest_;             // guarded by mutex_
  std::uint64_t files_replicated_ = 0;  // guarded by mutex_
  std::uint64_t bytes_replicated_ = 0;  // guarded by mutex_
};

}  // namespace fgsync::transfer
