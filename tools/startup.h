// What the program does to its own surroundings before anything else.
#pragma once

#include "fgsync/transfer.h"

namespace fgsync::tools {

// Descriptors 0, 1 and 2 that are closed (cron, a careless parent) become /dev/null, so that no
// file or socket of the run takes their numbers and receives what was meant for the user.
void open_standard_descriptors();

// The first SIGINT, SIGTERM or SIGHUP asks `cancel`, which must outlive the process's signals; the
// next one ends the process by its default action. Signals that were ignored from the start (nohup)
// stay so. A broken pipe becomes an error of the write.
void install_signal_actions(CancelToken& cancel);

}  // namespace fgsync::tools
