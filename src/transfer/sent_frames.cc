#include "transfer/sent_frames.h"

namespace fgsync::transfer {
namespace {

Status lying_count() {
  return Status(ErrorCode::kProtocolError, "counted other frames than there were");
}

}  // namespace

std::uint64_t SentFrames::add(WorkItem item) {
  frames_.push_back({std::move(item), false});
  return confirmed_ + frames_.size();
}

void SentFrames::mark_sent(std::uint64_t number) {
  if (number > confirmed_) frames_[number - confirmed_ - 1].sent = true;
}

// Up to that number.
std::size_t SentFrames::forget(std::uint64_t frames) {
  std::size_t items = 0;
  for (; confirmed_ < frames; ++confirmed_) {
    end_confirmed_ = frames_.front().item.is_stream_end();
    if (!end_confirmed_) ++items;
    frames_.pop_front();
  }
  return items;
}

Result<std::size_t> SentFrames::confirm(std::uint64_t frames) {
  if (frames > confirmed_ + frames_.size()) return lying_count();
  // A frame may have come before its sender is told that it has gone.
  std::uint64_t settled = confirmed_;
  while (settled < frames && frames_[settled - confirmed_].sent) ++settled;
  return forget(settled);
}

Result<SentFrames::Ended> SentFrames::end(std::uint64_t frames) {
  if (frames < confirmed_ || frames > confirmed_ + frames_.size()) return lying_count();
  for (std::uint64_t i = confirmed_; i < frames; ++i) {
    if (!frames_[i - confirmed_].sent) return lying_count();
  }
  Ended ended;
  ended.confirmed = forget(frames);
  ended.whole = end_confirmed_;
  for (Frame& frame : frames_) {
    if (frame.item.is_stream_end()) continue;
    frame.item.again |= frame.sent;
    ended.lost.push_back(std::move(frame.item));
  }
  frames_.clear();
  return ended;
}

}  // namespace fgsync::transfer
