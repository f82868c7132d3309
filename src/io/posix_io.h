// The engine that every kernel and container allows: epoll for sockets, the blocking pool for
// files.
#pragma once

#include <memory>

#include "io/reactor.h"

namespace fgsync::io {

Result<std::unique_ptr<Reactor>> make_posix_io(Environment& environment,
                                               BlockingPool& blocking_pool);

}  // namespace fgsync::io
