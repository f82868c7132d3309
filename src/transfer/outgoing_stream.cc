#include "transfer/outgoing_stream.h"

#include "base/mark.h"

namespace fgsync::transfer {

OutgoingStream::OutgoingStream(Session& session, std::size_t index, ChunkScheduler& scheduler,
                               StreamRecovery& recovery)
    : session_(session),
      index_(index),
      data_(*session.streams[index]),
      scheduler_(scheduler),
      recovery_(recovery) {
  begin_connection();
}

void OutgoingStream::begin_connection() {
  connection_ = data_.connection();
  lost_ = Status();
  scheduler_.admit(lanes_);
  std::lock_guard lock(mutex_);
  generation_ = connection_.generation;
  has_ended_ = false;
}

// Frames of several lanes go in the order in which they are numbered: between the numbering and the
// connection's turn there is no wait (Stream::send).
io::Task<Status> OutgoingStream::send(wire::FrameHeader header, WorkItem item, Buffer payload) {
  std::uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    number = sent_.add(std::move(item));
  }
  Status sent = co_await connection_.stream->send(wire::encode(header), std::move(payload));
  if (sent.ok()) {
    std::lock_guard lock(mutex_);
    sent_.mark_sent(number);
  } else {
    lose(sent);
  }
  co_return sent;
}

void OutgoingStream::lose(const Status& status) {
  if (!lost_.ok()) return;
  lost_ = status.with_context(session_.peer());
  if (status.code() != ErrorCode::kConnectionLost || session_.connections == nullptr) {
    session_.stream_lost(lost_);
  }
  // The receiver may not notice by itself: nothing comes over a connection that is silently dead.
  session_.push(wire::StreamEnded{std::uint16_t(index_), connection_.generation, 0});
  data_.drop(connection_.generation);
  scheduler_.release(lanes_);
}

io::Task<bool> OutgoingStream::finish_connection() {
  if (session_.failed()) co_return false;
  if (!scheduler_.is_released(lanes_)) {
    const wire::FrameHeader end{.type = wire::FrameType::kStreamEnd};
    Status sent = co_await send(end, WorkItem(), Buffer());
    if (!sent.ok()) mark("send_stream_end_lost");
  }
  std::optional<std::uint64_t> frames = co_await ended_.pop(io());
  if (!frames) co_return false;
  Result<bool> whole = settle(*frames);
  if (!whole.ok()) session_.fail(whole.status().with_context(session_.peer()));
  if (session_.failed()) co_return false;
  if (*whole) {
    recovery_.ended();
    co_return false;
  }
  const Status lost =
      lost_.ok() ? Status(ErrorCode::kConnectionLost, session_.peer() + " lost it") : lost_;
  const bool replaced = co_await recovery_.replace(index_, lost);
  if (!replaced) co_return false;
  begin_connection();
  co_return true;
}

// True if the stream's end has arrived.
Result<bool> OutgoingStream::settle(std::uint64_t frames) {
  std::lock_guard lock(mutex_);
  Result<SentFrames::Ended> ended = sent_.end(frames);
  if (!ended.ok()) return ended.status();
  scheduler_.settle(lanes_, ended->confirmed);
  if (!ended->lost.empty()) mark("send_frames_again");
  scheduler_.take_back(lanes_, std::move(ended->lost));
  return ended->whole;
}

Status OutgoingStream::on_frames(std::uint64_t frames) {
  std::lock_guard lock(mutex_);
  Result<std::size_t> confirmed = sent_.confirm(frames);
  if (!confirmed.ok()) return confirmed.status();
  scheduler_.settle(lanes_, *confirmed);
  return Status();
}

Status OutgoingStream::on_ended(const wire::StreamEnded& ended) {
  {
    std::lock_guard lock(mutex_);
    // Said twice, or of a connection that the initiator gave up before it stood.
    if (ended.generation != generation_ || has_ended_) return Status();
    has_ended_ = true;
  }
  data_.drop(ended.generation);
  scheduler_.release(lanes_);
  (void)ended_.push(ended.frames);
  return Status();
}

}  // namespace fgsync::transfer
