#include "transfer/compare_sender.h"

#include <utility>

#include "base/limits.h"
#include "transfer/outgoing_digest.h"
#include "transfer/resources.h"

namespace fgsync::transfer {

CompareSender::CompareSender(Session& session, const std::vector<ResolvedSource>& sources,
                             wire::TargetAccept accept)
    : session_(session),
      sources_(sources),
      accept_(std::move(accept)),
      window_(limits::kEntriesOutstandingMax),
      manifest_(session, outgoing_, window_),
      lanes_(session.runtime(), session.files(), session.meter(),
             automatic_streams(session.environment().usable_cores())) {
  session.on_failure([this] {
    window_.close();
    lanes_.stop();
  });
}

io::Task<void> CompareSender::run() {
  io::Io& io = session_.control_io();
  io::TaskGroup writing;
  io::TaskGroup talking;
  writing.spawn(io, write_control(session_));
  Status started = lanes_.start();
  if (!started.ok()) session_.fail(started);

  // Announce, be answered and read, all at the same time.
  talking.spawn(io, announce());
  talking.spawn(io, read_answers());
  co_await lanes_.join();
  session_.push(wire::DataEnd{.failed = session_.errors().failed_count(),
                              .changed = session_.errors().changed_count()});
  co_await talking.join(io);

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

io::Task<void> CompareSender::announce() {
  co_await manifest_.run(sources_, accept_);
  announced_all_ = true;
  close_lanes_if_planned();
}

io::Task<void> CompareSender::read_answers() {
  for (bool finished = false; !finished;) {
    Result<wire::Message> message = co_await receive_message(session_);
    if (!message.ok()) break;
    Status handled = on_message(*message, finished);
    if (handled.ok()) continue;
    session_.fail(handled.with_context(session_.peer()));
    break;
  }
  lanes_.close();
}

Status CompareSender::on_message(wire::Message& message, bool& finished) {
  if (const auto* plan = std::get_if<wire::PlanBatch>(&message)) return on_plan(*plan);
  if (const auto* settled = std::get_if<wire::SettledBatch>(&message)) return on_settled(*settled);
  if (auto* found = std::get_if<wire::DifferenceBatch>(&message)) {
    for (Difference& difference : found->differences) {
      session_.announce_difference(std::move(difference));
    }
    return Status();
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
  return Status(ErrorCode::kProtocolError, "a message that a receiver does not send now");
}

Status CompareSender::on_plan(const wire::PlanBatch& plan) {
  std::vector<DigestRequest> requests;
  for (const wire::PlanDecision& decision : plan.decisions) {
    ++decided_;
    if (decision.action == wire::PlanAction::kSend) {
      bool accepted = false;
      outgoing_.with(decision.id, [&](const OutgoingEntry& outgoing) {
        const wire::ManifestEntry& entry = outgoing.entry;
        accepted = entry.type == wire::EntryType::kRegular && asked_for_.insert(entry.id).second;
        if (!accepted) return;
        bytes_wanted_.fetch_add(entry.size, std::memory_order_relaxed);
        requests.push_back(digest_request(session_, outgoing));
      });
      if (accepted) continue;
      return Status(ErrorCode::kProtocolError, "asked for something that was not offered");
    }
    std::optional<OutgoingEntry> outgoing = outgoing_.take(decision.id);
    if (!outgoing || asked_for_.contains(decision.id)) {
      return Status(ErrorCode::kProtocolError, "a decision about an unknown entry");
    }
    if (outgoing->in_window) window_.remove(1);
    if (outgoing->entry.type == wire::EntryType::kRegular) {
      files_settled_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  lanes_.add(std::move(requests));
  session_.add_progress(plan.decisions.size());
  close_lanes_if_planned();
  return Status();
}

Status CompareSender::on_settled(const wire::SettledBatch& settled) {
  for (const wire::EntrySettled& entry : settled.entries) {
    std::optional<OutgoingEntry> outgoing = outgoing_.take(entry.id);
    if (!outgoing || asked_for_.erase(entry.id) == 0) {
      return Status(ErrorCode::kProtocolError, "settled something that was not asked for");
    }
    if (outgoing->in_window) window_.remove(1);
    files_settled_.fetch_add(1, std::memory_order_relaxed);
    if (!entry.replicated) continue;
    files_same_.fetch_add(1, std::memory_order_relaxed);
    bytes_same_.fetch_add(outgoing->entry.size, std::memory_order_relaxed);
  }
  session_.add_progress(settled.entries.size());
  return Status();
}

void CompareSender::close_lanes_if_planned() {
  if (!announced_all_ || decided_ != manifest_.entries()) return;
  plan_complete_.store(true, std::memory_order_release);
  lanes_.close();
}

ProgressSnapshot CompareSender::progress() const {
  ProgressSnapshot snapshot;
  snapshot.total_known = plan_complete_.load(std::memory_order_acquire);
  snapshot.bytes_done = session_.meter().figures(Stage::kRead).bytes;
  snapshot.bytes_total = bytes_wanted_.load(std::memory_order_relaxed);
  snapshot.files_done = files_settled_.load(std::memory_order_relaxed);
  snapshot.files_total = manifest_.files();
  snapshot.streams = std::uint32_t(lanes_.lanes());
  return snapshot;
}

FileFigures CompareSender::files() const {
  FileFigures figures;
  figures.total = manifest_.files();
  figures.unchanged = files_same_.load();
  return figures;
}

ByteFigures CompareSender::bytes() const {
  ByteFigures figures;
  figures.total = manifest_.bytes();
  figures.unchanged = bytes_same_.load();
  return figures;
}

wire::Summary CompareSender::summary() const {
  wire::Summary summary;
  summary.figures = session_.figures();
  summary.files = files();
  summary.bytes = bytes();
  summary.errors_total = session_.errors().total();
  return summary;
}

}  // namespace fgsync::transfer
