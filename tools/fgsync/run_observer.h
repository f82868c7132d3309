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
  RunObserver(const CommandLine& command, int standard_output, Console& console, RunLog& log);

  void on_progress(const ProgressSnapshot& snapshot) override;
  // A note is said once, however often it comes.
  void on_note(const std::string& note) override;
  // Itemized ones go to standard output (with --json to the console); in a dry run the report lists
  // them.
  void on_change(const EntryChange& change) override;

  // No progress any more.
  void finish() { progress_.finish(); }
  // Of standard output; 0 if there was none.
  int write_error() const { return write_error_; }

 private:
  const CommandLine& command_;
  const int standard_output_;
  Console& console_;
  RunLog& log_;
  ProgressPrinter progress_;
  std::set<std::string> notes_said_;
  int write_error_ = 0;
};

}  // namespace fgsync::tools
