// What the user hears while a run is under way.
#pragma once

#include <set>
#include <string>

#include "command_line.h"
#include "console.h"
#include "fgsync/transfer.h"
#include "progress_printer.h"
#include "run_log.h"

namespace fgsync::tools {

class RunObserver : public Observer {
 public:
  // All of them must outlive the observer.
  RunObserver(const OutputOptions& output, Console& console, RunLog& log);

  void on_progress(const ProgressSnapshot& snapshot) override;
  // A note is said once, however often it comes.
  void on_note(const std::string& note) override;
  void on_entry(const std::string& path) override;

  // No progress any more.
  void finish() { progress_.finish(); }

 private:
  const OutputOptions& output_;
  Console& console_;
  RunLog& log_;
  ProgressPrinter progress_;
  std::set<std::string> notes_said_;
};

}  // namespace fgsync::tools
