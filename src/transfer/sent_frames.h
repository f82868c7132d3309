// What the sender has put on one stream and does not know to have arrived, in the order in which
// the frames go: so that a connection that breaks costs only the frames that were on it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "fgsync/status.h"
#include "transfer/chunk_scheduler.h"

namespace fgsync::transfer {

// Frames are counted from 1, over all connections of the stream; one that is sent again gets a new
// number. Not thread-safe.
class SentFrames {
 public:
  // A frame that is handed to the connection next. Its number.
  std::uint64_t add(WorkItem item);
  // The connection has taken all of it. Its bytes count as sent from now on, and what was learned
  // from reading them is kept: should it not arrive, its item is sent again (WorkItem::again).
  void mark_sent(std::uint64_t number);

  // The receiver has so many frames. How many items that settles; kProtocolError for more frames
  // than there were.
  Result<std::size_t> confirm(std::uint64_t frames);

  // The same once nothing uses the connection any more, and no more will arrive over it. What is
  // lost must be sent again and is forgotten here; the next frame's number is frames + 1.
  struct Ended {
    std::size_t confirmed = 0;
    std::vector<WorkItem> lost;
    bool whole = false;  // the stream's end has arrived, and so has all before it
  };
  Result<Ended> end(std::uint64_t frames);

 private:
  struct Frame {
    WorkItem item;
    bool sent = false;
  };
  std::size_t forget(std::uint64_t frames);

  std::uint64_t confirmed_ = 0;  // number of the last frame known to have arrived
  bool end_confirmed_ = false;   // that was the stream's end
  std::deque<Frame> frames_;     // those after it
};

}  // namespace fgsync::transfer
