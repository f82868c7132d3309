// Compares a tree with its receipt: one coroutine walks, several read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fgsync/verify.h"
#include "io/pause.h"
#include "io/runtime.h"
#include "receipt/receipt_index.h"
#include "transfer/digest_lanes.h"
#include "transfer/error_log.h"
#include "verify/tree_walk.h"

namespace fgsync::verify {

class TreeCheck {
 public:
  // `lanes` files are read at a time.
  TreeCheck(io::Runtime& runtime, const VerifyOptions& options, std::size_t lanes,
            VerifyObserver& observer, CancelToken& cancel);

  // From the typed path to the report's figures. On the control worker.
  io::Task<void> run();
  const VerifyReport& report() const { return report_; }

 private:
  Status open();
  Status open_receipt();
  io::Task<void> walk();
  io::Task<Status> walk_part(std::uint64_t part);
  void take(Found found);
  void hand_out(std::vector<FileToRead> files);
  // What reading the file has come to.
  void settle(const receipt::FileRecord& record, const io::FileTime& mtime,
              const Result<wire::Checksum>& digest);
  void differ(Difference difference);
  void fail(ErrorEntry error);
  io::Task<void> tell_progress();
  void conclude();

  io::Runtime& runtime_;
  io::FileSystem& files_;
  const VerifyOptions& options_;
  VerifyObserver& observer_;
  CancelToken& cancel_;
  // Set by open().
  std::string root_path_;
  std::string only_;
  io::FileHandle root_;
  io::FileHandle receipt_file_;
  io::FileStatus receipt_status_;  // when it was read
  std::optional<receipt::ReceiptReader> reader_;
  receipt::LogSummary summary_;
  std::optional<receipt::ReceiptIndex> index_;
  transport::StageMeter meter_;
  transfer::DigestLanes lanes_;
  io::Pause progress_pause_;
  // Control worker only.
  VerifyReport report_;
  transfer::ErrorLog errors_;
  std::uint64_t files_found_ = 0;
  std::uint64_t bytes_to_read_ = 0;
  bool walked_ = false;
};

}  // namespace fgsync::verify
