#include "run_observer.h"

#include <cerrno>

#include "itemized_change.h"
#include "text.h"

namespace fgsync::tools {

RunObserver::RunObserver(const CommandLine& command, int standard_output, Console& console,
                         RunLog& log)
    : command_(command),
      standard_output_(standard_output),
      console_(console),
      log_(log),
      progress_(console, command.output) {}

void RunObserver::on_progress(const ProgressSnapshot& snapshot) { progress_.update(snapshot); }

void RunObserver::on_note(const std::string& note) {
  if (!notes_said_.insert(note).second) return;
  const std::string line = "note: " + escape_message(note);
  log_.write(line);
  if (!command_.output.quiet) console_.print("fgsync: " + line);
}

void RunObserver::on_change(const EntryChange& change) {
  const OutputOptions& output = command_.output;
  if (output.itemize) {
    if (command_.transfer.dry_run) return;
    const std::string line = itemized_change(change, command_.transfer.target.is_remote());
    if (output.json) return console_.print(line);
    console_.clear_progress();  // both may be one terminal
    if (write_error_ == 0 && !write_all(standard_output_, line + "\n")) write_error_ = errno;
  } else if (output.verbose && !output.quiet && change.is_replicated) {
    console_.print(escape_name(change.path));
  }
}

}  // namespace fgsync::tools
