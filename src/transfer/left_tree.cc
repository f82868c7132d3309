#include "transfer/left_tree.h"

#include "base/mark.h"
#include "transfer/leftover_age.h"
#include "transfer/link_switch.h"
#include "transfer/source_mapping.h"
#include "transfer/workshop.h"

namespace fgsync::transfer {
namespace {

// Whether the target is the tree that was made there, so that what is left is the one before.
bool is_published(io::FileSystem& files, const TreeTarget& target, const Workshop& workshop) {
  auto base = load_base(files, workshop.directory());
  auto named = files.stat_at(target.parent, target.name);
  return base.ok() && named.ok() && named->inode == base->new_inode;
}

}  // namespace

void settle_left_tree(Session& session, const std::string& path) {
  io::FileSystem& files = session.files();
  auto target = find_tree_target(files, path);
  if (!target.ok()) return;  // what cannot be switched has nothing beside it
  Workshop workshop(files, /*durable=*/false, [&session] {
    session.add_progress();
    return session.status();
  });
  auto opened = workshop.try_open_present(target->parent, target->workshop_name());
  if (!opened.ok() || !*opened) return;
  auto status = files.stat(workshop.directory());
  Status settled = status.status();
  if (settled.ok() && target->kind == TreeTarget::Kind::kSymlink) {
    settled = LinkSwitch(session, *target, workshop.directory()).recover();
  }
  const std::string place = parent_of(target->path) + "/" + target->workshop_name();
  const bool published = is_published(files, *target, workshop);
  if (settled.ok() && !published && !is_too_old(session.environment(), status->mtime)) {
    mark("left_tree_kept");
    workshop.close(target->parent);
    return session.errors().note(
        "an interrupted run with --publish=tree has left its new tree in " + place +
        "; it is removed after seven days");
  }
  if (settled.ok()) settled = workshop.remove(target->parent);
  session.errors().note(
      settled.ok() ? "removed what an earlier run with --publish=tree has left in " + place
                   : "removing what an earlier run has left: " + place + ": " + settled.message());
}

}  // namespace fgsync::transfer
