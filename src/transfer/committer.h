// From staged to published: what makes files durable and gives them their final names, in the order
// that the design states once (docs/architecture.md, "Durability order"):
//
//   data and metadata written -> durable, with their record in the receipt -> (--verify=readback)
//   read back -> rename -> settled -> (at the end) directories durable
//
// With Durability::kBatch files share one syncfs per batch, and only a large one has its own fsync.
// With kFull each has its own, and its directory is synced before it is settled. With kNone nothing
// is synced, and the order is what is left of it.
//
// Markers (markers.h) wait until everything else has its name. Then they are published rank by
// rank, each rank after a flush that makes durable whatever it may name.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "receipt/receipt_writer.h"
#include "storage/directory_tree.h"
#include "storage/staged_file.h"
#include "transfer/incoming_table.h"
#include "transfer/markers.h"
#include "transfer/session.h"
#include "wire/checksum.h"

namespace fgsync::transfer {

// A file whose bytes are verified and written and whose metadata is set; or a symlink.
struct StagedEntry {
  std::shared_ptr<IncomingFile> file;
  std::shared_ptr<storage::StagedFile> staged;
  wire::Checksum digest;
};

// Thread-safe. Everything that touches files blocks: call it inside a blocking job.
class Committer {
 public:
  Committer(Session& session, storage::DirectoryTree& directories, receipt::ReceiptWriter& receipt,
            std::string root_display)
      : session_(session),
        directories_(directories),
        receipt_(receipt),
        root_display_(std::move(root_display)) {}

  // A file is written and has its metadata: makes it durable, and reads it back, if it does not
  // share that with others, and gives up its descriptor. Then add() it.
  Status seal(const StagedEntry& entry);
  // Files are published together with others when enough have come; one that is large enough
  // to be journaled now; markers wait.
  void add(std::vector<StagedEntry> entries);
  // A symlink that is a marker: it waits with them. Its entry is settled already.
  void hold(StagedEntry symlink);
  // Publishes everything that waits, but markers.
  void flush();
  // After flush(), once: publishes the markers, in their order; `mounts` has a directory on each
  // mount that they may name something on. When one fails, those behind it are given up.
  void publish_markers(const std::vector<storage::DirectoryReference>& mounts);
  // Or gives them all up.
  void withhold_markers(const Status& reason);
  // Everything on the mounts becomes durable, if the session asks for that; else the session fails.
  // Once a flush has failed, all do: what is not on the disk then will never be.
  Status sync_mounts(const std::vector<storage::DirectoryReference>& mounts);
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
  // Of these, what an earlier run had left.
  std::uint64_t bytes_resumed() const;
  // Of everything that this run has replicated. After the last flush.
  wire::TreeDigest digest() const;

 private:
  // A failed sync is never retried (the kernel may have dropped the pages and forgotten the error):
  // its files fail.
  bool is_large(const StagedEntry& entry) const;
  bool syncs_by_itself(const StagedEntry& entry) const;
  bool can_be_reopened(const StagedEntry& entry) const;
  void publish_batch(std::vector<StagedEntry> entries);
  // In the receipt, before what makes them durable.
  void record(const std::vector<StagedEntry>& entries);
  Status sync_batch(const std::vector<StagedEntry>& entries);
  Status flush_mounts(const std::vector<StagedEntry>& entries);
  // Whether each has its name, for good where that is asked for.
  bool publish(std::vector<StagedEntry> entries);
  Status read_back_if_due(const StagedEntry& entry);
  Status rename_to_final(const StagedEntry& entry);
  Status sync_directory(std::uint64_t directory);
  Status sync_names_above(std::uint64_t directory);
  void tell_replicated(const std::vector<const StagedEntry*>& entries);
  void count(const StagedEntry& entry);
  std::vector<StagedEntry> take_markers();

  Session& session_;
  storage::DirectoryTree& directories_;
  receipt::ReceiptWriter& receipt_;
  const std::string root_display_;
  std::mutex flush_mutex_;  // held over a flush, so that who comes next knows how it went
  Status flush_failure_;    // guarded by flush_mutex_; the first one
  mutable std::mutex mutex_;
  std::vector<StagedEntry> waiting_;  // guarded by mutex_
  std::uint64_t waiting_bytes_ = 0;   // guarded by mutex_
  bool was_waiting_ = false;          // guarded by mutex_
  std::vector<StagedEntry> markers_;  // guarded by mutex_
  std::unordered_set<std::uint64_t>
      lasting_;                         // guarded by mutex_; directories whose own name is durable
  wire::TreeDigest digest_;             // guarded by mutex_
  std::uint64_t files_replicated_ = 0;  // guarded by mutex_
  std::uint64_t bytes_replicated_ = 0;  // guarded by mutex_
  std::uint64_t bytes_resumed_ = 0;     // guarded by mutex_
};

}  // namespace fgsync::transfer
