#include "transfer/error_log.h"

#include <algorithm>

#include "base/limits.h"

namespace fgsync::transfer {

void ErrorLog::add(std::string path, const Status& status) {
  add(ErrorEntry{std::move(path), status.code(), status.message()});
}

void ErrorLog::add(ErrorEntry error) {
  std::lock_guard lock(mutex_);
  ++total_;
  if (error.code == ErrorCode::kSourceChanged) ++changed_;
  if (errors_.size() < limits::kErrorsKeptMax) errors_.push_back(std::move(error));
}

void ErrorLog::note(const std::string& text) {
  std::lock_guard lock(mutex_);
  if (notes_.size() == limits::kNoteBatchEntries) return;
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

std::vector<ErrorEntry> ErrorLog::errors() const {
  std::lock_guard lock(mutex_);
  return errors_;
}

std::vector<std::string> ErrorLog::notes() const {
  std::lock_guard lock(mutex_);
  return notes_;
}

std::uint64_t ErrorLog::total() const {
  std::lock_guard lock(mutex_);
  return total_;
}

std::uint64_t ErrorLog::changed_count() const {
  std::lock_guard lock(mutex_);
  return changed_;
}

std::uint64_t ErrorLog::failed_count() const {
  std::lock_guard lock(mutex_);
  return total_ - changed_;
}

}  // namespace fgsync::transfer
