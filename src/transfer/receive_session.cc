#include "transfer/receive_session.h"

#include <set>

#include "base/mark.h"

namespace fgsync::transfer {
namespace {

constexpr std::size_t kOpenDirectoriesMax = 12;
// Small files that found no company are published after at most two of these.
constexpr std::chrono::milliseconds kCommitInterval{500};

}  // namespace

ReceiveSession::ReceiveSession(Session& session, const ResolvedTarget& target, io::FileHandle root,
                               std::string session_name)
    : session_(session),
      directories_(session.files(), std::move(root), kOpenDirectoriesMax),
      staging_(session.files(), std::move(session_name)),
      committer_(session, directories_, target.root),
      planner_(session, directories_, staging_, incoming_, target),
      worker_(session, directories_, staging_, incoming_, committer_),
      commit_pause_(session.control_io()) {}

io::Task<void> ReceiveSession::run() {
  io::Io& io = session_.control_io();
  io::TaskGroup writing;
  io::TaskGroup arriving;
  io::TaskGroup committing;
  writing.spawn(io, write_control(session_));

  // Plan what is announced while what was asked for comes in.
  committing.spawn(io, commit_regularly());
  arriving.spawn(io, read_announcements());
  for (std::size_t i = 0; i < session_.streams.size(); ++i) {
    arriving.spawn(*session_.streams[i].io, worker_.run_stream(i));
  }
  co_await arriving.join(io);
  co_await finishing_.join(io);
  commit_pause_.end();
  co_await committing.join(io);

  // Everything has come: publish the rest, tidy up, set the directories' own metadata, make it
  // durable.
  if (!session_.failed()) co_await io::run_blocking(io, [this] { land(); });
  if (session_.failed()) co_await io::run_blocking(io, [this] { clean_staging(); });

  if (!session_.failed()) {
    push_errors_and_notes(session_);
    session_.push(summary());
    co_await read_sender_summary();
  }
  session_.close_outbox();
  co_await writing.join(io);
  session_.control().shutdown();  // the sender waits for this end
  incoming_.clear();
}

io::Task<void> ReceiveSession::read_announcements() {
  while (true) {
    Result<wire::Message> message = co_await receive_message(session_);
    if (!message.ok()) co_return;
    Status handled;
    const bool announcing = !plan_complete_.load(std::memory_order_relaxed);
    auto* batch = std::get_if<wire::ManifestBatch>(&*message);
    const auto* end = std::get_if<wire::ManifestEnd>(&*message);
    if (batch != nullptr && announcing) {
      handled = co_await on_manifest(std::move(*batch));
    } else if (end != nullptr && announcing) {
      plan_complete_.store(true, std::memory_order_release);
      if (end->entries != planner_.entries()) {
        handled = Status(ErrorCode::kProtocolError, "the manifest has not come whole");
      }
    } else if (const auto* file_end = std::get_if<wire::FileEnd>(&*message)) {
      finishing_.spawn(session_.control_io(), on_file_end(*file_end));
    } else if (std::holds_alternative<wire::DataEnd>(*message) && !announcing) {
      co_return;
    } else {
      handled = Status(ErrorCode::kProtocolError, "a message that a sender does not send now");
    }
    if (!handled.ok()) {
      session_.fail(handled.with_context(session_.peer()));
      co_return;
    }
  }
}

io::Task<Status> ReceiveSession::on_manifest(wire::ManifestBatch batch) {
  Result<wire::PlanBatch> plan = Status(ErrorCode::kIoError, "not planned");
  co_await io::run_blocking(session_.control_io(), [&] { plan = planner_.plan(std::move(batch)); });
  if (!plan.ok()) co_return plan.status();
  files_announced_.store(planner_.files(), std::memory_order_relaxed);
  files_unchanged_.store(planner_.files_unchanged(), std::memory_order_relaxed);
  bytes_wanted_.store(planner_.bytes_wanted(), std::memory_order_relaxed);
  session_.add_progress();
  session_.push(std::move(*plan));
  co_return Status();
}

io::Task<void> ReceiveSession::on_file_end(wire::FileEnd end) {
  Status finished = co_await worker_.on_file_end(&session_.control_io(), end);
  if (!finished.ok()) session_.fail(finished.with_context(session_.peer()));
}

io::Task<void> ReceiveSession::commit_regularly() {
  while (true) {
    const bool on = co_await commit_pause_.sleep_for(kCommitInterval);
    if (!on) co_return;
    if (!committer_.is_stale()) continue;
    mark("commit_stale_batch");
    co_await io::run_blocking(session_.control_io(), [this] { committer_.flush(); });
  }
}

// The last steps, in the order that makes exit 0 true: names, then directories, then one flush that
// makes both durable.
void ReceiveSession::land() {
  committer_.flush();
  session_.settle_lost_stream(/*at_once=*/true);
  if (incoming_.unsettled() > 0) {
    session_.fail(Status(ErrorCode::kProtocolError, "files that were asked for have not come")
                      .with_context(session_.peer()));
  }
  if (!session_.failed()) planner_.publish_markers();
  clean_staging();
  if (session_.failed() || session_.parameters.dry_run) return;
  // Also those on which only a mode or a time will change: nothing was staged there.
  std::vector<storage::DirectoryReference> mounts = planner_.mount_directories();
  planner_.finish_directories();
  if (session_.files().has_refused_owners()) {
    session_.errors().note("owners could not be kept: the target refuses to give files away");
  }
  auto root = directories_.open(0);
  if (!root.ok()) return session_.fail(root.status());
  mounts.push_back(*root);
  sync_mounts(mounts);
}

void ReceiveSession::sync_mounts(const std::vector<storage::DirectoryReference>& mounts) {
  const Session::Flushing flushing(session_);
  transport::StageTimer syncing(session_.meter(), Stage::kSync, 0);
  std::set<const io::FileHandle*> done;
  for (const storage::DirectoryReference& mount : mounts) {
    if (!done.insert(mount.get()).second) continue;
    Status synced = session_.files().sync_file_system(*mount);
    if (!synced.ok()) return session_.fail(synced);
  }
}

void ReceiveSession::clean_staging() {
  incoming_.clear();
  Status cleaned = staging_.clean();
  if (!cleaned.ok()) session_.errors().note("cleaning the state directory: " + cleaned.message());
  if (const std::uint64_t removed = staging_.removed_leftovers(); removed > 0) {
    session_.errors().note("removed " + std::to_string(removed) +
                           " leftovers of earlier runs that did not end by themselves");
  }
}

io::Task<void> ReceiveSession::read_sender_summary() {
  while (true) {
    Result<wire::Message> message = co_await receive_message(session_);
    if (!message.ok()) co_return;
    if (auto* errors = std::get_if<wire::ErrorBatch>(&*message)) {
      for (ErrorEntry& error : errors->errors) session_.add_peer_error(std::move(error));
    } else if (const auto* notes = std::get_if<wire::NoteBatch>(&*message)) {
      for (const std::string& note : notes->notes) session_.add_peer_note(note);
    } else if (const auto* summary = std::get_if<wire::Summary>(&*message)) {
      sender_summary_ = *summary;
      session_.complete();
      co_return;
    } else {
      session_.fail(Status(ErrorCode::kProtocolError, "a message that a sender does not send now")
                        .with_context(session_.peer()));
      co_return;
    }
  }
}

wire::Checksum ReceiveSession::digest() const {
  wire::TreeDigest digest = planner_.digest();
  digest.add(committer_.digest());
  return digest.value();
}

wire::Summary ReceiveSession::summary() {
  wire::Summary summary;
  summary.figures = session_.figures();
  summary.files.total = planner_.files();
  summary.files.unchanged = planner_.files_unchanged();
  summary.files.sent = committer_.files_replicated();
  summary.bytes.total = planner_.bytes();
  summary.bytes.unchanged = planner_.bytes_unchanged();
  summary.bytes.sent = committer_.bytes_replicated();
  summary.digest = digest();
  summary.errors_total = session_.errors().total();
  return summary;
}

ProgressSnapshot ReceiveSession::progress() const {
  ProgressSnapshot snapshot;
  snapshot.total_known = plan_complete_.load(std::memory_order_acquire);
  snapshot.bytes_done = worker_.bytes_written();
  snapshot.bytes_total = bytes_wanted_.load(std::memory_order_relaxed);
  snapshot.files_done =
      files_unchanged_.load(std::memory_order_relaxed) + committer_.files_replicated();
  snapshot.files_total = files_announced_.load(std::memory_order_relaxed);
  snapshot.streams = std::uint32_t(session_.streams.size());
  return snapshot;
}

}  // namespace fgsync::transfer
