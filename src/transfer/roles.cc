#include "transfer/roles.h"

#include <optional>

namespace fgsync::transfer {
namespace {

io::Task<void> register_region(io::Io* io, std::span<std::byte> region) {
  io->register_region(region);
  co_return;
}

// A pool of this side's own, unless the session was given one, known to every worker's engine.
io::Task<Status> ensure_pool(Session* session, Role* role) {
  if (session->pool != nullptr) co_return Status();
  auto pool = make_buffer_pool(session->parameters);
  if (!pool.ok()) co_return pool.status();
  role->own_pool = std::move(*pool);
  session->pool = role->own_pool.get();
  io::TaskGroup registering;
  for (std::size_t i = 0; i < session->runtime().worker_count(); ++i) {
    io::Io& io = session->runtime().worker(i);
    registering.spawn(io, register_region(&io, session->pool->region()));
  }
  co_await registering.join(session->control_io());
  co_return Status();
}

io::Task<Status> prepare(Session* session, Role* role, DataConnections* connections) {
  // Whatever fails the session from here on finds what it must wake; what has failed it before has
  // not.
  if (session->failed()) co_return session->status();
  if (session->parameters.dry_run) co_return Status();
  Status pooled = co_await ensure_pool(session, role);
  if (!pooled.ok() || connections == nullptr) co_return pooled;
  session->connections = connections;
  Status opened = co_await connections->open();
  if (opened.ok()) opened = session->status();
  co_return opened;
}

}  // namespace

ProgressSnapshot Role::progress() const {
  if (sender) return sender->progress();
  if (receiver) return receiver->progress();
  if (compare_sender) return compare_sender->progress();
  if (compare_receiver) return compare_receiver->progress();
  return {};
}

std::uint64_t Role::held_bytes() const {
  if (sender) return sender->held_bytes();
  if (receiver) return receiver->held_bytes();
  return 0;
}

std::string make_session_name(io::Environment& environment) {
  std::byte random[8];
  environment.random_bytes(random);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name;
  for (const std::byte byte : random) {
    name += kDigits[std::to_integer<unsigned>(byte) >> 4];
    name += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return name;
}

io::Task<void> run_sender(Session* session, Role* role, std::vector<std::string> paths,
                          DataConnections* connections) {
  if (session->parameters.selection.copy_links) session->follow_links();
  // What is there, and where does the receiver put it?
  Result<OfferedSources> offered = co_await offer_sources(*session, std::move(paths));
  Status ready = offered.ok() ? Status() : offered.status();
  if (ready.ok()) {
    role->sources = std::move(offered->sources);
    for (const ResolvedSource& source : role->sources) {
      role->source_displays.push_back(source.description.display);
    }
    role->target_displays = offered->accept.displays;
    ready = co_await prepare(session, role, connections);
  }
  if (!ready.ok()) {
    co_await refuse(*session, ready);
    co_return;
  }
  if (session->parameters.compare) {
    role->compare_sender =
        std::make_unique<CompareSender>(*session, role->sources, std::move(offered->accept));
    co_await role->compare_sender->run();
    co_return;
  }
  role->sender = std::make_unique<SendSession>(*session, role->sources, std::move(offered->accept));
  co_await role->sender->run();
}

io::Task<void> run_receiver(Session* session, Role* role, std::string target,
                            std::string session_name, DataConnections* connections) {
  // What comes, and where does it land?
  Result<AcceptedTarget> accepted = co_await accept_sources(*session, std::move(target));
  Status ready = accepted.ok() ? Status() : accepted.status();
  io::FileHandle root;
  const bool at_once = ready.ok() && session->parameters.publish_tree &&
                       !session->parameters.dry_run && lands_as_tree(accepted->sources);
  if (ready.ok()) {
    for (const wire::SourceDescription& source : accepted->sources) {
      role->source_displays.push_back(source.display);
    }
    role->target_displays = accepted->target.accept.displays;
    if (at_once) {
      accepted->target.exists = true;  // it will, beside its place
    } else if (accepted->target.exists) {
      Result<io::FileHandle> opened = session->files().open_path(accepted->target.root);
      if (opened.ok()) {
        root = std::move(*opened);
      } else {
        ready =
            Status(ErrorCode::kUnusable, accepted->target.root + ": " + opened.status().message());
      }
    } else if (session->parameters.compare) {
      ready = Status(ErrorCode::kUnusable,
                     accepted->target.root + ": comparing: No such file or directory");
    }
  }
  if (ready.ok()) ready = co_await prepare(session, role, connections);
  if (!ready.ok()) {
    co_await refuse(*session, ready);
    co_return;
  }
  if (session->parameters.compare) {
    role->compare_receiver =
        std::make_unique<CompareReceiver>(*session, accepted->target, std::move(root));
    co_await role->compare_receiver->run();
    co_return;
  }
  const wire::Checksum transfer = transfer_identity(accepted->sources);
  std::optional<TreeSwitch> tree_switch;
  if (at_once) tree_switch.emplace(*session, accepted->target.typed_root, transfer);
  role->receiver = std::make_unique<ReceiveSession>(*session, accepted->target, std::move(root),
                                                    std::move(session_name), transfer,
                                                    tree_switch ? &*tree_switch : nullptr);
  co_await role->receiver->run();
}

}  // namespace fgsync::transfer
