// What the receiver's journal is used for: chunks of large files that are on stable storage are
// written down (group commit: one flush for many), and what an interrupted run has written down is
// found again, so that only what is missing is sent. docs/journal.md says what is trusted and why.
//
// Whatever is wrong with a journal costs the state that it kept, never the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "journal/journal_reader.h"
#include "journal/journal_writer.h"
#include "storage/directory_tree.h"
#include "storage/staging_area.h"
#include "transfer/incoming_table.h"
#include "transfer/session.h"

namespace fgsync::transfer {

// Names the sources: state that another transfer has left is not for this one.
wire::Checksum transfer_identity(const std::vector<wire::SourceDescription>& sources);

// Thread-safe. Everything blocks but written(), settled() and wants_commit().
class ChunkJournal {
 public:
  ChunkJournal(Session& session, wire::Checksum transfer, std::string root_display);

  // Whether files of this size are journaled.
  bool covers(std::uint64_t size) const;

  // For the staging area: what is to become of a dead run's directory. Remembers what its journal
  // says.
  storage::Leftover judge(const storage::DirectoryReference& staging, bool may_take_over,
                          storage::StagingArea& area);

  // `file`, which is covered and which nobody else knows yet, is going to be staged there under a
  // path relative to the target's root: from now on it is journaled. What an earlier run has left
  // of this very version is put into it: its staged file, and the chunks that need not come.
  void begin(const std::shared_ptr<IncomingFile>& file, std::string path,
             const storage::DirectoryReference& staging);

  // A chunk of a file has been written.
  void written(const std::shared_ptr<IncomingFile>& file, std::uint64_t chunk, std::size_t bytes);
  // The file is published or given up: its records say nothing any more.
  void settled(const IncomingFile& file, const storage::StagedFile& staged);
  // Anything has been written since the last commit.
  bool has_pending() const { return written_bytes_.load() > 0; }
  // So much has been written that it is worth a commit of its own.
  bool wants_commit() const {
    return written_bytes_.load() >= kCommitChunks * session_.parameters.chunk_bytes;
  }

  // Makes what was written durable and journals it. Returns the files whose sync has failed: it is
  // never retried, they fail.
  using Failures = std::vector<std::pair<std::shared_ptr<IncomingFile>, Status>>;
  Failures commit(storage::StagingArea& area);

  // At the end of a run that has failed, after a last commit: the journaled ones of these files
  // stay for the next run. Returns the staging directories that hold something for it.
  std::set<const io::FileHandle*> keep(const std::vector<std::shared_ptr<IncomingFile>>& files);

 private:
  // 64 MiB by default: at 3 GB/s a commit every 20 ms, at a disk's 1 GB/s every 64 ms. A killed run
  // loses about this, or what came in a tenth of a second.
  static constexpr std::uint64_t kCommitChunks = 16;

  // One for each staging directory, so for each mount.
  struct Area {
    storage::DirectoryReference staging;
    std::optional<journal::LoadedJournal> loaded;    // of the run before; guarded by mutex_
    std::unique_ptr<journal::JournalWriter> writer;  // the rest: guarded by commit_mutex_
    bool broken = false;                             // nothing is journaled any more
  };
  using Records = std::vector<std::pair<Area*, std::vector<journal::Record>>>;
  struct WrittenChunk {
    std::shared_ptr<IncomingFile> file;
    std::uint64_t chunk = 0;
  };
  struct Pending {
    std::vector<WrittenChunk> written;
    std::vector<std::pair<storage::DirectoryReference, std::uint64_t>> done;
  };

  storage::Leftover judge_foreign(const io::FileHandle& staging);
  std::optional<journal::PartialFile> take_partial(const std::string& path,
                                                   const storage::DirectoryReference& staging,
                                                   io::FileTime& journal_time);
  Status take_up(IncomingFile& file, journal::PartialFile partial, io::FileTime journal_time,
                 const storage::DirectoryReference& staging);
  Status check_again(journal::PartialFile& partial, const io::FileHandle& staging,
                     const std::string& name);
  Area& area_of(const storage::DirectoryReference& staging);
  // The records of one file's new chunks, once they are durable.
  Status sync_and_record(IncomingFile& file, std::vector<std::uint64_t> chunks, Records& records);
  static std::vector<journal::Record>& records_of(Area& area, Records& records);
  Status open_writer(Area& area);
  Status append(Area& area, const std::vector<journal::Record>& records,
                storage::StagingArea& staging);

  Session& session_;
  const wire::Checksum transfer_;
  const std::string root_display_;
  std::mutex mutex_;
  std::map<const io::FileHandle*, Area> areas_;  // guarded by mutex_; entries stay where they are
  std::mutex commit_mutex_;                      // held over a commit
  std::mutex pending_mutex_;
  Pending pending_;  // guarded by pending_mutex_
  std::atomic<std::uint64_t> written_bytes_{0};
};

}  // namespace fgsync::transfer
