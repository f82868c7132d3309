#include "transfer/committer.h"

#include <set>

#include "base/mark.h"

namespace fgsync::transfer {
namespace {

// A batch is big enough that one flush of the file system's journal is shared by many, and small
// enough that a progress line moves and an interrupted run has published most of what it got.
constexpr std::size_t kBatchEntries = 2048;
constexpr std::uint64_t kBatchBytes = 64u << 20;

// From here on a file's own fsync costs little beside its writing, and it need not wait for a
// batch.
constexpr std::uint64_t kOwnSyncBytesMin = 16u << 20;

}  // namespace

std::string Committer::display_path(const wire::ManifestEntry& entry) const {
  const std::string relative = directories_.path_of(entry.parent, entry.name);
  return root_display_ == "/" ? "/" + relative : root_display_ + "/" + relative;
}

void Committer::add(std::vector<StagedEntry> entries) {
  std::vector<StagedEntry> ready;
  {
    std::lock_guard lock(mutex_);
    for (StagedEntry& entry : entries) {
      waiting_bytes_ += entry.file->entry.size;
      waiting_.push_back(std::move(entry));
    }
    if (waiting_.size() < kBatchEntries && waiting_bytes_ < kBatchBytes) return;
    ready.swap(waiting_);
    waiting_bytes_ = 0;
  }
  publish_batch(std::move(ready));
}

void Committer::add_one(StagedEntry entry) {
  if (entry.file->entry.size >= kOwnSyncBytesMin) return commit_now(std::move(entry));
  entry.staged->close();
  std::vector<StagedEntry> one;
  one.push_back(std::move(entry));
  add(std::move(one));
}

void Committer::flush() {
  std::vector<StagedEntry> ready;
  {
    std::lock_guard lock(mutex_);
    ready.swap(waiting_);
    waiting_bytes_ = 0;
    was_waiting_ = false;
  }
  if (!ready.empty()) publish_batch(std::move(ready));
}

bool Committer::is_stale() {
  std::lock_guard lock(mutex_);
  return std::exchange(was_waiting_, !waiting_.empty()) && !waiting_.empty();
}

void Committer::commit_now(StagedEntry entry) {
  Status synced;
  {
    const Session::Flushing flushing(session_);
    transport::StageTimer syncing(session_.meter(), Stage::kSync, entry.file->entry.size);
    synced = entry.staged->sync();
  }
  std::vector<StagedEntry> one;
  one.push_back(std::move(entry));
  publish(std::move(one), synced);
}

void Committer::publish_batch(std::vector<StagedEntry> entries) {
  const Status synced = sync_batch(entries);
  if (!synced.ok()) session_.fail(synced.with_context(root_display_));
  publish(std::move(entries), synced);
}

// One syncfs for each mount that the batch is staged on. What it reports, it reports once, and for
// any file of that mount: after a failure other staged files may have lost pages too, which no
// later flush would tell (syncfs(2)). So nothing of this run is published any more.
Status Committer::sync_batch(const std::vector<StagedEntry>& entries) {
  std::lock_guard lock(flush_mutex_);
  if (flush_failure_.ok()) flush_failure_ = flush_mounts(entries);
  return flush_failure_;
}

Status Committer::flush_mounts(const std::vector<StagedEntry>& entries) {
  const Session::Flushing flushing(session_);
  transport::StageTimer syncing(session_.meter(), Stage::kSync, 0);
  std::uint64_t bytes = 0;
  std::set<const io::FileHandle*> synced;
  for (const StagedEntry& entry : entries) {
    bytes += entry.file->entry.size;
    const io::FileHandle& staging = entry.staged->staging_directory();
    if (!synced.insert(&staging).second) continue;
    FGSYNC_RETURN_IF_ERROR(session_.files().sync_file_system(staging));
  }
  syncing.set_bytes(bytes);
  return Status();
}

void Committer::publish(std::vector<StagedEntry> entries, const Status& synced) {
  wire::SettledBatch settled;
  if (!synced.ok()) mark("commit_sync_failed");
  for (StagedEntry& entry : entries) {
    Status published = synced.ok() ? publish_one(entry) : synced;
    if (published.ok()) {
      settled.entries.push_back({entry.file->entry.id, true});
    } else {
      if (synced.ok()) mark("commit_rename_failed");
      fail(*entry.file, published);
    }
  }
  session_.add_progress();
  if (!settled.entries.empty()) session_.push(std::move(settled));
}

Status Committer::publish_one(StagedEntry& entry) {
  const wire::ManifestEntry& manifest = entry.file->entry;
  transport::StageTimer writing(session_.meter(), Stage::kWrite, 0);
  auto directory = directories_.open(manifest.parent);
  if (!directory.ok()) return directory.status();
  FGSYNC_RETURN_IF_ERROR(entry.staged->publish(**directory, manifest.name));
  const std::string path = directories_.path_of(manifest.parent, manifest.name);
  const wire::Checksum description = wire::describe(manifest, path, entry.digest);
  session_.announce_path(path, manifest);
  std::lock_guard lock(mutex_);
  digest_.add(description);
  ++files_replicated_;
  bytes_replicated_ += manifest.size;
  return Status();
}

void Committer::fail(IncomingFile& file, const Status& status) {
  if (session_.path_failed(display_path(file.entry), status)) {
    settle_failed(file);
  } else {
    mark("commit_no_space");
  }
}

void Committer::settle_failed(const IncomingFile& file) {
  session_.push(wire::SettledBatch{{{file.entry.id, false}}});
  session_.add_progress();
}

std::uint64_t Committer::files_replicated() const {
  std::lock_guard lock(mutex_);
  return files_replicated_;
}

std::uint64_t Committer::bytes_replicated() const {
  std::lock_guard lock(mutex_);
  return bytes_replicated_;
}

wire::TreeDigest Committer::digest() const {
  std::lock_guard lock(mutex_);
  return digest_;
}

}  // namespace fgsync::transfer
