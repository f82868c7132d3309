// The file behind --log-file: one line per event, each with its time, appended. Mode 0600 when it
// is made, since it holds names of private files.
#pragma once

#include <string>
#include <string_view>

#include "fgsync/status.h"

namespace fgsync::tools {

class RunLog {
 public:
  // An empty path makes a log that takes no lines.
  static Result<RunLog> open(const std::string& path);
  RunLog(RunLog&& other) noexcept;
  RunLog& operator=(RunLog&&) = delete;
  ~RunLog();

  // One line, already escaped. A line reaches the file whole or, when the disk is full, not at all;
  // the run does not depend on it, so trouble is kept for status().
  void write(std::string_view line);
  // The first trouble in writing.
  const Status& status() const { return status_; }

 private:
  RunLog(std::string path, int fd);

  std::string path_;
  int fd_;
  Status status_;
};

}  // namespace fgsync::tools
