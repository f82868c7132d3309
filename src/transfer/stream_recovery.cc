#include "transfer/stream_recovery.h"

#include <string>

#include "base/mark.h"
#include "transfer/data_connections.h"

namespace fgsync::transfer {

io::Task<bool> StreamRecovery::replace(std::size_t index, Status lost) {
  if (session_.connections == nullptr) {
    session_.stream_lost(lost);
    co_return false;
  }
  DataStream& data = *session_.streams[index];
  Result<DataStream::Connection> next =
      co_await session_.connections->replace(std::uint16_t(index), lost);
  co_await io::resume_on(data.io());
  if (next.ok()) {
    data.replace(std::move(*next));
    co_return true;
  }
  const bool needed = next.status().code() != ErrorCode::kCancelled;
  if (needed && !session_.failed()) give_up(index, next.status());
  co_return false;
}

void StreamRecovery::give_up(std::size_t index, const Status& lost) {
  if (streams_left_.fetch_sub(1) == 1) {
    const bool stranger = lost.code() == ErrorCode::kUnauthenticated;
    return session_.stream_lost(
        stranger ? lost : Status(ErrorCode::kConnectionLost, lost.message(), lost.system_errno()));
  }
  mark("session_goes_on_without_a_stream");
  session_.errors().note("data connection " + std::to_string(index + 1) + " of " +
                         std::to_string(session_.streams.size()) +
                         " was lost and could not be made again: " + lost.message());
}

io::Task<void> StreamRecovery::stop_when(io::Event& over) {
  co_await over.wait(session_.control_io());
  if (session_.connections != nullptr) session_.connections->stop();
}

}  // namespace fgsync::transfer
