// What the planner still does when everything has come.
#include "base/mark.h"
#include "transfer/planner.h"

namespace fgsync::transfer {

std::vector<storage::DirectoryReference> Planner::mount_directories() {
  std::vector<storage::DirectoryReference> directories;
  for (const auto& [mount, id] : mounts_) {
    auto directory = directories_.open(id);
    // One that cannot be entered is named when its own metadata is set; nothing was put into it.
    if (directory.ok()) directories.push_back(*directory);
  }
  return directories;
}

void Planner::finish_directories(const std::function<void()>& before_root) {
  // Entries come parents first, so the deepest are last: a mode that forbids entering comes after
  // all below it.
  bool root_is_due = true;
  for (auto pending = pending_.rbegin(); pending != pending_.rend(); ++pending) {
    session_.add_progress();
    if (pending->id == 0) {
      before_root();
      root_is_due = false;
    }
    auto directory = directories_.open(pending->id);
    Status applied = directory.ok()
                         ? storage::apply_metadata(session_.files(), **directory, pending->metadata)
                         : directory.status();
    if (!applied.ok()) {
      mark("plan_directory_unfinished");
      const std::string relative = directories_.path_of(pending->id);
      session_.errors().add(relative.empty() ? target_.root : target_.root + "/" + relative,
                            applied);
    }
  }
  if (root_is_due) before_root();
  pending_.clear();
}

}  // namespace fgsync::transfer
