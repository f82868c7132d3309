#include "receipt/receipt_writer.h"

#include <cerrno>
#include <utility>

#include "base/mark.h"
#include "receipt/receipt_appender.h"
#include "receipt/receipt_rewrite.h"
#include "storage/state_directory.h"

namespace fgsync::receipt {
namespace {

// Written aside under this name.
constexpr const char* kNewName = "receipt.new";

// A receipt is written anew when it holds more than twice what it held when there was one record
// for each path (and so many), so that the cost is spread over the records that made it so long.
constexpr std::uint64_t kRecordsTolerated = 4096;

Header fresh_header(io::Environment& environment) {
  Header header;
  environment.random_bytes(std::as_writable_bytes(std::span(&header.salt, 1)));
  return header;
}

// Whatever has the name makes way; a directory only if it is empty.
Status clear_name(io::FileSystem& files, const io::FileHandle& state, const std::string& name) {
  Status removed = files.unlink(state, name);
  if (removed.system_errno() == EISDIR) removed = files.remove_directory(state, name);
  return removed.system_errno() == ENOENT ? Status() : removed;
}

}  // namespace

// ---- Opening

Status ReceiptWriter::open_state(OpenState open) {
  auto root = target_.open(0);
  if (!root.ok()) return root.status();
  auto state = open(files_, **root);
  if (!state.ok()) return state.status();
  log_.emplace();
  log_->root = *root;
  log_->state = std::move(*state);
  return Status();
}

// kNotFound if there is none, or one that has never held anything.
Status ReceiptWriter::load() {
  auto file = files_.open_file(log_->state, kReceiptName, io::OpenMode::kUpdate);
  if (!file.ok()) return file.status();
  log_->file = std::move(*file);
  Result<ReceiptReader> reader = ReceiptReader::open(files_, log_->file);
  if (!reader.ok()) return reader.status();
  Result<LogSummary> summary = reader->summarize();
  if (!summary.ok()) return summary.status();
  log_->header = reader->header();
  log_->summary = *summary;
  log_->synced_end = summary->end;
  if (summary->damaged) {
    note_("the receipt in the state directory is damaged: some files have no record any more");
  }
  // What runs have appended that did not end well may not have happened.
  if (summary->unsettled > 0) mark("receipt_unsettled");
  distrusted_ = distrusted_ || summary->unsettled > 0 || summary->damaged;
  return Status();
}

Status ReceiptWriter::make() {
  FGSYNC_RETURN_IF_ERROR(clear_name(files_, log_->state, kReceiptName));
  auto file = files_.open_file(log_->state, kReceiptName, io::OpenMode::kCreate);
  if (!file.ok()) return file.status();
  log_->file = std::move(*file);
  log_->header = fresh_header(environment_);
  log_->is_new = true;
  return files_.write(log_->file, encode(log_->header), 0);
}

Status ReceiptWriter::open_to_append() {
  FGSYNC_RETURN_IF_ERROR(open_state(&storage::make_state_directory));
  const Status loaded = load();
  if (!loaded.ok()) {
    if (loaded.code() != ErrorCode::kNotFound) {
      note_("the receipt in the state directory cannot be used and is replaced: " +
            loaded.message());
    }
    FGSYNC_RETURN_IF_ERROR(make());
  }
  auto status = files_.stat(log_->file);
  if (!status.ok()) return status.status();
  log_->mount = status->mount;
  if (status->size <= log_->summary.end) return Status();
  return files_.truncate(log_->file, log_->summary.end);
}

// One that cannot be read stays as it is: nothing is missing in it.
void ReceiptWriter::open_to_settle() {
  Status opened = open_state(&storage::open_state_directory);
  if (opened.ok()) opened = load();
  if (opened.ok()) return;
  log_.reset();
  if (opened.code() == ErrorCode::kNotFound) return;
  note_("the receipt in the state directory cannot be used: " + opened.message());
}

// ---- Appending

void ReceiptWriter::append(std::span<const Record> records) {
  const std::lock_guard lock(mutex_);
  if (records.empty() || given_up_) return;
  Status written = log_ ? Status() : open_to_append();
  if (written.ok()) written = write(records);
  if (!written.ok()) give_up(written);
}

Status ReceiptWriter::write(std::span<const Record> records) {
  LogSummary& summary = log_->summary;
  ReceiptAppender appender(files_, log_->file, log_->header, summary.end);
  for (const Record& record : records) {
    const std::string* const path = path_of(record);
    if (path != nullptr && !is_possible_path(*path)) continue;
    FGSYNC_RETURN_IF_ERROR(appender.add(record));
    if (path != nullptr) ++summary.records;
  }
  FGSYNC_RETURN_IF_ERROR(appender.flush());
  summary.end = appender.end();
  return Status();
}

bool ReceiptWriter::is_on(std::uint64_t mount) const {
  const std::lock_guard lock(mutex_);
  return log_ && log_->mount == mount;
}

void ReceiptWriter::sync() {
  const std::lock_guard lock(mutex_);
  if (!log_) return;
  Status synced = sync_log();
  if (!synced.ok()) give_up(synced);
}

Status ReceiptWriter::sync_log() {
  if (!durable_ || log_->synced_end == log_->summary.end) return Status();
  FGSYNC_RETURN_IF_ERROR(files_.sync_data(log_->file));
  log_->synced_end = log_->summary.end;
  if (!log_->is_new) return Status();
  FGSYNC_RETURN_IF_ERROR(files_.sync(log_->state));
  FGSYNC_RETURN_IF_ERROR(files_.sync(*log_->root));
  log_->is_new = false;
  return Status();
}

void ReceiptWriter::distrust() {
  const std::lock_guard lock(mutex_);
  distrusted_ = true;
}

// ---- Settling

void ReceiptWriter::settle() {
  const std::lock_guard lock(mutex_);
  if (!log_ && !given_up_) open_to_settle();
  if (!log_) return;
  Status settled = settle_log();
  if (!settled.ok()) give_up(settled);
}

Status ReceiptWriter::settle_log() {
  // A run that was killed meanwhile has left it.
  FGSYNC_RETURN_IF_ERROR(clear_name(files_, log_->state, kNewName));
  LogSummary& summary = log_->summary;
  if (summary.end == summary.settled_end && !distrusted_) return Status();
  const std::uint64_t live = summary.live > 0 ? summary.live : summary.records;
  if (distrusted_ || summary.records > 2 * live + kRecordsTolerated) {
    Status written = write_anew();
    if (written.ok()) return Status();
    (void)clear_name(files_, log_->state, kNewName);
    note_("the receipt in the state directory could not be written anew: " + written.message());
    // Still true as it is; what may not have happened stays unsettled.
    if (distrusted_) return Status();
  }
  const Record settled = SettledRecord{summary.records, live};
  FGSYNC_RETURN_IF_ERROR(write(std::span(&settled, 1)));
  summary.settled_end = summary.end;
  summary.live = live;
  return sync_log();
}

Status ReceiptWriter::write_anew() {
  mark("receipt_rewritten");
  Result<ReceiptReader> reader = ReceiptReader::open(files_, log_->file);
  if (!reader.ok()) return reader.status();
  auto file = files_.open_file(log_->state, kNewName, io::OpenMode::kCreate);
  if (!file.ok()) return file.status();
  const Header header = fresh_header(environment_);
  const std::uint64_t trusted_end = distrusted_ ? log_->summary.settled_end : log_->summary.end;
  Result<LogSummary> summary =
      rewrite(files_, *reader, log_->summary, trusted_end, *log_->root, *file, header);
  if (!summary.ok()) return summary.status();
  if (durable_) FGSYNC_RETURN_IF_ERROR(files_.sync_data(*file));
  FGSYNC_RETURN_IF_ERROR(files_.rename(log_->state, kNewName, log_->state, kReceiptName));
  log_->file = std::move(*file);
  log_->header = header;
  log_->summary = *summary;
  log_->synced_end = summary->end;
  distrusted_ = false;
  return durable_ ? files_.sync(log_->state) : Status();
}

// A receipt that lacks records would call its files wrong.
void ReceiptWriter::give_up(const Status& why) {
  given_up_ = true;
  mark("receipt_given_up");
  note_("the receipt in the state directory is given up: " + why.message());
  if (!log_) (void)open_state(&storage::open_state_directory);
  if (log_) (void)files_.unlink(log_->state, kReceiptName);
  log_.reset();
}

}  // namespace fgsync::receipt
