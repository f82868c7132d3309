// The steps of operations that both engines take alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/io.h"

namespace fgsync::io {

// Takes `count` bytes off the front of the operation's vectors. True when the operation is complete
// with what it has: every vector is done, or this kind may end short.
bool absorb(Operation& operation, std::size_t count);

// MSG_* flags of a kReceive or kSend; SIGPIPE never comes.
int message_flags(const Operation& operation);

void set_nonblocking(int descriptor, bool nonblocking);

// Starts connecting without blocking: 0 when the connection stands at once, -EINPROGRESS when its
// end is to be awaited by polling for writing, or another negated errno. The socket is left in
// blocking mode.
std::int64_t begin_connect(const Operation& operation);
// How it ended, once the socket polls as writable: 0 or a negated errno.
std::int64_t end_connect(const Operation& operation);

// Runs a kRun, kRead or kWrite to its end on this thread and sets its result.
void run_blocking_operation(Operation& operation);

}  // namespace fgsync::io
