#include "transfer/data_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fgsync::transfer {

DataStream::Connection DataStream::connection() const {
  std::lock_guard lock(mutex_);
  return current_;
}

void DataStream::replace(Connection next) {
  Connection past;  // goes away outside the lock
  std::lock_guard lock(mutex_);
  past = std::exchange(current_, std::move(next));
  past_bytes_ += past.stream->wire_bytes();
  if (current_.generation <= dropped_) current_.stream->shutdown();
}

void DataStream::drop(std::uint32_t generation) {
  std::lock_guard lock(mutex_);
  dropped_ = std::max<std::int64_t>(dropped_, generation);
  if (current_.generation <= dropped_) current_.stream->shutdown();
}

void DataStream::shutdown() { drop(std::numeric_limits<std::uint32_t>::max()); }

std::uint64_t DataStream::wire_bytes() const {
  std::lock_guard lock(mutex_);
  return past_bytes_ + current_.stream->wire_bytes();
}

}  // namespace fgsync::transfer
