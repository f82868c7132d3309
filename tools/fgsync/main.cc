// fgsync: replicates trees over private networks.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "command_line.h"
#include "configuration.h"
#include "console.h"
#include "fgsync/transfer.h"
#include "help_text.h"
#include "run.h"
#include "startup.h"

namespace fgsync::tools {
namespace {

// Static, for the signals' actions.
CancelToken cancel;

int print(const std::string& text, Console& console) {
  if (write_all(STDOUT_FILENO, text)) return 0;
  console.print(std::string("fgsync: standard output: writing: ") + std::strerror(errno));
  return exit_status_of(ErrorCode::kIoError);
}

std::string version_text() {
  std::string text = std::string("fgsync ") + version_string() + "\n";
  for (const std::string& line : capabilities()) text += line + "\n";
  return text;
}

Settings all_settings(const Arguments& arguments) {
  Settings settings;
  for (const std::string& file : configuration_files()) read_configuration_file(file, settings);
  read_variables(settings);
  for (const auto& [key, setting] : arguments.settings) settings[key] = setting;
  return settings;
}

// Help, version and the far side's role ask nothing of the configuration, which may be what is
// broken.
int dispatch(const std::vector<std::string>& words, Console& console) {
  const Arguments arguments = parse_arguments("fgsync", {words.begin() + 1, words.end()});
  if (arguments.has("help")) return print(help_text(), console);
  if (arguments.has("version")) return print(version_text(), console);
  if (arguments.has("serve")) {
    if (words.size() == 2) return serve(cancel);
    throw CommandError{1, "--serve stands alone"};
  }
  if (arguments.locations.size() < 2) {
    console.print(usage_hint(arguments.locations.empty()));
    return 1;
  }
  const CommandLine command = understand(all_settings(arguments), arguments.locations);
  return run(command, words, &replicate, STDOUT_FILENO, console, cancel);
}

int guarded_main(const std::vector<std::string>& words) {
  open_standard_descriptors();
  install_signal_actions(cancel);
  Console console(STDERR_FILENO);
  try {
    return dispatch(words, console);
  } catch (const CommandError& error) {
    console.print("fgsync: " + error.message);
    return error.exit_status;
  } catch (const std::exception& error) {
    console.print(std::string("fgsync: ended by an unexpected failure: ") + error.what());
    return exit_status_of(ErrorCode::kIoError);
  }
}

}  // namespace
}  // namespace fgsync::tools

int main(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (words.empty()) words.push_back("fgsync");
  return fgsync::tools::guarded_main(words);
}
