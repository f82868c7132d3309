// A started program with pipes on its standard input and output; its standard error is ours. For
// the remote shell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fgsync/status.h"

namespace fgsync::io {

// Not thread-safe. The destructor closes the pipes and, if the program has not ended a second
// after, ends it.
class ChildProcess {
 public:
  // argv[0] is looked for in PATH. kNotFound when there is no such program.
  static Result<ChildProcess> start(const std::vector<std::string>& argv);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // The whole text, blocking; kConnectionLost if the program does not take it.
  Status write_input(const std::string& text);
  // What has come on its standard output within `wait`; empty: nothing yet; nullopt: it is closed.
  Result<std::optional<std::vector<std::byte>>> read_output(std::chrono::milliseconds wait);
  void close_input();
  // Its exit status (128 + signal if it was killed), waiting up to `wait`; nullopt: still running.
  std::optional<int> wait_for_exit(std::chrono::milliseconds wait);

 private:
  ChildProcess() = default;
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::optional<int> exit_status_;
};

}  // namespace fgsync::io
