// Starts the far side of a run over a remote shell and learns how to reach it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fgsync/options.h"
#include "fgsync/transfer.h"
#include "io/child_process.h"
#include "io/io.h"
#include "wire/start_line.h"

namespace fgsync::transfer {

// A started far side. It lives as long as this object holds its standard input open. Not
// thread-safe; its calls block at most as long as they say.
class FarSide {
 public:
  // Runs `remote_shell... [USER@]HOST remote_fgsync --serve`, hands it the request, and waits for
  // its answer, for as long as `patience` or until the cancel. kRemoteShellFailed (with the shell's
  // status) when the shell itself fails, the far side's own code when it refuses, kUnsupported when
  // there is no fgsync over there.
  static Result<std::unique_ptr<FarSide>> start(const TransferOptions& options,
                                                const Location& location,
                                                const wire::StartRequest& request,
                                                std::chrono::milliseconds patience,
                                                io::Environment& environment, CancelToken& cancel);

  const wire::StartAnswer& answer() const { return answer_; }
  // Takes whatever else it prints out of the pipe, so that it never blocks on it.
  void drain();
  // Lets it end: closes its input and waits, a few seconds after a run that succeeded; what is left
  // of a run that failed is ended sooner.
  void finish(bool succeeded);

 private:
  explicit FarSide(io::ChildProcess child) : child_(std::move(child)) {}
  static Status ended_early(const TransferOptions& options, const Location& location,
                            const std::string& noise, int exit_status);
  io::ChildProcess child_;
  wire::StartAnswer answer_;
};

}  // namespace fgsync::transfer
