#include "transfer/send_session.h"

#include "base/limits.h"
#include "base/mark.h"
#include "transfer/changes.h"
#include "transfer/outgoing_digest.h"
#include "transfer/resources.h"

namespace fgsync::transfer {
namespace {

storage::SourceIdentity identity_of(const OutgoingEntry& outgoing) {
  const wire::ManifestEntry& entry = outgoing.entry;
  storage::SourceIdentity identity{.size = entry.size,
                                   .mtime = {entry.mtime_seconds, entry.mtime_nanoseconds},
                                   .ctime = {},
                                   .inode = {}};
  if (outgoing.held.empty()) return identity;
  identity.ctime = io::FileTime{entry.ctime_seconds, entry.ctime_nanoseconds};
  identity.inode = entry.inode;
  return identity;
}

}  // namespace

SendSession::SendSession(Session& session, const std::vector<ResolvedSource>& sources,
                         wire::TargetAccept accept)
    : session_(session),
      sources_(sources),
      accept_(std::move(accept)),
      window_(limits::kEntriesOutstandingMax),
      scheduler_(session.parameters.chunk_bytes, session.parameters.packed_file_bytes_max()),
      limiter_(session.environment(), session.parameters.bandwidth_limit),
      manifest_(session, outgoing_, window_),
      recovery_(session),
      worker_(session, scheduler_, limiter_, recovery_) {
  session.hear_frames(
      [this](const std::vector<std::uint64_t>& frames) { return worker_.on_frames(frames); });
  if (session.parameters.changes.comparison == Comparison::kContents) {
    lanes_ = std::make_unique<DigestLanes>(session.runtime(), session.files(), session.meter(),
                                           automatic_streams(session.environment().usable_cores()));
  }
  session.on_failure([this] {
    if (lanes_) lanes_->stop();
    scheduler_.close();
    worker_.stop();
    window_.close();
    limiter_.stop();
  });
}

io::Task<void> SendSession::run() {
  io::Io& io = session_.control_io();
  io::TaskGroup writing;
  io::TaskGroup talking;
  io::TaskGroup sending;
  io::TaskGroup recovering;
  writing.spawn(io, write_control(session_));
  if (lanes_) {
    Status started = lanes_->start();
    if (!started.ok()) session_.fail(started);
  }

  // Announce, be answered and send, all at the same time.
  talking.spawn(io, announce());
  talking.spawn(io, read_answers());
  recovering.spawn(io, recovery_.stop_when(scheduler_.drained()));
  for (std::size_t i = 0; i < session_.streams.size(); ++i) {
    sending.spawn(session_.streams[i]->io(), worker_.run_stream(i));
  }
  co_await sending.join(io);
  // All that was asked for has arrived, by whatever streams are left.
  co_await recovering.join(io);
  if (lanes_) {
    lanes_->close();
    co_await lanes_->join();
  }
  session_.push(wire::DataEnd{.failed = session_.errors().failed_count(),
                              .changed = session_.errors().changed_count()});
  co_await talking.join(io);

  // Everything is settled at the receiver (or the session has failed): the digests must agree.
  Status agreed = session_.failed() ? Status() : compare_digests();
  if (!agreed.ok()) session_.fail(agreed);
  if (!session_.failed()) {
    push_errors(session_);
    push_notes(session_);
    session_.push(summary());
    session_.complete();
  }
  session_.close_outbox();
  co_await writing.join(io);
  if (!session_.failed()) co_await linger(session_);
}

io::Task<void> SendSession::announce() {
  co_await manifest_.run(sources_, accept_);
  announced_all_ = true;
  finish_planning_if_complete();
}

io::Task<void> SendSession::read_answers() {
  for (bool finished = false; !finished;) {
    Result<wire::Message> message = co_await receive_message(session_);
    if (!message.ok()) co_return;
    Status handled = on_message(*message, finished);
    if (!handled.ok()) {
      session_.fail(handled.with_context(session_.peer()));
      co_return;
    }
  }
}

Status SendSession::on_message(wire::Message& message, bool& finished) {
  if (const auto* plan = std::get_if<wire::PlanBatch>(&message)) return on_plan(*plan);
  if (auto* held = std::get_if<wire::HeldChunks>(&message)) return on_held(*held);
  if (const auto* settled = std::get_if<wire::SettledBatch>(&message)) return on_settled(*settled);
  if (const auto* ended = std::get_if<wire::StreamEnded>(&message)) {
    return worker_.on_stream_ended(*ended);
  }
  if (auto* errors = std::get_if<wire::ErrorBatch>(&message)) {
    for (ErrorEntry& error : errors->errors) session_.add_peer_error(std::move(error));
    return Status();
  }
  if (const auto* notes = std::get_if<wire::NoteBatch>(&message)) {
    for (const std::string& note : notes->notes) session_.add_peer_note(note);
    return Status();
  }
  if (const auto* summary = std::get_if<wire::Summary>(&message)) {
    if (!outgoing_.empty() || !announced_all_) {
      return Status(ErrorCode::kProtocolError, "summary before everything was settled");
    }
    receiver_summary_ = *summary;
    finished = true;
    return Status();
  }
  return Status(ErrorCode::kProtocolError, "a message that a receiver does not send");
}

Status SendSession::on_held(wire::HeldChunks& held) {
  // A peer does not decide how much memory its claims take.
  held_chunks_ += held.checksums.size();
  bool accepted = held_chunks_ <= limits::kFileChunksMax;
  const bool known = outgoing_.with(held.entry, [&](OutgoingEntry& outgoing) {
    const std::uint64_t size = outgoing.entry.size;
    const std::uint64_t chunk_bytes = session_.parameters.chunk_bytes;
    const std::uint64_t first_free =
        outgoing.held.empty()
            ? 0
            : outgoing.held.back().first_chunk + outgoing.held.back().checksums.size();
    accepted &= outgoing.entry.type == wire::EntryType::kRegular && !outgoing.file &&
                size > session_.parameters.packed_file_bytes_max() &&
                held.first_chunk >= first_free &&
                held.first_chunk + held.checksums.size() <= (size + chunk_bytes - 1) / chunk_bytes;
    if (accepted) outgoing.held.push_back(std::move(held));
  });
  if (known && accepted) return Status();
  return Status(ErrorCode::kProtocolError, "says that it has chunks that there are not");
}

Status SendSession::on_plan(const wire::PlanBatch& plan) {
  std::vector<std::shared_ptr<OutgoingFile>> wanted;
  std::vector<DigestRequest> to_compare;
  for (const wire::PlanDecision& decision : plan.decisions) {
    if (decision.action == wire::PlanAction::kCompare) {
      FGSYNC_RETURN_IF_ERROR(on_compare(decision.id, to_compare));
      continue;
    }
    ++decided_;
    compared_.erase(decision.id);
    if (decision.action == wire::PlanAction::kSend) {
      bool is_regular = false;
      const bool known = outgoing_.with(decision.id, [&](OutgoingEntry& outgoing) {
        is_regular = outgoing.entry.type == wire::EntryType::kRegular && !outgoing.file &&
                     !session_.parameters.dry_run;
        if (!is_regular) return;
        outgoing.file = std::make_shared<OutgoingFile>(
            decision.id, *outgoing.tree, outgoing.directory, outgoing.name, identity_of(outgoing),
            session_.parameters.chunk_bytes, outgoing.held);
        outgoing.held = {};
        outgoing.differences = decision.differences;
        wanted.push_back(outgoing.file);
      });
      if (!known || !is_regular) {
        return Status(ErrorCode::kProtocolError, "asked for something that was not offered");
      }
      const std::uint64_t held = wanted.back()->held_bytes();
      bytes_wanted_.fetch_add(wanted.back()->size() - held, std::memory_order_relaxed);
      bytes_held_.fetch_add(held, std::memory_order_relaxed);
      continue;
    }
    std::optional<OutgoingEntry> outgoing = outgoing_.take(decision.id);
    if (!outgoing || outgoing->file) {
      return Status(ErrorCode::kProtocolError, "a decision about an unknown entry");
    }
    if (outgoing->in_window) window_.remove(1);
    const bool regular = outgoing->entry.type == wire::EntryType::kRegular;
    if (regular) files_settled_.fetch_add(1, std::memory_order_relaxed);
    if (decision.action == wire::PlanAction::kFailed) continue;
    if (decision.action == wire::PlanAction::kPassedOver) {
      if (may_pass_over(session_.parameters)) continue;
      return Status(ErrorCode::kProtocolError, "passed over what it was not to pass over");
    }
    if (regular && decision.action != wire::PlanAction::kUnchanged &&
        !session_.parameters.dry_run) {
      return Status(ErrorCode::kProtocolError, "a file settled without its contents");
    }
    if (decision.action == wire::PlanAction::kUnchanged && regular) {
      files_unchanged_.fetch_add(1, std::memory_order_relaxed);
      bytes_unchanged_.fetch_add(outgoing->entry.size, std::memory_order_relaxed);
    }
    const std::string path = outgoing->target_path();
    digest_.add(wire::describe(outgoing->entry, path, wire::Checksum{}));
    session_.announce_change(path, outgoing->entry, decision.differences,
                             decision.action == wire::PlanAction::kMade);
  }
  scheduler_.add(std::move(wanted));
  if (!to_compare.empty()) lanes_->add(std::move(to_compare));
  session_.add_progress(plan.decisions.size());
  finish_planning_if_complete();
  return Status();
}

Status SendSession::on_compare(std::uint64_t id, std::vector<DigestRequest>& requests) {
  bool accepted = false;
  outgoing_.with(id, [&](const OutgoingEntry& outgoing) {
    accepted = lanes_ != nullptr && outgoing.entry.type == wire::EntryType::kRegular &&
               !outgoing.file && compared_.insert(id).second;
    if (accepted) requests.push_back(digest_request(session_, outgoing));
  });
  if (accepted) return Status();
  return Status(ErrorCode::kProtocolError, "asked for a digest of something that was not offered");
}

Status SendSession::on_settled(const wire::SettledBatch& settled) {
  for (const wire::EntrySettled& entry : settled.entries) {
    std::optional<OutgoingEntry> outgoing = outgoing_.take(entry.id);
    if (!outgoing || !outgoing->file) {
      return Status(ErrorCode::kProtocolError, "settled something that was not being sent");
    }
    if (outgoing->in_window) window_.remove(1);
    files_settled_.fetch_add(1, std::memory_order_relaxed);
    if (!entry.replicated) {
      mark("send_given_up_by_receiver");
      // The receiver gave it up: lanes that come to its remaining chunks skip them.
      outgoing->file->withdraw();
      continue;
    }
    if (outgoing->file->is_withdrawn()) {
      return Status(ErrorCode::kProtocolError, "published a file that was withdrawn");
    }
    const std::optional<wire::Checksum> digest = outgoing->file->digest();
    if (!digest) {
      return Status(ErrorCode::kProtocolError, "published a file that has not been sent whole");
    }
    files_sent_.fetch_add(1, std::memory_order_relaxed);
    bytes_replicated_.fetch_add(outgoing->entry.size, std::memory_order_relaxed);
    bytes_resumed_.fetch_add(outgoing->file->held_bytes(), std::memory_order_relaxed);
    const std::string path = outgoing->target_path();
    digest_.add(wire::describe(outgoing->entry, path, *digest));
    session_.announce_change(path, outgoing->entry, outgoing->differences, true);
  }
  session_.add_progress(settled.entries.size());
  return Status();
}

void SendSession::finish_planning_if_complete() {
  if (!announced_all_ || decided_ != manifest_.entries()) return;
  plan_complete_.store(true, std::memory_order_release);
  scheduler_.finish();
}

Status SendSession::compare_digests() const {
  if (receiver_summary_.digest == digest_.value()) return Status();
  return Status(ErrorCode::kChecksumMismatch,
                "the digests of source and target differ: " + digest_.value().hex() + " and " +
                    receiver_summary_.digest.hex());
}

ProgressSnapshot SendSession::progress() const {
  ProgressSnapshot snapshot;
  snapshot.total_known = plan_complete_.load(std::memory_order_acquire);
  snapshot.bytes_done = worker_.bytes_sent();
  snapshot.bytes_total = bytes_wanted_.load(std::memory_order_relaxed);
  snapshot.files_done = files_settled_.load(std::memory_order_relaxed);
  snapshot.files_total = manifest_.files();
  snapshot.streams = std::uint32_t(session_.streams.size());
  return snapshot;
}

FileFigures SendSession::files() const {
  FileFigures figures;
  figures.total = manifest_.files();
  figures.sent = files_sent_.load();
  figures.unchanged = files_unchanged_.load();
  return figures;
}

ByteFigures SendSession::bytes() const {
  ByteFigures figures;
  figures.total = manifest_.bytes();
  figures.sent = bytes_replicated_.load() - bytes_resumed_.load();
  figures.resumed = bytes_resumed_.load();
  figures.unchanged = bytes_unchanged_.load();
  for (const auto& stream : session_.streams) figures.wire += stream->wire_bytes();
  return figures;
}

wire::Summary SendSession::summary() const {
  return wire::Summary{.figures = session_.figures(),
                       .files = files(),
                       .bytes = bytes(),
                       .digest = digest_.value(),
                       .errors_total = session_.errors().total()};
}

}  // namespace fgsync::transfer
