// Standard input and output of a far side that a remote shell has started, and what the shell says
// about itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "fgsync/status.h"

namespace fgsync::io {

// One line (without its end) from standard input; kTimeout, kConnectionLost at its end,
// kProtocolError beyond `bytes_max`.
Result<std::string> read_standard_input_line(std::size_t bytes_max, std::chrono::milliseconds wait);
// Whether standard input has been closed: the one who started this process is gone. Swallows what
// may still come.
bool is_standard_input_closed();
Status write_standard_output(const std::string& text);

// Whether there is a terminal on which this process's user can be asked something.
bool has_terminal();

// The address of this host on which sshd was reached (SSH_CONNECTION's third field); empty if there
// is none.
std::string address_reached_by_ssh();

}  // namespace fgsync::io
