#include "transfer/committer.h"

#include <map>
#include <set>

#include "base/limits.h"
#include "base/mark.h"
#include "transfer/read_back.h"

namespace fgsync::transfer {
namespace {

// A batch is big enough that one flush of the file system's journal is shared by many, and small
// enough that a progress line moves and an interrupted run has published most of what it got.
constexpr std::size_t kBatchEntries = 2048;
constexpr std::uint64_t kBatchBytes = 64u << 20;

bool is_file(const IncomingFile& incoming) {
  return incoming.entry.type == wire::EntryType::kRegular;
}

}  // namespace

std::string Committer::display_path(const wire::ManifestEntry& entry) const {
  const std::string relative = directories_.path_of(entry.parent, entry.name);
  return root_display_ == "/" ? "/" + relative : root_display_ + "/" + relative;
}

// A large file's own fsync costs little beside its writing, and it need not wait for a batch.
bool Committer::is_large(const StagedEntry& entry) const {
  return entry.file->entry.size >= session_.parameters.journaled_file_bytes_min();
}

bool Committer::syncs_by_itself(const StagedEntry& entry) const {
  const SessionParameters& parameters = session_.parameters;
  if (parameters.durability == Durability::kBatch) {
    return is_large(entry) || (parameters.read_back && !can_be_reopened(entry));
  }
  return parameters.durability == Durability::kFull;
}

// A mode may forbid its owner to read a file that is not open yet.
bool Committer::can_be_reopened(const StagedEntry& entry) const {
  constexpr std::uint32_t kReadableByOwner = 0400;
  return (entry.file->entry.mode & kReadableByOwner) != 0 || session_.files().may_set_owner();
}

Status Committer::seal(const StagedEntry& entry) {
  Status sealed;
  if (syncs_by_itself(entry)) {
    {
      const Session::Flushing flushing(session_);
      transport::StageTimer syncing(session_.meter(), Stage::kSync, entry.file->entry.size);
      sealed = entry.staged->sync();
    }
    if (!sealed.ok()) mark("commit_own_sync_failed");
    if (sealed.ok() && session_.parameters.read_back) sealed = read_back(session_, entry);
  }
  entry.staged->close();
  return sealed;
}

void Committer::add(std::vector<StagedEntry> entries) {
  std::vector<StagedEntry> ready;
  std::vector<StagedEntry> alone;
  {
    std::lock_guard lock(mutex_);
    for (StagedEntry& entry : entries) {
      if (entry.file->is_marker || is_large(entry)) {
        (entry.file->is_marker ? markers_ : alone).push_back(std::move(entry));
        continue;
      }
      waiting_bytes_ += entry.file->entry.size;
      waiting_.push_back(std::move(entry));
    }
    if (waiting_.size() >= kBatchEntries || waiting_bytes_ >= kBatchBytes) {
      ready.swap(waiting_);
      waiting_bytes_ = 0;
    }
  }
  if (!alone.empty()) {
    record(alone);
    receipt_.sync();
    publish(std::move(alone));
  }
  if (!ready.empty()) publish_batch(std::move(ready));
}

void Committer::hold(StagedEntry symlink) {
  std::lock_guard lock(mutex_);
  markers_.push_back(std::move(symlink));
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

void Committer::record(const std::vector<StagedEntry>& entries) {
  std::vector<receipt::Record> records;
  records.reserve(entries.size());
  for (const StagedEntry& entry : entries) {
    if (!is_file(*entry.file)) continue;
    const wire::ManifestEntry& manifest = entry.file->entry;
    records.emplace_back(
        receipt::FileRecord{.path = directories_.path_of(manifest.parent, manifest.name),
                            .size = manifest.size,
                            .mtime = {manifest.mtime_seconds, manifest.mtime_nanoseconds},
                            .chunk_bytes = session_.parameters.chunk_bytes,
                            .digest = entry.digest});
  }
  transport::StageTimer writing(session_.meter(), Stage::kWrite, 0);
  receipt_.append(records);
}

void Committer::publish_batch(std::vector<StagedEntry> entries) {
  record(entries);
  const Status synced = sync_batch(entries);
  if (synced.ok()) {
    publish(std::move(entries));
    return;
  }
  mark("commit_sync_failed");
  for (StagedEntry& entry : entries) fail(*entry.file, synced);
  session_.fail(synced.with_context(root_display_));
}

// One syncfs for each mount that the batch is staged on. What it reports, it reports once, and for
// any file of that mount: after a failure other staged files may have lost pages too, which no
// later flush would tell (syncfs(2)). So nothing of this run is published any more.
Status Committer::sync_batch(const std::vector<StagedEntry>& entries) {
  if (session_.parameters.durability != Durability::kBatch) {
    receipt_.sync();
    return Status();
  }
  std::lock_guard lock(flush_mutex_);
  if (flush_failure_.ok()) flush_failure_ = flush_mounts(entries);
  if (!flush_failure_.ok()) session_.set_flush_failed();
  return flush_failure_;
}

Status Committer::flush_mounts(const std::vector<StagedEntry>& entries) {
  const Session::Flushing flushing(session_);
  transport::StageTimer syncing(session_.meter(), Stage::kSync, 0);
  std::uint64_t bytes = 0;
  bool receipt_synced = false;
  std::set<const io::FileHandle*> synced;
  for (const StagedEntry& entry : entries) {
    bytes += entry.file->entry.size;
    const io::FileHandle& staging = *entry.staged->staging_directory();
    if (!synced.insert(&staging).second) continue;
    FGSYNC_RETURN_IF_ERROR(session_.files().sync_file_system(staging));
    const auto status = session_.files().stat(staging);
    receipt_synced = receipt_synced || (status.ok() && receipt_.is_on(status->mount));
  }
  if (!receipt_synced) receipt_.sync();
  syncing.set_bytes(bytes);
  return Status();
}

std::vector<StagedEntry> Committer::take_markers() {
  std::lock_guard lock(mutex_);
  return std::exchange(markers_, {});
}

void Committer::publish_markers(const std::vector<storage::DirectoryReference>& mounts) {
  std::map<MarkerRank, std::vector<StagedEntry>> ranks;
  for (StagedEntry& marker : take_markers()) {
    const wire::ManifestEntry& entry = marker.file->entry;
    const std::string path = directories_.path_of(entry.parent, entry.name);
    ranks[rank_of(entry, path)].push_back(std::move(marker));
  }
  Status withheld;
  for (auto& [rank, markers] : ranks) {
    if (withheld.ok()) {
      record(markers);
      withheld = sync_mounts(mounts);
    }
    if (!withheld.ok()) {
      receipt_.distrust();
      mark("commit_marker_behind_another");
      for (const StagedEntry& marker : markers) fail(*marker.file, withheld);
      continue;
    }
    if (!publish(std::move(markers))) {
      withheld = Status(ErrorCode::kIoError, "publishing: held back, since another marker failed");
    }
  }
}

void Committer::withhold_markers(const Status& reason) {
  const std::vector<StagedEntry> markers = take_markers();
  if (!markers.empty()) mark("commit_markers_withheld");
  for (const StagedEntry& marker : markers) fail(*marker.file, reason);
}

Status Committer::sync_mounts(const std::vector<storage::DirectoryReference>& mounts) {
  if (session_.parameters.durability == Durability::kNone) return Status();
  std::lock_guard lock(flush_mutex_);
  const Session::Flushing flushing(session_);
  transport::StageTimer syncing(session_.meter(), Stage::kSync, 0);
  std::set<const io::FileHandle*> synced;
  for (const storage::DirectoryReference& mount : mounts) {
    if (!flush_failure_.ok() || !synced.insert(mount.get()).second) continue;
    flush_failure_ = session_.files().sync_file_system(*mount);
  }
  if (!flush_failure_.ok()) {
    mark("commit_mounts_not_flushed");
    session_.fail(flush_failure_.with_context(root_display_));
  }
  return flush_failure_;
}

// What is durable gets its name; with kFull the name becomes durable before anybody hears of it.
bool Committer::publish(std::vector<StagedEntry> entries) {
  std::map<std::uint64_t, Status> directories;  // of what was renamed, by number
  std::vector<const StagedEntry*> named;
  std::vector<const StagedEntry*> replicated;
  for (const StagedEntry& entry : entries) {
    Status published = read_back_if_due(entry);
    if (published.ok()) published = rename_to_final(entry);
    if (published.ok()) {
      named.push_back(&entry);
      directories.try_emplace(entry.file->entry.parent);
    } else {
      receipt_.distrust();
      fail(*entry.file, published);
    }
  }
  for (auto& [directory, synced] : directories) synced = sync_directory(directory);
  for (const StagedEntry* entry : named) {
    const Status& synced = directories.at(entry->file->entry.parent);
    if (synced.ok()) {
      replicated.push_back(entry);
    } else {
      mark("commit_directory_sync_failed");
      receipt_.distrust();
      fail(*entry->file, synced);
    }
  }
  session_.add_progress(entries.size());
  tell_replicated(replicated);
  return replicated.size() == entries.size();
}

// Symlinks are settled and counted by the plan. There may be any number of markers in one call.
void Committer::tell_replicated(const std::vector<const StagedEntry*>& entries) {
  wire::SettledBatch settled;
  for (const StagedEntry* entry : entries) {
    if (!is_file(*entry->file)) continue;
    count(*entry);
    settled.entries.push_back({entry->file->entry.id, true});
    if (settled.entries.size() == limits::kEntriesOutstandingMax) {
      session_.push(std::exchange(settled, {}));
    }
  }
  if (!settled.entries.empty()) session_.push(std::move(settled));
}

// What was synced with others has not been read yet.
Status Committer::read_back_if_due(const StagedEntry& entry) {
  if (!session_.parameters.read_back || !is_file(*entry.file) || syncs_by_itself(entry)) {
    return Status();
  }
  return read_back(session_, entry);
}

Status Committer::rename_to_final(const StagedEntry& entry) {
  const wire::ManifestEntry& manifest = entry.file->entry;
  transport::StageTimer writing(session_.meter(), Stage::kWrite, 0);
  auto directory = directories_.open(manifest.parent);
  if (!directory.ok()) return directory.status();
  Status renamed = entry.staged->publish(**directory, manifest.name);
  if (!renamed.ok()) mark("commit_rename_failed");
  return renamed;
}

Status Committer::sync_directory(std::uint64_t directory) {
  if (session_.parameters.durability != Durability::kFull) return Status();
  const Session::Flushing flushing(session_);
  transport::StageTimer syncing(session_.meter(), Stage::kSync, 0);
  auto handle = directories_.open(directory);
  if (!handle.ok()) return handle.status();
  FGSYNC_RETURN_IF_ERROR(session_.files().sync(**handle));
  return sync_names_above(directory);
}

// A directory that this run has made has a name as young as what is in it. Once for each: a name
// stays durable. The root's may be several levels deep (--mkpath), outside of what is held open.
Status Committer::sync_names_above(std::uint64_t directory) {
  std::vector<std::uint64_t> young;
  for (std::uint64_t id = directory;; id = directories_.parent_of(id)) {
    {
      std::lock_guard lock(mutex_);
      if (lasting_.contains(id)) break;
    }
    young.push_back(id);
    auto parent = directories_.open(directories_.parent_of(id));
    if (!parent.ok()) return parent.status();
    FGSYNC_RETURN_IF_ERROR(id == 0 ? session_.files().sync_file_system(**parent)
                                   : session_.files().sync(**parent));
    if (id == 0) break;
  }
  std::lock_guard lock(mutex_);
  lasting_.insert(young.begin(), young.end());
  return Status();
}

void Committer::count(const StagedEntry& entry) {
  const wire::ManifestEntry& manifest = entry.file->entry;
  const std::string path = directories_.path_of(manifest.parent, manifest.name);
  const wire::Checksum description = wire::describe(manifest, path, entry.digest);
  session_.announce_change(path, manifest, entry.file->differences, true);
  std::lock_guard lock(mutex_);
  digest_.add(description);
  ++files_replicated_;
  bytes_replicated_ += manifest.size;
  bytes_resumed_ += entry.file->held;
}

void Committer::fail(IncomingFile& file, const Status& status) {
  if (session_.path_failed(display_path(file.entry), status)) {
    settle_failed(file);
  } else {
    mark("commit_no_space");
  }
}

void Committer::settle_failed(const IncomingFile& file) {
  if (!is_file(file)) return;
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

std::uint64_t Committer::bytes_resumed() const {
  std::lock_guard lock(mutex_);
  return bytes_resumed_;
}

wire::TreeDigest Committer::digest() const {
  std::lock_guard lock(mutex_);
  return digest_;
}

}  // namespace fgsync::transfer
