#include "transfer/incoming_stream.h"

#include "base/mark.h"

namespace fgsync::transfer {

io::Task<Result<transport::ReceivedFrame>> IncomingStream::receive() {
  while (true) {
    Result<transport::ReceivedFrame> frame = co_await connection_.stream->receive();
    if (frame.ok()) {
      frames_.fetch_add(1, std::memory_order_relaxed);
      co_return frame;
    }
    const Status lost = frame.status().with_context(session_.peer());
    if (lost.code() != ErrorCode::kConnectionLost) session_.fail(lost);
    end_connection();
    if (session_.failed()) co_return lost;
    const bool replaced = co_await recovery_.replace(index_, lost);
    if (!replaced) co_return lost;
    mark("receive_over_another_connection");
    begin_connection();
  }
}

void IncomingStream::finish() {
  end_connection();
  recovery_.ended();
}

void IncomingStream::begin_connection() {
  std::lock_guard lock(mutex_);
  connection_ = data_.connection();
  reading_ = true;
}

// From now on nothing more is counted, and the number of frames is what the sender goes by.
void IncomingStream::end_connection() {
  data_.drop(connection_.generation);
  std::lock_guard lock(mutex_);
  reading_ = false;
  tell_ended(connection_.generation);
}

void IncomingStream::tell_ended(std::uint32_t generation) {
  session_.push(wire::StreamEnded{std::uint16_t(index_), generation, frames()});
}

Status IncomingStream::on_ended(const wire::StreamEnded& ended) {
  if (ended.frames != 0) {
    return Status(ErrorCode::kProtocolError, "a count of frames that were not sent");
  }
  // Also one that this side has not taken yet: nothing that came over it may be counted later.
  data_.drop(ended.generation);
  std::lock_guard lock(mutex_);
  // Whoever reads it notices, and says how far it has come.
  if (reading_ && connection_.generation <= ended.generation) return Status();
  mark("receive_end_of_another_connection");
  tell_ended(ended.generation);
  return Status();
}

}  // namespace fgsync::transfer
