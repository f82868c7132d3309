#include "storage/tree_walker.h"

#include <utility>

#include "base/assert.h"
#include "base/mark.h"

namespace fgsync::storage {
namespace {

// The names of one branch of a list, which need not be there.
class ListedNames final : public io::DirectoryReader {
 public:
  ListedNames(const selection::ListedPaths& paths, const selection::ListedPaths::Branch& branch)
      : paths_(paths), left_(branch) {}

  Result<bool> next(std::size_t count, std::vector<io::DirectoryEntry>& entries) override {
    if (left_.empty()) return false;
    for (; count > 0 && !left_.empty(); --count) {
      selection::ListedPaths::Child child = paths_.first_of(left_);
      left_.begin = child.next;
      entries.push_back({std::move(child.name), io::FileType::kUnknown});
    }
    return true;
  }

 private:
  const selection::ListedPaths& paths_;
  selection::ListedPaths::Branch left_;
};

}  // namespace

TreeWalker::TreeWalker(io::FileSystem& files, DirectoryTree& tree, std::uint64_t first_id,
                       WalkScope scope)
    : files_(files), tree_(tree), next_id_(first_id), scope_(std::move(scope)) {}

void TreeWalker::add_directory(std::uint64_t id) {
  Reach reach;
  if (scope_.listed != nullptr) {
    const Listed::Child root = scope_.listed->root();
    reach.all_names = root.with_names;
    reach.all_below = root.is_listed && scope_.listed_directories_whole;
    reach.listed = root.below;
  }
  pending_.push_back({id, reach});
}

// An unreadable or vanished directory is reported and passed over.
bool TreeWalker::start_directory(const Pending& pending, std::vector<WalkError>& errors) {
  auto handle = tree_.open(pending.id);
  Status status = handle.status();
  if (status.ok()) {
    current_ = pending.id;
    current_path_ = scope_.rules != nullptr ? path_below_root(current_) : "";
    current_handle_ = std::move(*handle);
    reach_ = pending.reach;
    status = scope_.through_links ? take_identity() : Status();
    if (status.ok()) status = list(errors);
    if (status.ok()) return true;
    current_handle_.reset();
  }
  mark("walk_directory_unreadable");
  errors.push_back({tree_.path_of(pending.id), std::move(status), true});
  return false;
}

Status TreeWalker::take_identity() {
  const Result<io::FileStatus> status = files_.stat(*current_handle_);
  if (status.ok()) identities_[current_] = {status->device, status->inode};
  return status.status();
}

// A symlink that leads to a directory it stands in would go on for ever.
bool TreeWalker::leads_into_itself(const io::FileStatus& status) const {
  const std::pair identity{status.device, status.inode};
  for (std::uint64_t id = current_;; id = tree_.parent_of(id)) {
    const auto known = identities_.find(id);
    if (known != identities_.end() && known->second == identity) return true;
    if (id == 0) return false;
  }
}

Status TreeWalker::list(std::vector<WalkError>& errors) {
  if (!reach_.all_names) {
    reader_ = std::make_unique<ListedNames>(*scope_.listed, reach_.listed);
    return Status();
  }
  // Those that are not there would not be missed.
  for (Listed::Branch left = reach_.listed; !left.empty();) {
    const Listed::Child child = scope_.listed->first_of(left);
    left.begin = child.next;
    const Status looked = files_.stat_at(*current_handle_, child.name).status();
    if (looked.code() == ErrorCode::kNotFound) fail(child.name, child, looked, errors);
  }
  auto reader = files_.list(*current_handle_);
  if (reader.ok()) reader_ = std::move(*reader);
  return reader.status();
}

bool TreeWalker::next(std::size_t count, std::vector<WalkedEntry>& entries,
                      std::vector<WalkError>& errors) {
  FGSYNC_ASSERT(count > 0);
  // Directories count too, so that a million empty ones don't keep the caller from looking up.
  std::size_t looked_at = 0;
  while (looked_at < count) {
    if (reader_ == nullptr) {
      if (pending_.empty()) return looked_at > 0;
      const Pending pending = pending_.back();
      pending_.pop_back();
      ++looked_at;
      if (!start_directory(pending, errors)) continue;
    }
    names_.clear();
    const auto more = reader_->next(count - looked_at, names_);
    if (!more.ok()) {
      errors.push_back({tree_.path_of(current_), more.status(), true});
      ++looked_at;
    }
    if (!more.ok() || !*more) {
      reader_.reset();
      current_handle_.reset();
      continue;
    }
    for (const io::DirectoryEntry& name : names_) visit(name, entries, errors);
    looked_at += names_.size();
  }
  return true;
}

std::string TreeWalker::path_below_root(std::uint64_t id) const {
  std::string path = scope_.prefix;
  const std::string below = tree_.path_of(id);
  if (!path.empty() && !below.empty()) path += '/';
  path += below;
  if (!path.empty()) path += '/';
  return path;
}

bool TreeWalker::is_left_out(const std::string& name, io::FileType type) const {
  return scope_.rules != nullptr &&
         scope_.rules->leave_out(current_path_ + name, type == io::FileType::kDirectory);
}

std::optional<TreeWalker::Listed::Child> TreeWalker::listed_child(const std::string& name) const {
  if (reach_.listed.empty()) return std::nullopt;
  return scope_.listed->find(reach_.listed, name);
}

void TreeWalker::visit(const io::DirectoryEntry& found, std::vector<WalkedEntry>& entries,
                       std::vector<WalkError>& errors) {
  const bool state_name = found.name == kStateDirectoryName;
  if (state_name && found.type == io::FileType::kDirectory) return;
  const std::optional<Listed::Child> child = listed_child(found.name);
  // Rather than merely on the way to what is listed, which no rule keeps from being so.
  bool chosen = reach_.all_names || child->is_listed;
  const bool leads_on = child && !child->below.empty();
  const bool is_link = scope_.through_links && found.type == io::FileType::kSymlink;
  const bool knows_type = found.type != io::FileType::kUnknown && !is_link;
  if (knows_type && !leads_on && is_left_out(found.name, found.type)) return;
  auto status = files_.stat_at(*current_handle_, found.name);
  if (!status.ok()) {
    mark("walk_entry_failed");
    if (!is_link) return fail(found.name, child, status.status(), errors);
    // It has not vanished.
    return fail(found.name, child,
                Status(ErrorCode::kIoError, "following the symlink: " + status.status().message()),
                errors);
  }
  const bool directory = status->type == io::FileType::kDirectory;
  if (chosen && is_left_out(found.name, status->type)) chosen = false;
  if (!chosen && !leads_on) return;
  if (scope_.through_links && directory && leads_into_itself(*status)) {
    return fail(found.name, child,
                Status(ErrorCode::kIoError,
                       "following the symlink: it leads to a directory that it stands in"),
                errors);
  }
  if (leads_on && !directory) {
    return fail(found.name, child, Status(ErrorCode::kIoError, "looking at it: Not a directory"),
                errors);
  }
  if (state_name) {
    if (directory) return;
    // Left out, but not in silence: it is somebody's file, and the target keeps this name for
    // itself.
    return fail(found.name, child,
                Status(ErrorCode::kRefused, "this name is kept for the state directory"), errors);
  }
  WalkedEntry entry;
  if (status->type == io::FileType::kSymlink) {
    auto target = files_.read_link(*current_handle_, found.name);
    if (!target.ok()) return fail(found.name, child, target.status(), errors);
    entry.symlink_target = std::move(*target);
  }
  entry.id = next_id_++;
  entry.parent = current_;
  entry.name = found.name;
  entry.status = *status;
  if (directory && tree_.add(entry.id, current_, found.name) &&
      (!scope_.device || *scope_.device == status->device)) {
    const Reach reach = reach_below(child, chosen);
    if (reach.all_names || !reach.listed.empty()) pending_.push_back({entry.id, reach});
  }
  entries.push_back(std::move(entry));
}

TreeWalker::Reach TreeWalker::reach_below(const std::optional<Listed::Child>& child,
                                          bool chosen) const {
  const bool listed = chosen && child && child->is_listed;
  Reach reach;
  reach.all_below = chosen && (reach_.all_below || (listed && scope_.listed_directories_whole));
  reach.all_names = reach.all_below || (listed && child->with_names);
  if (child) reach.listed = child->below;
  return reach;
}

// Of what is listed every path is named that stands or falls with it.
void TreeWalker::fail(const std::string& name, const std::optional<Listed::Child>& child,
                      const Status& status, std::vector<WalkError>& errors) const {
  if (!child) {
    errors.push_back({tree_.path_of(current_, name), status});
    return;
  }
  if (child->is_listed) errors.push_back({tree_.path_of(current_, name), status, true, true});
  for (std::size_t i = child->below.begin; i < child->below.end; ++i) {
    errors.push_back({scope_.listed->path(i), status, true, true});
  }
}

}  // namespace fgsync::storage
