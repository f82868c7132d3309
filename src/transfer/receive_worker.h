// The receiver's data road: each stream is read by one coroutine; what it brings is verified and
// written by others, so that the next frame comes in meanwhile. A chunk is checked against its
// checksum before a byte of it is written.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "io/sync.h"
#include "storage/staging_area.h"
#include "transfer/chunk_journal.h"
#include "transfer/committer.h"
#include "transfer/flow_window.h"
#include "transfer/incoming_stream.h"
#include "transfer/incoming_table.h"
#include "transfer/session.h"
#include "transport/stream.h"
#include "wire/frame.h"

namespace fgsync::transfer {

class ReceiveWorker {
 public:
  ReceiveWorker(Session& session, storage::DirectoryTree& directories,
                storage::StagingArea& staging, IncomingTable& incoming, ChunkJournal& journal,
                Committer& committer, StreamRecovery& recovery);

  // Reads stream number `index`, on its worker, to its end or until no more can come; returns when
  // all that it brought is written.
  io::Task<void> run_stream(std::size_t index);

  // Frames of each stream that have come whole. Any thread.
  std::vector<std::uint64_t> frames() const;
  // The sender has lost a connection. kProtocolError if that makes no sense. Any thread.
  Status on_stream_ended(const wire::StreamEnded& ended);

  // The sender's last word about a large file. On any worker.
  io::Task<Status> on_file_end(io::Io* io, wire::FileEnd end);

  // Makes what has been written durable and journals it. Blocks.
  void commit_journal();

  // Contents written so far: what a progress line shows.
  std::uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }

 private:
  io::Task<void> receive_frames(IncomingStream* stream, io::TaskGroup* writing);
  io::Task<void> take_chunk(io::Io* io, wire::FrameHeader header, Buffer payload);
  io::Task<void> take_pack(io::Io* io, wire::FrameHeader header, Buffer payload);
  Result<std::shared_ptr<IncomingFile>> claim_chunk(const wire::FrameHeader& header,
                                                    std::size_t payload_bytes);
  io::Task<Status> write_chunk(io::Io* io, IncomingFile* file, const wire::FrameHeader* header,
                               Buffer* payload);
  io::Task<Status> write_through_cache(io::Io* io, IncomingFile* file, storage::StagedFile* staged,
                                       std::uint64_t offset, std::span<const std::byte> bytes);
  io::Task<Status> write_past_cache(io::Io* io, storage::StagedFile* staged, std::uint64_t offset,
                                    Buffer* payload);
  // Its staged file; null when it is not open yet, or given up.
  static std::shared_ptr<storage::StagedFile> note_checksum(IncomingFile& file, std::uint64_t index,
                                                            const wire::Checksum& checksum);
  Status open_staged(IncomingFile& file);
  Result<wire::Checksum> verify_chunk(const wire::FrameHeader& header,
                                      std::span<const std::byte> payload);
  Status unpack(const wire::FrameHeader& header, std::span<const std::byte> payload,
                std::vector<StagedEntry>& staged);
  // Where files of one directory are staged; remembered while a pack's files follow each other in
  // it.
  struct StagingPlace {
    std::uint64_t parent = 0;
    storage::DirectoryReference staging;
  };
  Result<StagedEntry> write_packed(const std::shared_ptr<IncomingFile>& file,
                                   const wire::PackedEntry& packed, StagingPlace& place);
  Result<std::unique_ptr<storage::StagedFile>> stage(const wire::ManifestEntry& entry,
                                                     DirectIo direct, StagingPlace& place);
  // Publishes the file if everything of it has come.
  io::Task<Status> finish_if_complete(io::Io* io, std::shared_ptr<IncomingFile> file);
  Status finish_file(const std::shared_ptr<IncomingFile>& file);
  void give_up(IncomingFile& file, const Status& status);

  Session& session_;
  storage::DirectoryTree& directories_;
  storage::StagingArea& staging_;
  IncomingTable& incoming_;
  ChunkJournal& journal_;
  Committer& committer_;
  std::deque<IncomingStream> streams_;
  // Complete files that are still open because their fsync takes its time; beyond this the streams
  // wait.
  static constexpr std::size_t kFinishingMax = 8;
  FlowWindow finishing_{kFinishingMax};
  std::atomic<std::uint64_t> bytes_written_{0};
};

}  // namespace fgsync::transfer
