// What a sender and what a receiver does from the opened control connection to the end: the same on
// whichever side it was started, over a network or inside one process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transfer/compare_receiver.h"
#include "transfer/compare_sender.h"
#include "transfer/data_connections.h"
#include "transfer/opening.h"
#include "transfer/receive_session.h"
#include "transfer/send_session.h"
#include "transfer/session.h"

namespace fgsync::transfer {

// One side's role while it runs and what came of it. One of the four is there once its session
// runs.
struct Role {
  std::unique_ptr<BufferPool> own_pool;  // unless the pool is shared with the other half
  std::vector<ResolvedSource> sources;
  std::unique_ptr<SendSession> sender;
  std::unique_ptr<ReceiveSession> receiver;
  std::unique_ptr<CompareSender> compare_sender;
  std::unique_ptr<CompareReceiver> compare_receiver;
  std::vector<std::string> source_displays;
  std::vector<std::string> target_displays;

  ProgressSnapshot progress() const;
  // Bytes that the receiver had already of files that had to be sent.
  std::uint64_t held_bytes() const;
  // Waiting is what was asked for.
  bool is_patient() const { return sender && sender->waits_for_rate_limit(); }
};

// Both return when the session is over; session.status() says how it went. On the control worker.
// `connections` are opened once both sides know that there will be a transfer; nullptr where the
// streams are there already.
io::Task<void> run_sender(Session* session, Role* role, std::vector<std::string> paths,
                          DataConnections* connections);
io::Task<void> run_receiver(Session* session, Role* role, std::string target,
                            std::string session_name, DataConnections* connections);

// A fresh name for this run's staging directory.
std::string make_session_name(io::Environment& environment);

}  // namespace fgsync::transfer
