// A session that runs nothing by itself, for testing its parts; what they would tell the peer can
// be looked at afterwards.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "support/test_runtime.h"
#include "transfer/session.h"
#include "transport/memory_stream.h"

namespace fgsync::testing {

class IdleSession {
 public:
  IdleSession() {
    session->parameters.chunk_bytes = 64 * 1024;
    session->want_changes();
  }

  FaultyFileSystem& files() { return runtime->files(); }
  // Everything that was pushed. Once, at the end.
  std::vector<wire::Message> told() {
    std::vector<wire::Message> messages;
    runtime->run(collect(&messages));
    return messages;
  }

  const std::unique_ptr<TestRuntime> runtime = TestRuntime::create(IoEngine::kPosix);
  CancelToken cancel;

 private:
  using Ends = std::pair<std::unique_ptr<transport::ControlStream>,
                         std::unique_ptr<transport::ControlStream>>;
  Ends ends_ = transport::make_memory_control_streams(runtime->control(), runtime->control());

 public:
  const std::unique_ptr<transfer::Session> session =
      std::make_unique<transfer::Session>(*runtime, std::move(ends_.first), "peer", cancel);

 private:
  io::Task<void> collect(std::vector<wire::Message>* messages) {
    session->close_outbox();
    co_await write_control(*session);
    session->control().shutdown();
    while (true) {
      Result<std::vector<std::byte>> bytes = co_await ends_.second->receive();
      if (!bytes.ok()) co_return;
      Result<wire::Message> message = wire::decode_message(*bytes);
      if (message.ok()) messages->push_back(std::move(*message));
    }
  }
};

}  // namespace fgsync::testing
