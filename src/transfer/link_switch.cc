#include "transfer/link_switch.h"

#include "storage/remove_tree.h"
#include "transfer/source_mapping.h"
#include "transfer/workshop.h"

namespace fgsync::transfer {
namespace {

// In the workshop: links that say which directory is going to have, and has had, the link.
constexpr const char* kNextName = "next";
constexpr const char* kPreviousName = "previous";

bool is_missing(const Status& status) { return status.code() == ErrorCode::kNotFound; }

}  // namespace

Status LinkSwitch::run() {
  std::string next;
  for (unsigned number = target_.number() + 1;; ++number) {
    next = target_.numbered(number);
    auto taken = files_.stat_at(target_.parent, next);
    if (is_missing(taken.status())) break;
    if (!taken.ok()) return taken.status();
  }
  // An earlier run's, that came as far as here.
  FGSYNC_RETURN_IF_ERROR(forget(kNextName));
  FGSYNC_RETURN_IF_ERROR(forget(kPreviousName));
  FGSYNC_RETURN_IF_ERROR(files_.make_symlink(workshop_, kPreviousName, target_.name));
  FGSYNC_RETURN_IF_ERROR(files_.make_symlink(workshop_, kNextName, next));
  const bool durable = session_.parameters.durability != Durability::kNone;
  if (durable) FGSYNC_RETURN_IF_ERROR(files_.sync(workshop_));
  FGSYNC_RETURN_IF_ERROR(files_.rename(workshop_, Workshop::kTreeName, target_.parent, next));
  if (durable) FGSYNC_RETURN_IF_ERROR(files_.sync(target_.parent));
  FGSYNC_RETURN_IF_ERROR(replace_link(next));
  return durable ? files_.sync(target_.link_parent) : Status();
}

Status LinkSwitch::forget(const char* name) {
  Status gone = files_.unlink(workshop_, name);
  return is_missing(gone) ? Status() : gone;
}

Status LinkSwitch::replace_link(const std::string& next) {
  const std::string aside = "." + target_.link_name + ".fgsync-link";
  Status cleared = files_.unlink(target_.link_parent, aside);
  if (!cleared.ok() && !is_missing(cleared)) return cleared;
  FGSYNC_RETURN_IF_ERROR(
      files_.make_symlink(target_.link_parent, aside, target_.link_text_for(files_, next)));
  return files_.rename(target_.link_parent, aside, target_.link_parent, target_.link_name);
}

Status LinkSwitch::recover() {
  auto next = files_.read_link(workshop_, kNextName);
  auto previous = files_.read_link(workshop_, kPreviousName);
  auto base = load_base(files_, workshop_);
  if (!next.ok() || !previous.ok() || !base.ok()) return Status();
  if (!io::is_single_component(*next) || !io::is_single_component(*previous)) return Status();
  auto named = files_.stat_at(target_.parent, *next);
  if (!named.ok() || named->inode != base->new_inode) return Status();
  if (*next != target_.name) {
    return files_.rename(target_.parent, *next, workshop_, Workshop::kTreeName);
  }
  auto old = files_.stat_at(target_.parent, *previous);
  const bool is_old = old.ok() && old->inode == base->old_inode;
  if (!is_old) return Status();
  // As in Workshop::clear().
  FGSYNC_RETURN_IF_ERROR(files_.sync(target_.link_parent));
  return remove_previous(*previous);
}

Status LinkSwitch::remove_previous(const std::string& name) {
  TreeTarget previous;
  previous.name = name;
  if (previous.number() == 1) {
    session_.errors().note(parent_of(target_.path) + "/" + name +
                           ", which the symlink led to, is left as it is");
    return Status();
  }
  return storage::remove_tree(files_, target_.parent, name, [this] {
    session_.add_progress();
    return Status();
  });
}

}  // namespace fgsync::transfer
