#include "run_observer.h"

#include "text.h"

namespace fgsync::tools {

RunObserver::RunObserver(const OutputOptions& output, Console& console, RunLog& log)
    : output_(output), console_(console), log_(log), progress_(console, output) {}

void RunObserver::on_progress(const ProgressSnapshot& snapshot) { progress_.update(snapshot); }

void RunObserver::on_note(const std::string& note) {
  if (!notes_said_.insert(note).second) return;
  const std::string line = "note: " + escape_message(note);
  log_.write(line);
  if (!output_.quiet) console_.print("fgsync: " + line);
}

void RunObserver::on_entry(const std::string& path) {
  if (output_.verbose && !output_.quiet) console_.print(escape_name(path));
}

}  // namespace fgsync::tools
