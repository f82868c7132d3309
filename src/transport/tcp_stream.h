// A data stream over TCP. On the wire a frame is: length of the payload (4 bytes, little-endian),
// the frame header, the payload, and, where there is a cipher, the tag. The associated data is
// length and header.
#pragma once

#include <memory>

#include "io/io.h"
#include "transport/frame_cipher.h"
#include "transport/stage_meter.h"
#include "transport/stream.h"

namespace fgsync::transport {

struct TcpStreamParts {
  io::Socket socket;
  std::unique_ptr<FrameCipher> sealer;  // both null with --cipher=none
  std::unique_ptr<FrameCipher> opener;
};

// Works on `io`'s worker; `pool` gives the receive buffers; `meter` counts send, receive, encrypt,
// decrypt.
std::unique_ptr<Stream> make_tcp_stream(io::Io& io, TcpStreamParts parts, BufferPool& pool,
                                        StageMeter& meter);

}  // namespace fgsync::transport
