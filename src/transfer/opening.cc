#include "transfer/opening.h"

#include <algorithm>

#include "base/limits.h"
#include "base/mark.h"
#include "transfer/tree_target.h"
#include "transport/session_secret.h"

namespace fgsync::transfer {
namespace {

// The next message, which must be a T.
template <typename T>
io::Task<Result<T>> expect(Session& session) {
  Result<wire::Message> message = co_await receive_message(session);
  if (!message.ok()) co_return message.status();
  if (auto* expected = std::get_if<T>(&*message)) co_return std::move(*expected);
  co_return Status(ErrorCode::kProtocolError, session.peer() + ": a message out of order");
}

io::Task<Status> tell(Session& session, wire::Message message) {
  std::vector<std::byte> bytes = wire::encode(message);
  Status sent = co_await session.control().send(std::move(bytes));
  co_return sent.with_context(session.peer());
}

// What every later step relies on.
bool is_sound(const wire::SourceOffer& offer) {
  return std::all_of(offer.sources.begin(), offer.sources.end(), [](const auto& source) {
    return !source.ancestry.empty() && (source.is_directory || !source.base_name.empty());
  });
}

// A far side may choose for `auto`, and nothing else: never a weaker cipher than asked for.
bool is_acceptable(Cipher asked, Cipher chosen) {
  if (asked != Cipher::kAuto) return chosen == asked;
  return chosen == Cipher::kAes128Gcm || chosen == Cipher::kChaCha20Poly1305;
}

}  // namespace

SessionParameters agreed_parameters(const wire::Setup& setup, const wire::SetupReply& reply) {
  return {.dry_run = setup.dry_run,
          .compare = setup.compare,
          .make_parents = setup.make_parents,
          .read_back = setup.read_back,
          .resume = setup.resume,
          .fail_if_locked = setup.fail_if_locked,
          .publish_tree = setup.publish_tree,
          .durability = setup.durability,
          .last = setup.last,
          .selection = setup.selection,
          .changes = setup.changes,
          .direct_io = setup.direct_io,
          .cipher = reply.cipher,
          .streams = reply.streams,
          .chunk_bytes = setup.chunk_bytes,
          .bandwidth_limit = setup.bandwidth_limit,
          .timeout = std::chrono::milliseconds(setup.timeout_ms)};
}

io::Task<Status> exchange_hello(Session& session) {
  const wire::Hello ours{.software = std::string("fgsync ") + version_string()};
  Status told = co_await tell(session, ours);
  if (!told.ok()) co_return told;
  Result<wire::Hello> theirs = co_await expect<wire::Hello>(session);
  if (!theirs.ok()) co_return theirs.status();
  Result<std::uint16_t> version = wire::negotiate_version(ours, *theirs);
  co_return version.ok() ? Status() : version.status().with_context(session.peer());
}

io::Task<Result<wire::SetupReply>> propose_setup(Session& session, wire::Setup setup) {
  Status told = co_await tell(session, setup);
  if (!told.ok()) co_return told;
  Result<wire::SetupReply> reply = co_await expect<wire::SetupReply>(session);
  if (!reply.ok()) co_return reply.status();
  if (reply->streams > setup.streams || !is_acceptable(setup.cipher, reply->cipher)) {
    co_return Status(ErrorCode::kProtocolError,
                     session.peer() + ": answered with something that was not proposed");
  }
  session.parameters = agreed_parameters(setup, *reply);
  co_return std::move(*reply);
}

io::Task<Result<wire::Setup>> answer_setup(Session& session, std::uint16_t streams_max,
                                           std::string io_engine) {
  Result<wire::Setup> setup = co_await expect<wire::Setup>(session);
  if (!setup.ok()) co_return setup.status();
  wire::SetupReply reply;
  reply.streams = std::min(setup->streams, streams_max);
  reply.cipher =
      transport::choose_cipher(setup->cipher, session.environment().has_aes(), setup->has_aes);
  reply.io_engine = std::move(io_engine);
  session.parameters = agreed_parameters(*setup, reply);
  Status told = co_await tell(session, reply);
  if (!told.ok()) co_return told;
  co_return std::move(*setup);
}

io::Task<Status> tell_listed_paths(Session& session, const std::vector<std::string>* paths) {
  for (std::size_t next = 0; next < paths->size() || next == 0;) {
    wire::ListedPaths message;
    for (std::size_t bytes = 0; next < paths->size() && bytes < limits::kListedBatchBytes &&
                                message.paths.size() < limits::kListedBatchPaths;
         ++next) {
      bytes += (*paths)[next].size();
      message.paths.push_back((*paths)[next]);
    }
    message.more = next < paths->size();
    Status told = co_await tell(session, std::move(message));
    if (!told.ok() || next == paths->size()) co_return told;
  }
  co_return Status();
}

io::Task<Status> take_listed_paths(Session& session) {
  std::size_t bytes = 0;
  for (bool more = true; more;) {
    Result<wire::ListedPaths> message = co_await expect<wire::ListedPaths>(session);
    if (!message.ok()) co_return message.status();
    more = message->more;
    for (std::string& path : message->paths) {
      bytes += path.size();
      const Result<std::string> read = parse_listed_path(path);
      if (!read.ok() || *read != path || bytes > limits::kListedBytesMax ||
          session.listed_paths.size() == limits::kListedPathsMax) {
        co_return Status(ErrorCode::kProtocolError,
                         session.peer() + ": a list that is not possible");
      }
      session.listed_paths.push_back(std::move(path));
    }
    session.add_progress();
  }
  co_return Status();
}

io::Task<Result<OfferedSources>> offer_sources(Session& session, std::vector<std::string> paths) {
  Result<std::vector<ResolvedSource>> sources = Status(ErrorCode::kUnusable, "not resolved");
  co_await io::run_blocking(session.control_io(), [&] {
    sources =
        resolve_sources(session.environment(), paths, session.parameters.selection.lists_paths);
  });
  if (!sources.ok()) co_return sources.status();
  wire::SourceOffer offer;
  for (const ResolvedSource& source : *sources) offer.sources.push_back(source.description);
  Status told = co_await tell(session, std::move(offer));
  if (!told.ok()) co_return told;
  Result<wire::TargetAccept> accept = co_await expect<wire::TargetAccept>(session);
  if (!accept.ok()) co_return accept.status();
  const bool whole_tree = sources->size() == 1 && sources->front().description.is_directory;
  if (accept->names.size() != sources->size() || accept->displays.size() != sources->size() ||
      (accept->replica_of_contents && !whole_tree)) {
    co_return Status(ErrorCode::kProtocolError,
                     session.peer() + ": accepted other sources than were offered");
  }
  co_return OfferedSources{std::move(*sources), std::move(*accept)};
}

io::Task<Result<AcceptedTarget>> accept_sources(Session& session, std::string target) {
  Result<wire::SourceOffer> offer = co_await expect<wire::SourceOffer>(session);
  if (!offer.ok()) co_return offer.status();
  if (!is_sound(*offer)) {
    co_return Status(ErrorCode::kProtocolError,
                     session.peer() + ": offered a source that says too little of itself");
  }
  Result<ResolvedTarget> resolved = Status(ErrorCode::kUnusable, "not resolved");
  co_await io::run_blocking(session.control_io(), [&] {
    const bool at_once = session.parameters.publish_tree && lands_as_tree(offer->sources);
    resolved = resolve_target(session.environment(), target, offer->sources,
                              session.parameters.make_parents,
                              session.parameters.dry_run ? RootMaking::kNone
                              : at_once                  ? RootMaking::kAboveRoot
                                                         : RootMaking::kAll);
    if (at_once && session.parameters.dry_run && resolved.ok() && resolved->exists) {
      // The real run finds out for itself, and would refuse.
      auto switched = find_tree_target(session.files(), resolved->typed_root);
      if (!switched.ok()) resolved = switched.status();
    }
  });
  if (!resolved.ok()) co_return resolved.status();
  Status told = co_await tell(session, resolved->accept);
  if (!told.ok()) co_return told;
  co_return AcceptedTarget{std::move(offer->sources), std::move(*resolved)};
}

io::Task<void> refuse(Session& session, Status status) {
  mark("opening_refused");
  session.fail(status);
  co_await write_control(session);
}

}  // namespace fgsync::transfer
