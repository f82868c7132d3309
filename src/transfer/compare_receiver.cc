#include "transfer/compare_receiver.h"

#include <utility>

#include "base/limits.h"
#include "base/mark.h"
#include "transfer/closing.h"
#include "transfer/resources.h"

namespace fgsync::transfer {
namespace {

// Entries looked at in one blocking job.
constexpr std::size_t kEntriesPerLook = 1024;
// Settled entries are told so many at a time: far fewer than the sender's window.
constexpr std::size_t kSettledPerBatch = 64;
static_assert(kSettledPerBatch < limits::kEntriesOutstandingMax);

}  // namespace

CompareReceiver::CompareReceiver(Session& session, const ResolvedTarget& target,
                                 io::FileHandle root)
    : session_(session),
      root_path_(target.root),
      comparison_(session.files(), target, std::move(root)),
      lanes_(session.runtime(), session.files(), session.meter(),
             automatic_streams(session.environment().usable_cores())) {
  session.on_failure([this] { lanes_.stop(); });
  session.tell_errors_on_failure();
}

io::Task<void> CompareReceiver::run() {
  io::Io& io = session_.control_io();
  io::TaskGroup writing;
  writing.spawn(io, write_control(session_));
  Status started = lanes_.start();
  if (!started.ok()) session_.fail(started);

  // Look at what is announced, and read what both have, until the sender has said its last digest.
  co_await read_announcements();
  lanes_.close();
  co_await lanes_.join();
  flush_settled();
  if (!session_.failed() && !pending_.empty()) {
    session_.fail(Status(ErrorCode::kProtocolError, "digests that were asked for have not come")
                      .with_context(session_.peer()));
  }
  co_await look_for_extra();
  co_await see_whether_it_stands();

  if (!session_.failed()) {
    push_errors(session_);
    push_notes(session_);
    session_.push(summary());
    co_await receive_last_words(session_, &sender_summary_);
  }
  session_.close_outbox();
  co_await writing.join(io);
  session_.control().shutdown();  // the sender waits for this end
}

io::Task<void> CompareReceiver::read_announcements() {
  for (bool finished = false; !finished;) {
    Result<wire::Message> message = co_await receive_message(session_);
    if (!message.ok()) co_return;
    Status handled = co_await on_message(*message, finished);
    if (handled.ok()) continue;
    session_.fail(handled.with_context(session_.peer()));
    co_return;
  }
}

io::Task<Status> CompareReceiver::on_message(wire::Message& message, bool& finished) {
  const bool announcing = !announced_all_.load(std::memory_order_relaxed);
  auto* batch = std::get_if<wire::ManifestBatch>(&message);
  if (batch != nullptr && announcing) {
    Status compared = co_await on_manifest(std::move(*batch));
    co_return compared;
  }
  const auto* end = std::get_if<wire::ManifestEnd>(&message);
  if (end != nullptr && announcing) {
    announced_all_.store(true, std::memory_order_release);
    incomplete_ = end->incomplete;
    if (end->entries == comparison_.entries()) co_return Status();
    co_return Status(ErrorCode::kProtocolError, "the manifest has not come whole");
  }
  if (const auto* file_end = std::get_if<wire::FileEnd>(&message)) {
    co_return on_file_end(*file_end);
  }
  if (std::holds_alternative<wire::DataEnd>(message) && !announcing) {
    finished = true;
    co_return Status();
  }
  co_return Status(ErrorCode::kProtocolError, "a message that a sender does not send now");
}

io::Task<Status> CompareReceiver::on_manifest(wire::ManifestBatch batch) {
  Compared compared;
  Status status;
  co_await io::run_blocking(session_.control_io(),
                            [&] { status = comparison_.compare(batch, compared); });
  if (!status.ok()) co_return status;
  files_announced_.store(comparison_.files(), std::memory_order_relaxed);
  session_.push(std::move(compared.plan));
  take(compared);
  std::vector<DigestRequest> requests;
  requests.reserve(compared.to_read.size());
  for (FileToCompare& file : compared.to_read) {
    const std::uint64_t size = file.place.identity.size;
    bytes_wanted_.fetch_add(size, std::memory_order_relaxed);
    pending_.emplace(file.id, Pending{.path = std::move(file.path), .size = size});
    requests.push_back({.place = std::move(file.place),
                        .chunk_bytes = session_.parameters.chunk_bytes,
                        .settle = [this, id = file.id](const Result<wire::Checksum>& digest) {
                          on_digest(id, digest);
                        }});
  }
  std::size_t regular = 0;
  for (const wire::ManifestEntry& entry : batch.entries) {
    regular += entry.type == wire::EntryType::kRegular ? 1 : 0;
  }
  files_done_.fetch_add(regular - requests.size(), std::memory_order_relaxed);
  lanes_.add(std::move(requests));
  session_.add_progress(batch.entries.size());
  co_return Status();
}

Status CompareReceiver::on_file_end(const wire::FileEnd& end) {
  const auto found = pending_.find(end.entry);
  if (found == pending_.end() || found->second.theirs) {
    return Status(ErrorCode::kProtocolError, "a digest that was not asked for");
  }
  found->second.theirs = end;
  settle_if_both(end.entry);
  return Status();
}

void CompareReceiver::on_digest(std::uint64_t id, const Result<wire::Checksum>& digest) {
  pending_.at(id).ours = digest;
  settle_if_both(id);
}

void CompareReceiver::settle_if_both(std::uint64_t id) {
  const auto found = pending_.find(id);
  const Pending& file = found->second;
  if (!file.ours || !file.theirs) return;
  // What the sender could not read it reports itself.
  if (!file.ours->ok()) add_error(file.path, file.ours->status());
  const bool both_read = file.ours->ok() && file.theirs->complete;
  const bool same = both_read && **file.ours == file.theirs->digest;
  if (both_read && !same) differ({{DifferenceKind::kContents, file.path, ""}});
  files_same_ += same ? 1 : 0;
  bytes_same_ += same ? file.size : 0;
  files_done_.fetch_add(1, std::memory_order_relaxed);
  pending_.erase(found);
  settled_.entries.push_back({id, same});
  if (settled_.entries.size() >= kSettledPerBatch) flush_settled();
}

io::Task<void> CompareReceiver::look_for_extra() {
  if (session_.failed()) co_return;
  if (incomplete_) {
    session_.errors().note(
        "part of the source could not be listed: what only the target has was not looked for");
    co_return;
  }
  Result<bool> more = true;
  while (!session_.failed() && more.ok() && *more) {
    Compared compared;
    co_await io::run_blocking(session_.control_io(), [&] {
      more = comparison_.look_for_extra(kEntriesPerLook, compared);
    });
    take(compared);
    session_.add_progress(kEntriesPerLook);
  }
  if (!more.ok()) session_.fail(more.status().with_context(root_path_));
}

io::Task<void> CompareReceiver::see_whether_it_stands() {
  if (session_.failed()) co_return;
  Result<bool> stands = true;
  co_await io::run_blocking(session_.control_io(), [&] { stands = comparison_.still_stands(); });
  if (!stands.ok()) {
    session_.fail(stands.status().with_context(root_path_));
  } else if (!*stands) {
    mark("compared_tree_replaced");
    session_.errors().add(root_path_, Status(ErrorCode::kSourceChanged,
                                             "comparing: it was replaced meanwhile, as a whole"));
  }
}

// ---- What the user hears

void CompareReceiver::take(Compared& compared) {
  for (const ErrorEntry& error : compared.errors) {
    add_error(error.path, Status(error.code, error.message));
  }
  differ(std::move(compared.differences));
}

void CompareReceiver::differ(std::vector<Difference> differences) {
  wire::DifferenceBatch batch;
  for (Difference& difference : differences) {
    session_.announce_difference(difference);
    batch.differences.push_back(std::move(difference));
    if (batch.differences.size() == limits::kErrorBatchEntries) {
      session_.push(std::exchange(batch, {}));
    }
  }
  if (!batch.differences.empty()) session_.push(std::move(batch));
}

void CompareReceiver::add_error(const std::string& path, const Status& status) {
  session_.errors().add(root_path_ == "/" ? "/" + path : root_path_ + "/" + path, status);
}

void CompareReceiver::flush_settled() {
  if (!settled_.entries.empty()) session_.push(std::exchange(settled_, {}));
}

ProgressSnapshot CompareReceiver::progress() const {
  ProgressSnapshot snapshot;
  snapshot.total_known = announced_all_.load(std::memory_order_acquire);
  snapshot.bytes_done = session_.meter().figures(Stage::kRead).bytes;
  snapshot.bytes_total = bytes_wanted_.load(std::memory_order_relaxed);
  snapshot.files_done = files_done_.load(std::memory_order_relaxed);
  snapshot.files_total = files_announced_.load(std::memory_order_relaxed);
  snapshot.streams = std::uint32_t(lanes_.lanes());
  return snapshot;
}

wire::Summary CompareReceiver::summary() {
  wire::Summary summary;
  summary.figures = session_.figures();
  summary.files.total = comparison_.files();
  summary.files.unchanged = files_same_;
  summary.bytes.total = comparison_.bytes();
  summary.bytes.unchanged = bytes_same_;
  summary.errors_total = session_.errors().total();
  return summary;
}

}  // namespace fgsync::transfer
