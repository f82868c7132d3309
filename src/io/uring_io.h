// The io_uring engine: sockets and direct I/O through a ring of the worker's own.
#pragma once

#include <memory>

#include "io/reactor.h"

namespace fgsync::io {

// kUnsupported with the reason when this kernel, or what confines this process, does not allow it.
Result<std::unique_ptr<Reactor>> make_uring_io(Environment& environment,
                                               BlockingPool& blocking_pool);

// OK when a ring can be made and knows every operation that the engine uses; otherwise kUnsupported
// with the reason and what could be done about it.
Status probe_uring();

}  // namespace fgsync::io
