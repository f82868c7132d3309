#include "verify/tree_check.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/limits.h"
#include "storage/state_directory.h"
#include "transfer/source_mapping.h"
#include "verify/file_time_text.h"

namespace fgsync::verify {
namespace {

// 64 MiB of an index: three million files in one pass.
constexpr std::size_t kSlots = std::size_t{1} << 22;
// Entries looked at in one blocking job.
constexpr std::size_t kEntriesPerLook = 1024;
constexpr std::chrono::milliseconds kProgressInterval{100};

Status unusable(const std::string& path, const std::string& why) {
  return Status(ErrorCode::kUnusable, path + ": " + why);
}

}  // namespace

TreeCheck::TreeCheck(io::Runtime& runtime, const VerifyOptions& options, std::size_t lanes,
                     VerifyObserver& observer, CancelToken& cancel)
    : runtime_(runtime),
      files_(runtime.environment().files()),
      options_(options),
      observer_(observer),
      cancel_(cancel),
      meter_(runtime.environment()),
      lanes_(runtime, files_, meter_, lanes),
      progress_pause_(runtime.control()) {}

io::Task<void> TreeCheck::run() {
  io::Io& io = runtime_.control();
  co_await io::run_blocking(io, [this] { report_.status = open(); });
  if (report_.status.ok()) report_.status = lanes_.start();
  if (!report_.status.ok()) co_return;
  io::TaskGroup telling;
  telling.spawn(io, tell_progress());
  co_await walk();
  walked_ = true;
  lanes_.close();
  co_await lanes_.join();
  progress_pause_.end();
  co_await telling.join(io);
  co_await io::run_blocking(io, [this] { conclude(); });
}

// ---- What is to be checked

Status TreeCheck::open() {
  auto status = files_.stat_path(options_.tree, /*follow=*/true);
  if (!status.ok()) return unusable(options_.tree, status.status().message());
  auto resolved = files_.resolve_path(options_.tree);
  if (!resolved.ok()) return unusable(options_.tree, resolved.status().message());
  root_path_ = *resolved;
  if (status->type != io::FileType::kDirectory) {
    only_ = transfer::last_component(root_path_);
    root_path_ = transfer::parent_of(root_path_);
  }
  auto root = files_.open_path(root_path_);
  if (!root.ok()) return unusable(root_path_, root.status().message());
  root_ = std::move(*root);
  FGSYNC_RETURN_IF_ERROR(open_receipt());
  index_.emplace(*reader_, summary_, kSlots);
  return Status();
}

Status TreeCheck::open_receipt() {
  auto state = storage::open_state_directory(files_, root_);
  Status opened = state.status();
  if (state.ok()) {
    auto file = files_.open_file(*state, receipt::kReceiptName, io::OpenMode::kRead);
    opened = file.status();
    if (file.ok()) receipt_file_ = std::move(*file);
  }
  if (opened.ok()) {
    auto reader = receipt::ReceiptReader::open(files_, receipt_file_);
    auto status = files_.stat(receipt_file_);
    opened = reader.ok() ? status.status() : reader.status();
    if (reader.ok()) reader_ = *reader;
    if (status.ok()) receipt_status_ = *status;
  }
  if (opened.code() == ErrorCode::kNotFound) {
    return unusable(root_path_, "it has no receipt: no run of fgsync has published a file there");
  }
  if (opened.code() == ErrorCode::kUnsupported) {
    return opened.with_context(root_path_ + ": its receipt cannot be used");
  }
  if (!opened.ok()) {
    return unusable(root_path_, "its receipt cannot be used: " + opened.message());
  }
  auto summary = reader_->summarize();
  if (!summary.ok()) {
    return unusable(root_path_, "reading its receipt: " + summary.status().message());
  }
  summary_ = *summary;
  return Status();
}

// ---- Walking

io::Task<void> TreeCheck::walk() {
  if (summary_.unsettled > 0) {
    observer_.on_note(
        "the last run has not ended well: what it may not have published is not missed");
  }
  for (std::uint64_t part = 0; part < index_->parts(); ++part) {
    if (cancel_.requested()) co_return;
    Status walked = co_await walk_part(part);
    if (walked.ok()) continue;
    report_.status = unusable(root_path_, "reading its receipt: " + walked.message());
    lanes_.stop();
    co_return;
  }
}

io::Task<Status> TreeCheck::walk_part(std::uint64_t part) {
  io::Io& io = runtime_.control();
  Status status;
  std::unique_ptr<TreeWalk> tree;
  co_await io::run_blocking(io, [&] {
    status = index_->load(part, summary_.settled_end);
    auto root = files_.open_path(root_path_);
    if (status.ok() && !root.ok()) status = root.status();
    if (!status.ok()) return;
    tree = std::make_unique<TreeWalk>(files_, root_, std::move(*root), *index_, only_);
  });
  if (!status.ok()) co_return status;
  // First what is there, then what is not.
  for (const auto look : {&TreeWalk::next, &TreeWalk::next_missing}) {
    for (bool more = true; more && !cancel_.requested();) {
      co_await lanes_.wait_open();
      Found found;
      Result<bool> looked = true;
      co_await io::run_blocking(io, [&] { looked = (tree.get()->*look)(kEntriesPerLook, found); });
      if (!looked.ok()) co_return looked.status();
      more = *looked;
      take(std::move(found));
    }
  }
  co_return Status();
}

void TreeCheck::take(Found found) {
  for (Difference& difference : found.differences) {
    ++files_found_;
    ++report_.files_different;
    differ(std::move(difference));
  }
  report_.files_extra += found.extra.size();
  for (const std::string& path : found.extra) {
    if (options_.report_extra) observer_.on_extra(path);
  }
  for (ErrorEntry& error : found.errors) fail(std::move(error));
  files_found_ += found.to_read.size();
  hand_out(std::move(found.to_read));
}

void TreeCheck::hand_out(std::vector<FileToRead> files) {
  std::vector<transfer::DigestRequest> requests;
  requests.reserve(files.size());
  for (FileToRead& file : files) {
    bytes_to_read_ += file.record.size;
    requests.push_back(
        {std::move(file.place), file.record.chunk_bytes,
         [this, mtime = file.place.identity.mtime, record = std::move(file.record)](
             const Result<wire::Checksum>& digest) { settle(record, mtime, digest); }});
  }
  lanes_.add(std::move(requests));
}

// ---- What the user hears; on the control worker

void TreeCheck::settle(const receipt::FileRecord& record, const io::FileTime& mtime,
                       const Result<wire::Checksum>& digest) {
  if (!digest.ok()) {
    return fail({record.path, digest.status().code(), digest.status().message()});
  }
  const bool same_contents = *digest == record.digest;
  const bool same_time = mtime == record.mtime;
  ++(same_contents && same_time ? report_.files_verified : report_.files_different);
  if (!same_contents) differ({DifferenceKind::kContents, record.path, ""});
  if (!same_time) {
    differ({DifferenceKind::kTime, record.path,
            time_text(mtime) + " instead of " + time_text(record.mtime)});
  }
}

void TreeCheck::differ(Difference difference) {
  observer_.on_difference(difference);
  if (report_.differences_total++ < limits::kErrorsKeptMax) {
    report_.differences.push_back(std::move(difference));
  }
}

void TreeCheck::fail(ErrorEntry error) {
  ++report_.files_failed;
  errors_.add(std::move(error));
}

io::Task<void> TreeCheck::tell_progress() {
  const io::TimePoint start = runtime_.environment().now();
  bool on = true;
  while (on) {
    if (cancel_.requested()) lanes_.stop();
    ProgressSnapshot snapshot;
    snapshot.seconds = std::chrono::duration<double>(runtime_.environment().now() - start).count();
    snapshot.total_known = walked_;
    snapshot.bytes_done = meter_.figures(Stage::kRead).bytes;
    snapshot.bytes_total = bytes_to_read_;
    snapshot.files_done = report_.files_verified + report_.files_different + report_.files_failed;
    snapshot.files_total = files_found_;
    snapshot.streams = std::uint32_t(lanes_.lanes());
    observer_.on_progress(snapshot);
    on = co_await progress_pause_.sleep_for(kProgressInterval);
  }
}

void TreeCheck::conclude() {
  report_.bytes_read = meter_.figures(Stage::kRead).bytes;
  report_.errors = errors_.errors();
  report_.errors_total = errors_.total();
  if (cancel_.requested()) {
    report_.status = Status(ErrorCode::kCancelled, "interrupted");
    return;
  }
  if (!report_.status.ok()) return;
  if (summary_.damaged) {
    report_.status = unusable(root_path_,
                              "its receipt is damaged: some files have lost their "
                              "record, and could not be checked");
  }
  auto state = storage::open_state_directory(files_, root_);
  Result<io::FileStatus> now = state.status();
  if (state.ok()) now = files_.stat_at(*state, receipt::kReceiptName);
  if (!now.ok() || now->inode != receipt_status_.inode || now->size != receipt_status_.size) {
    report_.notes.push_back(
        "a run has written to the tree meanwhile: files that it has published may have been called "
        "different");
  }
}

}  // namespace fgsync::verify
