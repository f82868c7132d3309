// What went wrong with single paths, and what is worth a note; kept until the report. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "fgsync/report.h"
#include "fgsync/status.h"

namespace fgsync::transfer {

class ErrorLog {
 public:
  // Keeps the first limits::kErrorsKeptMax with their text and counts all.
  void add(std::string path, const Status& status);
  void add(ErrorEntry error);
  // Says a thing once, however often it happens; of different things, as many as fit one message.
  void note(const std::string& text);

  std::vector<ErrorEntry> errors() const;
  std::vector<std::string> notes() const;
  std::uint64_t total() const;
  // Errors that say that the source vanished or changed, and all others.
  std::uint64_t changed_count() const;
  std::uint64_t failed_count() const;

 private:
  mutable std::mutex mutex_;
  std::vector<ErrorEntry> errors_;  // guarded by mutex_
  std::vector<std::string> notes_;  // guarded by mutex_
  std::uint64_t total_ = 0;         // guarded by mutex_
  std::uint64_t changed_ = 0;       // guarded by mutex_
};

}  // namespace fgsync::transfer
