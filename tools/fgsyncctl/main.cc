// fgsyncctl: everything about fgsync that is not a transfer.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "command_line.h"
#include "console.h"
#include "control_help.h"
#include "fgsync/transfer.h"
#include "startup.h"
#include "text.h"
#include "verify_command.h"

namespace fgsync::tools {
namespace {

constexpr int kUsage = 1;
constexpr int kNotInThisVersion = 4;
constexpr std::array kLaterCommands = {"keygen", "doctor", "bench", "status"};

// Static, for the signals' actions.
CancelToken cancel;

int print(const std::string& text, Console& console) {
  if (write_all(STDOUT_FILENO, text)) return 0;
  console.print(std::string("fgsyncctl: standard output: writing: ") + std::strerror(errno));
  return exit_status_of(ErrorCode::kIoError);
}

int dispatch(const std::vector<std::string>& words, Console& console) {
  if (words.size() < 2) throw CommandError{kUsage, "a command is missing (see fgsyncctl --help)"};
  const std::string& command = words[1];
  if (command == "--help") return print(control_help_text(), console);
  if (command == "--version") {
    return print(std::string("fgsyncctl ") + version_string() + "\n", console);
  }
  if (command == "verify") return run_verify(words, STDOUT_FILENO, console, cancel);
  if (std::ranges::find(kLaterCommands, command) != kLaterCommands.end()) {
    throw CommandError{kNotInThisVersion, command + ": not offered by this version"};
  }
  throw CommandError{kUsage,
                     escape_name(command) + ": there is no such command (see fgsyncctl --help)"};
}

int guarded_main(const std::vector<std::string>& words) {
  open_standard_descriptors();
  install_signal_actions(cancel);
  Console console(STDERR_FILENO);
  try {
    return dispatch(words, console);
  } catch (const CommandError& error) {
    console.print("fgsyncctl: " + error.message);
    return error.exit_status;
  } catch (const std::exception& error) {
    console.print(std::string("fgsyncctl: ended by an unexpected failure: ") + error.what());
    return exit_status_of(ErrorCode::kIoError);
  }
}

}  // namespace
}  // namespace fgsync::tools

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  return fgsync::tools::guarded_main(words);
}
