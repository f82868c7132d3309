// The receiver's side of a session, where contents are compared.
#include <utility>

#include "transfer/receive_session.h"

namespace fgsync::transfer {

// The sender is asked for its digest once there is one here to compare it with.
void ReceiveSession::compare(std::vector<Planner::Undecided> files) {
  std::vector<DigestRequest> requests;
  for (Planner::Undecided& file : files) {
    const std::uint64_t id = file.entry.id;
    requests.push_back({.place = {.directories = std::shared_ptr<storage::DirectoryTree>(
                                      std::shared_ptr<void>(), &directories_),
                                  .directory = file.entry.parent,
                                  .name = file.entry.name,
                                  .identity = {file.present.size, file.present.mtime}},
                        .chunk_bytes = session_.parameters.chunk_bytes,
                        .settle = [this, id](const Result<wire::Checksum>& digest) {
                          compared_.at(id).ours = digest;
                          session_.push(wire::PlanBatch{{{id, wire::PlanAction::kCompare}}});
                        }});
    compared_.emplace(id, Compared{.file = std::move(file)});
  }
  if (!requests.empty()) lanes_->add(std::move(requests));
}

io::Task<Status> ReceiveSession::on_their_digest(wire::FileEnd end) {
  const auto found = compared_.find(end.entry);
  if (!found->second.ours) {
    co_return Status(ErrorCode::kProtocolError, "a digest that was not asked for");
  }
  auto node = compared_.extract(found);
  Compared& compared = node.mapped();
  // What cannot be read here is not known to be the same.
  std::optional<Planner::Contents> contents;
  if (end.complete) {
    contents = {compared.ours->ok() && **compared.ours == end.digest, end.digest};
  }
  wire::PlanBatch plan;
  bool decided = false;
  while (!decided) {
    co_await io::run_blocking(session_.control_io(), [&] {
      decided = planner_.decide_compared(compared.file, contents, plan);
    });
    if (session_.failed()) co_return Status();
    if (decided) break;
    const bool locked = co_await lock_.take(TargetLock::Missing::kMake);
    if (!locked) co_return Status();
    planner_.may_change();
  }
  take_figures();
  session_.push(std::move(plan));
  co_return Status();
}

}  // namespace fgsync::transfer
