#include "transfer/send_session.h"

#include "base/limits.h"
#include "base/mark.h"

namespace fgsync::transfer {

SendSession::SendSession(Session& session, const std::vector<ResolvedSource>& sources,
                         wire::TargetAccept accept)
    : session_(session),
      sources_(sources),
      accept_(std::move(accept)),
      window_(limits::kEntriesOutstandingMax),
      scheduler_(session.parameters.chunk_bytes, session.parameters.packed_file_bytes_max()),
      limiter_(session.environment(), session.parameters.bandwidth_limit),
      manifest_(session, outgoing_, window_),
      worker_(session, scheduler_, limiter_) {
  session.on_failure([this] {
    scheduler_.close();
    window_.close();
    limiter_.stop();
  });
}

io::Task<void> SendSession::run() {
  io::Io& io = session_.control_io();
  io::TaskGroup writing;
  io::TaskGroup talking;
  io::TaskGroup sending;
  writing.spawn(io, write_control(session_));

  // Announce, be answered and send, all at the same time.
  talking.spawn(io, announce());
  talking.spawn(io, read_answers());
  for (std::size_t i = 0; i < session_.streams.size(); ++i) {
    sending.spawn(*session_.streams[i].io, worker_.run_stream(i));
  }
  co_await sending.join(io);
  // Without streams (a dry run) nobody has waited for the end of the planning yet.
  if (session_.streams.empty()) (void)co_await scheduler_.next(io);
  session_.push(wire::DataEnd{});
  co_await talking.join(io);

  // Everything is settled at the receiver (or the session has failed): the digests must agree.
  Status agreed = session_.failed() ? Status() : compare_digests();
  if (!agreed.ok()) session_.fail(agreed);
  if (!session_.failed()) {
    push_errors_and_notes(session_);
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
  if (const auto* settled = std::get_if<wire::SettledBatch>(&message)) return on_settled(*settled);
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

Status SendSession::on_plan(const wire::PlanBatch& plan) {
  std::vector<std::shared_ptr<OutgoingFile>> wanted;
  for (const wire::PlanDecision& decision : plan.decisions) {
    ++decided_;
    if (decision.action == wire::PlanAction::kSend) {
      bool is_regular = false;
      const bool known = outgoing_.with(decision.id, [&](OutgoingEntry& outgoing) {
        is_regular = outgoing.entry.type == wire::EntryType::kRegular && !outgoing.file &&
                     !session_.parameters.dry_run;
        if (!is_regular) return;
        outgoing.file = std::make_shared<OutgoingFile>(
            decision.id, *outgoing.tree, outgoing.directory, outgoing.name,
            storage::SourceIdentity{
                outgoing.entry.size,
                {outgoing.entry.mtime_seconds, outgoing.entry.mtime_nanoseconds}},
            session_.parameters.chunk_bytes);
        wanted.push_back(outgoing.file);
      });
      if (!known || !is_regular) {
        return Status(ErrorCode::kProtocolError, "asked for something that was not offered");
      }
      bytes_wanted_.fetch_add(wanted.back()->size(), std::memory_order_relaxed);
      continue;
    }
    std::optional<OutgoingEntry> outgoing = outgoing_.take(decision.id);
    if (!outgoing || outgoing->file) {
      return Status(ErrorCode::kProtocolError, "a decision about an unknown entry");
    }
    window_.remove(1);
    const bool regular = outgoing->entry.type == wire::EntryType::kRegular;
    if (regular) files_settled_.fetch_add(1, std::memory_order_relaxed);
    if (decision.action == wire::PlanAction::kFailed) continue;
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
    if (decision.action == wire::PlanAction::kMade) session_.announce_path(path, outgoing->entry);
  }
  scheduler_.add(std::move(wanted));
  session_.add_progress();
  finish_planning_if_complete();
  return Status();
}

Status SendSession::on_settled(const wire::SettledBatch& settled) {
  for (const wire::EntrySettled& entry : settled.entries) {
    std::optional<OutgoingEntry> outgoing = outgoing_.take(entry.id);
    if (!outgoing || !outgoing->file) {
      return Status(ErrorCode::kProtocolError, "settled something that was not being sent");
    }
    window_.remove(1);
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
    const std::string path = outgoing->target_path();
    digest_.add(wire::describe(outgoing->entry, path, *digest));
    session_.announce_path(path, outgoing->entry);
  }
  session_.add_progress();
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
  figures.sent = bytes_replicated_.load();
  figures.unchanged = bytes_unchanged_.load();
  for (const DataStream& data : session_.streams) figures.wire += data.stream->wire_bytes();
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
