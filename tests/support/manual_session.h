// A session on a worker without threads and a clock that the test moves, for what depends on time;
// the other end is the test itself.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "support/manual_io.h"
#include "transfer/session.h"
#include "transport/memory_stream.h"

namespace fgsync::testing {

// One worker for everything; what it was given runs when the test lets time pass.
class ManualRuntime final : public io::Runtime {
 public:
  io::Io& control() override { return io_; }
  std::size_t worker_count() const override { return 1; }
  io::Io& worker(std::size_t) override { return io_; }
  io::Environment& environment() override { return io_.environment(); }
  const char* engine_name() const override { return "manual"; }
  void run(io::Task<void>) override { std::abort(); }

  void run_for(io::Duration time) { io_.run_for(time); }

 private:
  ManualIo io_;
};

class ManualSession {
 public:
  // It listens to what the peer says: to all of it, or to the first message alone.
  explicit ManualSession(bool listens_on = true) {
    io::Io& io = runtime_.control();
    tasks_.spawn(io, write_control(session));
    tasks_.spawn(io, hear(peer_.get(), &heard_));
    tasks_.spawn(io, listen(&session, listens_on));
  }
  ~ManualSession() {
    session.close_outbox();
    session.control().shutdown();
    peer_->shutdown();
    run_for(std::chrono::seconds(1));  // write_control() gives a peer a moment after a failure
  }

  void run_for(io::Duration time) { runtime_.run_for(time); }
  io::Io& io() { return runtime_.control(); }

  // What the peer says.
  void say(const wire::Message& message) {
    tasks_.spawn(io(), send(peer_.get(), wire::encode(message)));
    run_for(io::Duration::zero());
  }
  // The last of this kind that the peer was told.
  template <typename T>
  std::optional<T> heard_last() {
    run_for(io::Duration::zero());
    std::optional<T> last;
    for (const wire::Message& message : heard_) {
      if (const auto* wanted = std::get_if<T>(&message)) last = *wanted;
    }
    return last;
  }

 private:
  using Control = transport::ControlStream;

  static io::Task<void> send(Control* control, std::vector<std::byte> bytes) {
    (void)co_await control->send(std::move(bytes));
  }
  static io::Task<void> listen(transfer::Session* session, bool on) {
    do {
      Result<wire::Message> message = co_await receive_message(*session);
      if (!message.ok()) co_return;
    } while (on);
  }
  static io::Task<void> hear(Control* control, std::vector<wire::Message>* heard) {
    while (true) {
      Result<std::vector<std::byte>> bytes = co_await control->receive();
      if (!bytes.ok()) co_return;
      Result<wire::Message> message = wire::decode_message(*bytes);
      if (message.ok()) heard->push_back(std::move(*message));
    }
  }

  ManualRuntime runtime_;
  CancelToken cancel_;
  std::pair<std::unique_ptr<Control>, std::unique_ptr<Control>> ends_ =
      transport::make_memory_control_streams(runtime_.control(), runtime_.control());
  const std::unique_ptr<Control> peer_ = std::move(ends_.second);
  std::vector<wire::Message> heard_;

 public:
  transfer::Session session{runtime_, std::move(ends_.first), "peer", cancel_};

 private:
  io::TaskGroup tasks_;
};

}  // namespace fgsync::testing
