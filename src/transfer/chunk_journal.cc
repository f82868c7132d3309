#include "transfer/chunk_journal.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mark.h"
#include "storage/each_name.h"
#include "transfer/leftover_age.h"
#include "wire/byte_writer.h"

namespace fgsync::transfer {
namespace {

// Commits are at most half a second apart, and a flush may take its time: data that is so much
// younger than the journal was not written by the run that wrote the journal.
constexpr std::int64_t kSecondsBehindMax = 30;

journal::FileVersion version_of(const wire::ManifestEntry& entry, std::uint32_t chunk_bytes) {
  return {.size = entry.size,
          .mtime = {entry.mtime_seconds, entry.mtime_nanoseconds},
          .ctime = {entry.ctime_seconds, entry.ctime_nanoseconds},
          .inode = entry.inode,
          .chunk_bytes = chunk_bytes};
}

std::uint64_t number_of(const std::string& staging_name) {
  std::uint64_t number = 0;
  const char* const end = staging_name.data() + staging_name.size();
  const auto parsed = std::from_chars(staging_name.data(), end, number);
  FGSYNC_ASSERT(parsed.ec == std::errc() && parsed.ptr == end);
  return number;
}

std::uint64_t chunk_length(const journal::FileVersion& version, std::uint64_t chunk) {
  return std::min<std::uint64_t>(version.chunk_bytes, version.size - chunk * version.chunk_bytes);
}

// Removes what the journal does not speak of: small files that were staged and not published.
void remove_unknown(io::FileSystem& files, const io::FileHandle& staging,
                    const journal::ResumeState& state) {
  (void)storage::for_each_name(files, staging, [&](const std::string& name) {
    std::uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data(), end, number);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == end;
    if (is_number && !state.contains(number)) (void)files.unlink(staging, name);
    return Status();
  });
}

}  // namespace

wire::Checksum transfer_identity(const std::vector<wire::SourceDescription>& sources) {
  wire::ByteWriter writer;
  for (const wire::SourceDescription& source : sources) {
    writer.string(source.display);
    writer.u64(source.ancestry.front().inode);
  }
  return wire::checksum_of(writer.written());
}

ChunkJournal::ChunkJournal(Session& session, wire::Checksum transfer, std::string root_display)
    : session_(session), transfer_(transfer), root_display_(std::move(root_display)) {}

bool ChunkJournal::covers(std::uint64_t size) const {
  return session_.parameters.resume && size >= session_.parameters.journaled_file_bytes_min();
}

// ---- What an earlier run has left.

storage::Leftover ChunkJournal::judge(const storage::DirectoryReference& staging,
                                      bool may_take_over, storage::StagingArea& area) {
  io::FileSystem& files = session_.files();
  const auto unusable = [&](const Status& why) {
    if (why.code() == ErrorCode::kNotFound) return storage::Leftover::kRemove;  // no journal
    mark("journal_unusable");
    session_.errors().note("the state of an interrupted run cannot be used: its journal: " +
                           why.message());
    return storage::Leftover::kRemove;
  };
  auto header = journal::load_header(files, *staging);
  if (!header.ok()) return unusable(header.status());
  if (header->transfer != transfer_) return judge_foreign(*staging);
  if (!session_.parameters.resume || !may_take_over) return storage::Leftover::kRemove;
  auto loaded = journal::load(files, *staging);
  if (!loaded.ok()) return unusable(loaded.status());
  if (loaded->bytes_cut > 0) {
    session_.errors().note("the journal of an interrupted run ends in damage: " +
                           std::to_string(loaded->bytes_cut) + " bytes of it are not used");
  }
  if (loaded->state.empty()) return storage::Leftover::kRemove;
  remove_unknown(files, *staging, loaded->state);
  area.skip_names_below(loaded->state.next_number());
  const std::lock_guard lock(mutex_);
  Area& taken = areas_[staging.get()];
  taken.staging = staging;
  taken.loaded = std::move(*loaded);
  return storage::Leftover::kTakeOver;
}

// State of another transfer into this target: kept for it, but not for ever.
storage::Leftover ChunkJournal::judge_foreign(const io::FileHandle& staging) {
  auto status = session_.files().stat_at(staging, journal::kJournalName);
  if (!status.ok()) return storage::Leftover::kKeep;
  if (is_too_old(session_.environment(), status->mtime)) {
    mark("journal_of_another_too_old");
    return storage::Leftover::kRemove;
  }
  session_.errors().note("an interrupted run from another source has left its state in " +
                         root_display_ + "/.fgsync; it is removed after seven days");
  return storage::Leftover::kKeep;
}

void ChunkJournal::begin(const std::shared_ptr<IncomingFile>& file, std::string path,
                         const storage::DirectoryReference& staging) {
  io::FileTime journal_time;
  std::optional<journal::PartialFile> partial = take_partial(path, staging, journal_time);
  file->path = std::move(path);
  if (!partial) return;
  const std::uint64_t number = partial->number;
  const Status taken = take_up(*file, std::move(*partial), journal_time, staging);
  if (taken.ok()) {
    // What was not trusted is journaled again, as of this run.
    if (file->begun) return;
    const std::lock_guard lock(pending_mutex_);
    for (std::uint64_t chunk = 0; chunk < file->claimed.size(); ++chunk) {
      if (file->claimed[chunk]) pending_.written.push_back({file, chunk});
    }
    return;
  }
  mark("resume_afresh");
  (void)session_.files().unlink(*staging, std::to_string(number));
  const std::lock_guard lock(pending_mutex_);
  pending_.done.emplace_back(staging, number);
}

std::optional<journal::PartialFile> ChunkJournal::take_partial(
    const std::string& path, const storage::DirectoryReference& staging,
    io::FileTime& journal_time) {
  const std::lock_guard lock(mutex_);
  const auto area = areas_.find(staging.get());
  if (area == areas_.end() || !area->second.loaded) return std::nullopt;
  journal_time = area->second.loaded->written;
  return area->second.loaded->state.take(path);
}

// An error only says that the file starts afresh.
Status ChunkJournal::take_up(IncomingFile& file, journal::PartialFile partial,
                             io::FileTime journal_time,
                             const storage::DirectoryReference& staging) {
  if (partial.version != version_of(file.entry, session_.parameters.chunk_bytes)) {
    mark("resume_source_changed");
    return Status(ErrorCode::kSourceChanged, "another version of the file");
  }
  const std::string name = std::to_string(partial.number);
  auto staged = storage::StagedFile::reopen(session_.files(), staging, name, file.entry.size,
                                            session_.parameters.direct_io);
  if (!staged.ok()) return staged.status();
  auto status = session_.files().stat((*staged)->handle());
  if (!status.ok()) return status.status();
  // The journal's word is taken for what the same kernel still holds. After a reboot, and where
  // somebody has put files here (a restored backup, a copied tree), the bytes are read again.
  const bool trusted = partial.host == session_.environment().host_identity() &&
                       partial.staged_inode == status->inode &&
                       status->mtime.seconds <= journal_time.seconds + kSecondsBehindMax;
  if (!trusted) {
    mark("resume_checked_again");
    FGSYNC_RETURN_IF_ERROR(check_again(partial, *staging, name));
  }
  partial.held.resize(partial.version.chunks());
  partial.checksums.resize(partial.version.chunks());
  const auto held = std::uint64_t(std::ranges::count(partial.held, true));
  if (held == 0) return Status(ErrorCode::kNotFound, "nothing of it is there");
  for (std::uint64_t chunk = 0; chunk < partial.held.size(); ++chunk) {
    if (partial.held[chunk]) file.held += chunk_length(partial.version, chunk);
  }
  mark("resume_chunks_held");
  file.staged = std::move(*staged);
  file.chunks_left = partial.held.size() - held;
  file.claimed = std::move(partial.held);
  file.checksums = std::move(partial.checksums);
  file.begun = trusted;
  return Status();
}

// Keeps those chunks whose bytes are what the journal says.
Status ChunkJournal::check_again(journal::PartialFile& partial, const io::FileHandle& staging,
                                 const std::string& name) {
  auto file = session_.files().open_file(staging, name, io::OpenMode::kRead);
  if (!file.ok()) return file.status();
  std::vector<std::byte> buffer(partial.version.chunk_bytes);
  for (std::uint64_t chunk = 0; chunk < partial.held.size(); ++chunk) {
    if (!partial.held[chunk]) continue;
    if (session_.failed()) return session_.status();
    const auto bytes = std::span(buffer).first(chunk_length(partial.version, chunk));
    transport::StageTimer verifying(session_.meter(), Stage::kVerify, bytes.size());
    auto count =
        session_.files().read(*file, bytes, chunk * std::uint64_t{partial.version.chunk_bytes});
    if (!count.ok()) return count.status();
    if (*count == bytes.size() && wire::checksum_of(bytes) == partial.checksums[chunk]) continue;
    mark("resume_chunk_differs");
    partial.held[chunk] = false;
  }
  return Status();
}

// ---- What this run writes down.

void ChunkJournal::written(const std::shared_ptr<IncomingFile>& file, std::uint64_t chunk,
                           std::size_t bytes) {
  if (file->path.empty()) return;
  written_bytes_.fetch_add(bytes);
  const std::lock_guard lock(pending_mutex_);
  pending_.written.push_back({file, chunk});
}

void ChunkJournal::settled(const IncomingFile& file, const storage::StagedFile& staged) {
  if (file.path.empty()) return;
  const std::lock_guard lock(pending_mutex_);
  pending_.done.emplace_back(staged.staging_directory(), number_of(staged.name()));
}

ChunkJournal::Failures ChunkJournal::commit(storage::StagingArea& staging) {
  const std::lock_guard lock(commit_mutex_);
  Pending pending;
  {
    const std::lock_guard pending_lock(pending_mutex_);
    pending = std::exchange(pending_, {});
    written_bytes_.store(0);
  }
  std::map<std::uint64_t, std::pair<std::shared_ptr<IncomingFile>, std::vector<std::uint64_t>>>
      by_file;
  for (WrittenChunk& written : pending.written) {
    auto& [file, chunks] = by_file[written.file->entry.id];
    chunks.push_back(written.chunk);
    file = std::move(written.file);
  }
  Failures failures;
  Records records;
  for (auto& [id, of_file] : by_file) {
    auto& [file, chunks] = of_file;
    Status recorded = sync_and_record(*file, std::move(chunks), records);
    if (!recorded.ok()) failures.emplace_back(file, std::move(recorded));
  }
  for (const auto& [directory, number] : pending.done) {
    Area& area = area_of(directory);
    if (area.writer) records_of(area, records).emplace_back(journal::Done{number});
  }
  if (session_.has_flush_failed()) return failures;
  for (auto& [area, of_area] : records) {
    Status appended = append(*area, of_area, staging);
    if (appended.ok()) continue;
    mark("journal_append_failed");
    area->broken = true;
    session_.errors().note("if this run is interrupted, files under way will start afresh: " +
                           appended.with_context("the journal").message());
  }
  return failures;
}

Status ChunkJournal::sync_and_record(IncomingFile& file, std::vector<std::uint64_t> chunks,
                                     Records& records) {
  std::shared_ptr<storage::StagedFile> staged;
  {
    const std::lock_guard lock(file.mutex);
    staged = file.staged;  // null once it is complete or given up
  }
  if (!staged) return Status();
  if (session_.parameters.durability != Durability::kNone) {
    const Session::Flushing flushing(session_);
    const transport::StageTimer syncing(session_.meter(), Stage::kSync, 0);
    Status synced = staged->sync_data();
    const std::lock_guard lock(file.mutex);
    // One that has become complete meanwhile fails with its own sync.
    if (!file.staged) return Status();
    if (!synced.ok()) return synced;
  }
  Area& area = area_of(staged->staging_directory());
  std::vector<journal::Record>& out = records_of(area, records);
  const std::uint64_t number = number_of(staged->name());
  const std::lock_guard lock(file.mutex);
  if (file.checksums.empty()) return Status();  // given up meanwhile
  if (!std::exchange(file.begun, true)) {
    auto status = session_.files().stat_at(*staged->staging_directory(), staged->name());
    if (!status.ok()) return status.status();
    out.emplace_back(
        journal::Begin{.number = number,
                       .version = version_of(file.entry, session_.parameters.chunk_bytes),
                       .host = session_.environment().host_identity(),
                       .staged_inode = status->inode,
                       .path = file.path});
  }
  std::ranges::sort(chunks);
  for (std::size_t i = 0; i < chunks.size();) {
    journal::Chunks run{.number = number, .first = chunks[i], .checksums = {}};
    do {
      run.checksums.push_back(file.checksums[chunks[i++]]);
    } while (i < chunks.size() && chunks[i] == chunks[i - 1] + 1 &&
             run.checksums.size() < limits::kHeldChunksMax);
    out.emplace_back(std::move(run));
  }
  return Status();
}

std::vector<journal::Record>& ChunkJournal::records_of(Area& area, Records& records) {
  for (auto& [known, of_area] : records) {
    if (known == &area) return of_area;
  }
  return records.emplace_back(&area, std::vector<journal::Record>()).second;
}

Status ChunkJournal::append(Area& area, const std::vector<journal::Record>& records,
                            storage::StagingArea& staging) {
  if (area.broken) return Status();
  const bool durable = session_.parameters.durability != Durability::kNone;
  if (!area.writer) {
    FGSYNC_RETURN_IF_ERROR(open_writer(area));
    if (durable) FGSYNC_RETURN_IF_ERROR(staging.sync_names(*area.staging));
  } else if (durable && std::ranges::any_of(records, [](const journal::Record& record) {
               return std::holds_alternative<journal::Begin>(record);
             })) {
    FGSYNC_RETURN_IF_ERROR(session_.files().sync(*area.staging));  // the new file's name
  }
  FGSYNC_RETURN_IF_ERROR(area.writer->append(records));
  return durable ? area.writer->sync() : Status();
}

Status ChunkJournal::open_writer(Area& area) {
  io::FileSystem& files = session_.files();
  Result<std::unique_ptr<journal::JournalWriter>> writer =
      Status(ErrorCode::kNotFound, "no journal yet");
  {
    const std::lock_guard lock(mutex_);
    if (area.loaded) writer = journal::JournalWriter::go_on(files, *area.staging, *area.loaded);
  }
  if (!writer.ok() && writer.status().code() == ErrorCode::kNotFound) {
    journal::Header header{.transfer = transfer_, .salt = {}};
    session_.environment().random_bytes(header.salt);
    writer = journal::JournalWriter::create(files, *area.staging, header);
  }
  if (!writer.ok()) return writer.status();
  area.writer = std::move(*writer);
  return Status();
}

ChunkJournal::Area& ChunkJournal::area_of(const storage::DirectoryReference& staging) {
  const std::lock_guard lock(mutex_);
  Area& area = areas_[staging.get()];
  if (!area.staging) area.staging = staging;
  return area;
}

std::set<const io::FileHandle*> ChunkJournal::keep(
    const std::vector<std::shared_ptr<IncomingFile>>& files) {
  std::set<const io::FileHandle*> kept;
  for (const std::shared_ptr<IncomingFile>& file : files) {
    const std::lock_guard lock(file->mutex);
    if (!file->staged || !file->begun) continue;
    file->staged->keep();
    kept.insert(file->staged->staging_directory().get());
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [staging, area] : areas_) {
    if (area.broken) continue;
    if (area.loaded && !area.loaded->state.empty()) kept.insert(staging);
  }
  return kept;
}

}  // namespace fgsync::transfer
