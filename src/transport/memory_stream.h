// Streams inside one process, for local runs: a frame's buffer changes hands, nothing is copied.
#pragma once

#include <memory>
#include <utility>

#include "transport/stream.h"

namespace fgsync::transport {

// Two ends of one stream. What one sends the other receives; back-pressure is the buffer pool that
// both sides' buffers come from. Each end is used on its own worker, which may be the same.
//
// An end that is shut down or destroyed behaves as a socket does: it receives nothing more, and
// what was on its way to it goes back to the pool at once; its peer still receives what was sent
// before and then gets kConnectionLost.
std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> make_memory_streams(io::Io& first,
                                                                                io::Io& second);
std::pair<std::unique_ptr<ControlStream>, std::unique_ptr<ControlStream>>
make_memory_control_streams(io::Io& first, io::Io& second);

}  // namespace fgsync::transport
