// Opens a session's data streams once its control connection stands: all of them, or none.
#pragma once

#include <optional>

#include "transfer/session.h"
#include "transport/connection.h"
#include "transport/session_secret.h"

namespace fgsync::transfer {

// What a data connection needs to know of its session.
struct SessionKeys {
  transport::SessionSecret secret;
  transport::SessionId id;
};

// Initiator: connects session.parameters.streams connections to `peer`, from `local` if given, each
// on the worker that will own it.
io::Task<Status> connect_streams(Session& session, const SessionKeys& keys, io::SocketAddress peer,
                                 std::optional<io::SocketAddress> local, io::TimePoint deadline);

// Far side: waits for all of them.
io::Task<Status> accept_streams(Session& session, const SessionKeys& keys,
                                transport::SessionListener& listener, io::TimePoint deadline);

}  // namespace fgsync::transfer
