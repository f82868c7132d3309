#include "verify_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "command_line.h"
#include "configuration.h"
#include "control_help.h"
#include "option_table.h"
#include "progress_printer.h"
#include "text.h"
#include "verify_report.h"

namespace fgsync::tools {
namespace {

// What was asked for could not be handed over: whoever relies on it must not read 0.
constexpr int kOutputFailed = 11;
constexpr std::size_t kErrorsShownMax = 20;

// Of the options of fgsync those that mean something here.
constexpr std::array kOffered = {"quiet", "verbose", "progress",        "json", "io-engine",
                                 "help",  "timeout", "connect-timeout", "rsh",  "remote-fgsync",
                                 "bind",  "port",    "allow-public",    "ipv4", "ipv6"};

bool is_offered(const std::string& key) {
  return std::ranges::find(kOffered, key) != kOffered.end();
}

// From configuration and variables what is offered here; other settings are fgsync's alone.
Settings all_settings(const Arguments& arguments) {
  Settings settings;
  for (const std::string& file : configuration_files()) read_configuration_file(file, settings);
  read_variables(settings);
  std::erase_if(settings, [](const auto& setting) { return !is_offered(setting.first); });
  for (const auto& [key, setting] : arguments.settings) {
    if (!is_offered(key)) {
      throw CommandError{
          1, setting.origin + ": there is no such option (see fgsyncctl verify --help)"};
    }
    settings[key] = setting;
  }
  return settings;
}

class Observer final : public VerifyObserver {
 public:
  Observer(const OutputOptions& output, int standard_output, Console& console)
      : output_(output),
        standard_output_(standard_output),
        console_(console),
        progress_(console, output) {}

  void on_progress(const ProgressSnapshot& snapshot) override { progress_.update(snapshot); }
  void on_note(const std::string& note) override {
    if (!output_.quiet && notes_said_.insert(note).second) {
      console_.print("fgsyncctl: note: " + escape_message(note));
    }
  }
  // With --json the object lists them.
  void on_difference(const Difference& difference) override {
    if (output_.json) return;
    console_.clear_progress();  // both may be one terminal
    write(difference_line(difference) + "\n");
  }
  void on_extra(const std::string& path) override {
    console_.print(escape_name(path) + ": not in the receipt");
  }

  void finish() { progress_.finish(); }
  void write(const std::string& text) {
    if (write_error_ == 0 && !write_all(standard_output_, text)) write_error_ = errno;
  }
  // Of standard output; 0 if there was none.
  int write_error() const { return write_error_; }

 private:
  const OutputOptions& output_;
  const int standard_output_;
  Console& console_;
  ProgressPrinter progress_;
  std::set<std::string> notes_said_;
  int write_error_ = 0;
};

int report_outcome(const VerifyReport& report, const Verified& verified,
                   const OutputOptions& output, const std::vector<std::string>& words,
                   Observer& observer, Console& console) {
  observer.finish();
  for (const std::string& note : report.notes) observer.on_note(note);
  if (output.json) observer.write(verify_json(report, verified, words));
  for (const std::string& line : verify_error_lines(report, verified, kErrorsShownMax)) {
    console.print(line);
  }
  const bool has_looked = report.status.ok() || report.bytes_read > 0;
  if (has_looked && (!output.quiet || report.exit_code != 0)) {
    console.print(verify_final_line(report, verified));
  }
  if (observer.write_error() == 0) return report.exit_code;
  console.print(std::string("fgsyncctl: standard output: writing: ") +
                std::strerror(observer.write_error()));
  return report.exit_code == 0 ? kOutputFailed : report.exit_code;
}

VerifyReport check_tree(const Settings& settings, const OutputOptions& output,
                        const std::string& location, Verified& verified, Observer& observer,
                        CancelToken& cancel) {
  const Result<Location> tree = parse_location(location);
  if (!tree.ok()) throw CommandError{1, escape_message(tree.status().message())};
  if (tree->is_remote()) {
    throw CommandError{1, escape_name(tree->display()) +
                              ": a tree is checked against its receipt where it is (a local name "
                              "with a colon is written ./NAME)"};
  }
  VerifyOptions options;
  options.tree = tree->path;
  options.report_extra = output.verbose && !output.quiet;
  options.io_engine = understand_transfer(settings).io_engine;
  verified.tree = options.tree;
  return verify_tree(options, observer, cancel);
}

VerifyReport compare(const Settings& settings, const std::vector<std::string>& locations,
                     Verified& verified, Observer& observer, CancelToken& cancel) {
  const TransferOptions options = understand(settings, locations).transfer;
  verified.source = options.sources.front().display();
  verified.target = options.target.display();
  return compare_trees(options, observer, cancel);
}

}  // namespace

int run_verify(const std::vector<std::string>& words, int standard_output, Console& console,
               CancelToken& cancel) {
  const Arguments arguments = parse_arguments("fgsyncctl verify", {words.begin() + 2, words.end()});
  if (arguments.has("help")) {
    if (write_all(standard_output, verify_help_text())) return 0;
    console.print(std::string("fgsyncctl: standard output: writing: ") + std::strerror(errno));
    return kOutputFailed;
  }
  const Settings settings = all_settings(arguments);
  const OutputOptions output = understand_output(settings);
  const std::vector<std::string>& locations = arguments.locations;
  if (locations.empty() || locations.size() > 2) {
    throw CommandError{1, std::string(locations.empty() ? "TREE is missing" : "too many trees") +
                              "\nusage: fgsyncctl verify [OPTIONS] TREE | SOURCE TARGET   "
                              "(see fgsyncctl verify --help)"};
  }
  Observer observer(output, standard_output, console);
  Verified verified;
  const VerifyReport report =
      locations.size() == 1
          ? check_tree(settings, output, locations.front(), verified, observer, cancel)
          : compare(settings, locations, verified, observer, cancel);
  return report_outcome(report, verified, output, words, observer, console);
}

}  // namespace fgsync::tools
