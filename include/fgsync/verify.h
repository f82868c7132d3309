// Checking a target: without its source, against the receipt that runs have left in it, or against
// its source.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "fgsync/options.h"
#include "fgsync/report.h"
#include "fgsync/transfer.h"

namespace fgsync {

struct VerifyOptions {
  std::string tree;           // a directory with a receipt, or one file in it; as typed
  bool report_extra = false;  // VerifyObserver::on_extra is wanted
  IoEngine io_engine = IoEngine::kAuto;
};

// Told what is found, on the thread that called verify_tree() or compare_trees().
class VerifyObserver {
 public:
  virtual ~VerifyObserver() = default;
  // About ten times a second. `streams` is how many files are read at a time.
  virtual void on_progress(const ProgressSnapshot& snapshot) = 0;
  virtual void on_note(const std::string& note) = 0;
  // At once, in no order. A file may have two: contents and time.
  virtual void on_difference(const Difference& difference) = 0;
  // A file that the receipt does not know.
  virtual void on_extra(const std::string& path) = 0;
};

struct VerifyReport {
  Status status;  // why it ended early, or why it says less than it should; else OK
  int exit_code = 0;
  std::chrono::system_clock::time_point started;
  double seconds = 0;
  std::string io_engine;
  std::uint64_t files_verified = 0;  // that are as the receipt says, or as in the source
  std::uint64_t files_different = 0;
  std::uint64_t files_extra = 0;   // that the receipt does not know, or the source does not have
  std::uint64_t files_failed = 0;  // that could not be read
  std::uint64_t bytes_read = 0;    // of the tree; comparing: of the one that was read more of
  std::vector<Difference> differences;  // at most limits::kErrorsKeptMax
  std::uint64_t differences_total = 0;
  std::vector<ErrorEntry> errors;  // likewise; their paths are below the tree
  std::uint64_t errors_total = 0;
  std::vector<std::string> notes;

  double rate_bytes_per_second() const { return seconds > 0 ? double(bytes_read) / seconds : 0; }
};

// Reads every file that the receipt knows, past the page cache where that is possible, and compares
// it with the receipt. Writes nothing. Blocks; starts and ends its own threads; never throws.
// Memory is bounded whatever the number of files.
VerifyReport verify_tree(const VerifyOptions& options, VerifyObserver& observer,
                         CancelToken& cancel);

// Compares the contents of options.target with those of options.sources, one of which may be
// remote: both sides read, digests alone go over. Nothing is written. Of the options those for
// locations, the network, the I/O engine and chunks count. Directories that are missing or extra
// are one difference each.
VerifyReport compare_trees(const TransferOptions& options, VerifyObserver& observer,
                           CancelToken& cancel);

// 40 where there is a difference; else why it ended early, or 23 or 24 where files could not be
// read or changed meanwhile. A verification that was cancelled is that, whatever it has found.
int exit_status_of(const VerifyReport& report);

}  // namespace fgsync
