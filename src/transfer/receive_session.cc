#include "transfer/receive_session.h"

#include <set>

#include "base/mark.h"
#include "transfer/closing.h"
#include "transfer/left_tree.h"
#include "transfer/resources.h"

namespace fgsync::transfer {
namespace {

constexpr std::size_t kOpenDirectoriesMax = 12;
// Small files that found no company are published after at most two of these.
constexpr std::chrono::milliseconds kCommitInterval{500};
// What a slow run has written is journaled so often: it is what a kill costs at the most. At full
// speed commits come by the bytes written (ChunkJournal::wants_commit), and more often.
constexpr std::chrono::milliseconds kJournalInterval{100};

}  // namespace

ReceiveSession::ReceiveSession(Session& session, const ResolvedTarget& target, io::FileHandle root,
                               std::string session_name, const wire::Checksum& transfer,
                               TreeSwitch* tree_switch)
    : session_(session),
      root_display_(target.root),
      typed_root_(target.typed_root),
      tree_switch_(tree_switch),
      directories_(session.files(), std::move(root), kOpenDirectoriesMax),
      journal_(session, transfer, target.root),
      staging_(session.files(), std::move(session_name),
               [this](const storage::DirectoryReference& leftover, bool may_take_over) {
                 return journal_.judge(leftover, may_take_over, staging_);
               }),
      receipt_(session.environment(), directories_,
               session.parameters.durability != Durability::kNone,
               [&session](const std::string& note) { session.errors().note(note); }),
      lock_(session, directories_, target.root, tree_switch == nullptr ? target.typed_root : ""),
      committer_(session, directories_, receipt_, target.root),
      planner_(session, directories_, staging_, incoming_, journal_, committer_, receipt_, target,
               tree_switch),
      recovery_(session),
      worker_(session, directories_, staging_, incoming_, journal_, committer_, recovery_),
      commit_pause_(session.control_io()),
      journal_pause_(session.control_io()) {
  session.tell_errors_on_failure();
  session.tell_frames([this] { return worker_.frames(); });
  if (session.parameters.changes.comparison == Comparison::kContents) {
    lanes_ = std::make_unique<DigestLanes>(session.runtime(), session.files(), session.meter(),
                                           automatic_streams(session.environment().usable_cores()));
  }
  session.on_failure([this] {
    all_come_.set();
    if (lanes_) lanes_->stop();
  });
}

io::Task<void> ReceiveSession::run() {
  io::Io& io = session_.control_io();
  io::TaskGroup writing;
  io::TaskGroup arriving;
  io::TaskGroup committing;
  writing.spawn(io, write_control(session_));

  if (lanes_) {
    Status started = lanes_->start();
    if (!started.ok()) session_.fail(started);
  }

  // Plan what is announced while what was asked for comes in.
  committing.spawn(io, commit_regularly());
  committing.spawn(io, journal_regularly());
  arriving.spawn(io, read_announcements());
  for (std::size_t i = 0; i < session_.streams.size(); ++i) {
    arriving.spawn(session_.streams[i]->io(), worker_.run_stream(i));
  }
  arriving.spawn(io, recovery_.stop_when(all_come_));
  co_await arriving.join(io);
  if (lanes_) {
    lanes_->close();
    co_await lanes_->join();
  }
  co_await finishing_.join(io);
  commit_pause_.end();
  journal_pause_.end();
  co_await committing.join(io);

  // Everything has come: publish the rest, tidy up, set the directories' own metadata, make it
  // durable.
  if (!session_.failed()) co_await io::run_blocking(io, [this] { land(); });
  if (session_.failed()) co_await io::run_blocking(io, [this] { leave_staging(); });

  if (!session_.failed()) {
    push_errors(session_);
    push_notes(session_);
    session_.push(summary());
    co_await receive_last_words(session_, &sender_summary_);
  }
  session_.close_outbox();
  co_await writing.join(io);
  session_.control().shutdown();  // the sender waits for this end
  incoming_.clear();
  lock_.release();
}

io::Task<void> ReceiveSession::read_announcements() {
  co_await lock_at_once();
  if (session_.failed()) co_return;
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
    } else if (const auto* digest = std::get_if<wire::FileEnd>(&*message);
               digest != nullptr && compared_.contains(digest->entry)) {
      handled = co_await on_their_digest(*digest);
    } else if (const auto* file_end = std::get_if<wire::FileEnd>(&*message)) {
      finishing_.spawn(session_.control_io(), on_file_end(*file_end));
    } else if (const auto* stream_ended = std::get_if<wire::StreamEnded>(&*message)) {
      handled = worker_.on_stream_ended(*stream_ended);
    } else if (const auto* data_end = std::get_if<wire::DataEnd>(&*message);
               data_end != nullptr && !announcing && compared_.empty()) {
      sender_end_ = *data_end;
      all_come_.set();
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

void ReceiveSession::take_figures() {
  files_announced_.store(planner_.files(), std::memory_order_relaxed);
  files_left_.store(planner_.files_unchanged() + planner_.files_passed_over(),
                    std::memory_order_relaxed);
  bytes_wanted_.store(planner_.bytes_wanted(), std::memory_order_relaxed);
}

io::Task<Status> ReceiveSession::on_manifest(wire::ManifestBatch batch) {
  std::span<wire::ManifestEntry> left(batch.entries);
  while (true) {
    wire::PlanBatch plan;
    Result<std::size_t> planned = std::size_t{0};
    co_await io::run_blocking(session_.control_io(), [&] { planned = planner_.plan(left, plan); });
    if (!planned.ok()) co_return planned.status();
    if (session_.failed()) co_return Status();
    take_figures();
    session_.add_progress(plan.decisions.size());
    if (!plan.decisions.empty()) session_.push(std::move(plan));
    compare(planner_.take_undecided());
    left = left.subspan(*planned);
    if (left.empty()) co_return Status();
    // The first change of the target.
    const bool locked = co_await lock_.take(TargetLock::Missing::kMake);
    if (!locked) co_return Status();
    planner_.may_change();
  }
}

// Before anything is decided, as another run would make it untrue. Only a target without state,
// which nobody holds, is left as it is while there is nothing to change; but whoever does not want
// to wait wants to know at the start.
io::Task<void> ReceiveSession::lock_at_once() {
  if (session_.parameters.dry_run) co_return;
  if (tree_switch_ != nullptr) {
    const bool prepared = co_await prepare_tree();
    if (!prepared) co_return;
  }
  const bool fails = session_.parameters.fail_if_locked || tree_switch_ != nullptr;
  (void)co_await lock_.take(fails ? TargetLock::Missing::kMake : TargetLock::Missing::kLeave);
  if (lock_.is_taken()) planner_.may_change();
}

io::Task<bool> ReceiveSession::prepare_tree() {
  Result<io::FileHandle> tree = co_await tree_switch_->prepare();
  if (tree.ok()) {
    directories_.set_root(std::move(*tree));
  } else {
    session_.fail(tree.status());
  }
  co_return tree.ok();
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

io::Task<void> ReceiveSession::journal_regularly() {
  while (true) {
    const bool on = co_await journal_pause_.sleep_for(kJournalInterval);
    if (!on) co_return;
    if (!journal_.has_pending()) continue;
    co_await io::run_blocking(session_.control_io(), [this] { worker_.commit_journal(); });
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
  if (session_.failed() || session_.parameters.dry_run) return clean_staging();
  auto root = directories_.open(0);
  if (!root.ok()) return session_.fail(root.status());
  // Also those on which only a mode or a time will change: nothing was staged there.
  std::vector<storage::DirectoryReference> mounts = planner_.mount_directories();
  mounts.push_back(*root);
  const Status waiting = why_markers_wait();
  waiting.ok() ? committer_.publish_markers(mounts) : committer_.withhold_markers(waiting);
  auto status = session_.files().stat(**root);
  if (status.ok() && lock_.is_taken()) staging_.look_for_leftovers(status->mount, *root);
  clean_staging();
  if (session_.failed()) return;
  if (tree_switch_ != nullptr && waiting.ok()) {
    Status restored = tree_switch_->restore();
    if (!restored.ok()) return session_.fail(restored.with_context(root_display_));
  }
  planner_.finish_directories([this] { lock_.tidy(); });
  if (session_.files().has_refused_owners()) {
    session_.errors().note("owners could not be kept: the target refuses to give files away");
  }
  if (session_.parameters.durability == Durability::kNone) {
    session_.errors().note(
        "durability none, as asked: a power cut may still take what was replicated");
  }
  // Its failure is the session's.
  if (!committer_.sync_mounts(mounts).ok()) return;
  if (tree_switch_ != nullptr) return land_tree();
  settle_receipt();
  settle_left_tree(session_, typed_root_);
}

// What holds markers back holds the tree back: it would not be whole. Its receipt is settled when
// it stands: what a later run goes on with may become another tree.
void ReceiveSession::land_tree() {
  const Status waiting = why_markers_wait();
  if (!waiting.ok()) {
    mark("tree_held_back");
    session_.errors().add(root_display_, waiting);
    return tree_switch_->leave(session_.parameters.resume);
  }
  Status published = tree_switch_->publish();
  if (!published.ok()) return session_.fail(published);
  settle_receipt();
  tree_switch_->remove_old_tree();
}

// A marker says that all is there: so not when anything failed, on either side.
Status ReceiveSession::why_markers_wait() const {
  const std::uint64_t failed = session_.errors().failed_count() + sender_end_.failed;
  const std::uint64_t changed = session_.errors().changed_count() + sender_end_.changed;
  if (failed > 0) {
    return Status(ErrorCode::kIoError, "publishing: held back, since other files failed");
  }
  if (changed > 0) {
    return Status(ErrorCode::kSourceChanged,
                  "publishing: held back, since other files vanished or changed");
  }
  return Status();
}

void ReceiveSession::settle_receipt() {
  if (!lock_.is_taken()) return;  // there is no state directory, so no receipt
  const Session::Flushing flushing(session_);
  transport::StageTimer syncing(session_.meter(), Stage::kSync, 0);
  receipt_.settle();
}

// A run that failed leaves what the next one can go on with. But a full disk gets its room back,
// and what a failed flush has left is not trusted.
void ReceiveSession::leave_staging() {
  std::set<const io::FileHandle*> kept;
  const bool gives_back =
      session_.status().code() == ErrorCode::kNoSpace || session_.has_flush_failed();
  if (gives_back) {
    mark("staging_given_back");
  } else {
    worker_.commit_journal();
    kept = journal_.keep(incoming_.all());
  }
  clean_staging(kept);
  lock_.tidy();
  if (tree_switch_ != nullptr) tree_switch_->leave(!gives_back && session_.parameters.resume);
}

void ReceiveSession::clean_staging(const std::set<const io::FileHandle*>& kept) {
  incoming_.clear();
  Status cleaned = staging_.clean(kept);
  if (!cleaned.ok()) {
    mark("receive_state_not_cleaned");
    session_.errors().note("cleaning the state directory: " + cleaned.message());
  }
  if (const std::uint64_t removed = staging_.removed_leftovers(); removed > 0) {
    session_.errors().note("removed " + std::to_string(removed) +
                           " leftovers of earlier runs that did not end by themselves");
  }
}

wire::Checksum ReceiveSession::digest() const {
  wire::TreeDigest digest = planner_.digest();
  digest.add(committer_.digest());
  return digest.value();
}

FileFigures ReceiveSession::files() const {
  FileFigures figures;
  figures.total = planner_.files();
  figures.unchanged = planner_.files_unchanged();
  figures.sent = committer_.files_replicated();
  return figures;
}

ByteFigures ReceiveSession::bytes() const {
  ByteFigures figures;
  figures.total = planner_.bytes();
  figures.unchanged = planner_.bytes_unchanged();
  figures.sent = committer_.bytes_replicated() - committer_.bytes_resumed();
  figures.resumed = committer_.bytes_resumed();
  for (const auto& stream : session_.streams) figures.wire += stream->wire_bytes();
  return figures;
}

wire::Summary ReceiveSession::summary() {
  wire::Summary summary;
  summary.figures = session_.figures();
  summary.files = files();
  summary.bytes = bytes();
  summary.digest = digest();
  summary.errors_total = session_.errors().total();
  return summary;
}

ProgressSnapshot ReceiveSession::progress() const {
  ProgressSnapshot snapshot;
  snapshot.total_known = plan_complete_.load(std::memory_order_acquire);
  snapshot.bytes_done = worker_.bytes_written();
  snapshot.bytes_total = bytes_wanted_.load(std::memory_order_relaxed);
  snapshot.files_done = files_left_.load(std::memory_order_relaxed) + committer_.files_replicated();
  snapshot.files_total = files_announced_.load(std::memory_order_relaxed);
  snapshot.streams = std::uint32_t(session_.streams.size());
  return snapshot;
}

}  // namespace fgsync::transfer
