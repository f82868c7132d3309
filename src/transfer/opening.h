// How a session opens, message by message, before anything is walked or sent. docs/protocol.md has
// the order.
#pragma once

#include <string>
#include <vector>

#include "transfer/session.h"
#include "transfer/source_mapping.h"
#include "transfer/target_mapping.h"
#include "wire/message.h"

namespace fgsync::transfer {

// What the proposal and its answer amount to.
SessionParameters agreed_parameters(const wire::Setup& setup, const wire::SetupReply& reply);

// Both sides: says hello and agrees on a version.
io::Task<Status> exchange_hello(Session& session);

// Initiator: proposes, takes over what the far side answers into session.parameters. Returns the
// far side's reply.
io::Task<Result<wire::SetupReply>> propose_setup(Session& session, wire::Setup setup);
// Far side: the initiator's proposal, answered with at most `streams_max` streams;
// session.parameters are set.
io::Task<Result<wire::Setup>> answer_setup(Session& session, std::uint16_t streams_max,
                                           std::string io_engine);

// The paths of a list, from an initiator that receives to the sender, which refuses what is none.
io::Task<Status> tell_listed_paths(Session& session, const std::vector<std::string>* paths);
io::Task<Status> take_listed_paths(Session& session);

// Sender: resolves the sources on this host, offers them, and learns where they land.
struct OfferedSources {
  std::vector<ResolvedSource> sources;
  wire::TargetAccept accept;
};
io::Task<Result<OfferedSources>> offer_sources(Session& session, std::vector<std::string> paths);

// Receiver: hears what comes, and decides where it lands.
struct AcceptedTarget {
  std::vector<wire::SourceDescription> sources;
  ResolvedTarget target;
};
io::Task<Result<AcceptedTarget>> accept_sources(Session& session, std::string target);

// Tells the peer why this side will not go on. For failures before the session's own machinery
// runs.
io::Task<void> refuse(Session& session, Status status);

}  // namespace fgsync::transfer
