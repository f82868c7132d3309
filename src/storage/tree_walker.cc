#include "storage/tree_walker.h"

#include <utility>

#include "base/assert.h"
#include "base/mark.h"

namespace fgsync::storage {

TreeWalker::TreeWalker(io::FileSystem& files, DirectoryTree& tree, std::uint64_t first_id,
                       WalkScope scope)
    : files_(files), tree_(tree), next_id_(first_id), scope_(std::move(scope)) {}

void TreeWalker::add_directory(std::uint64_t id) { pending_.push_back(id); }

// An unreadable or vanished directory is reported and passed over.
bool TreeWalker::start_directory(std::uint64_t id, std::vector<WalkError>& errors) {
  auto handle = tree_.open(id);
  Status status = handle.status();
  if (status.ok()) {
    auto reader = files_.list(**handle);
    if (reader.ok()) {
      current_ = id;
      current_path_ = scope_.rules != nullptr ? path_below_root(id) : "";
      current_handle_ = std::move(*handle);
      reader_ = std::move(*reader);
      return true;
    }
    status = reader.status();
  }
  mark("walk_directory_unreadable");
  errors.push_back({tree_.path_of(id), std::move(status), true});
  return false;
}

bool TreeWalker::next(std::size_t count, std::vector<WalkedEntry>& entries,
                      std::vector<WalkError>& errors) {
  FGSYNC_ASSERT(count > 0);
  // Directories count too, so that a million empty ones don't keep the caller from looking up.
  std::size_t looked_at = 0;
  while (looked_at < count) {
    if (reader_ == nullptr) {
      if (pending_.empty()) return looked_at > 0;
      const std::uint64_t id = pending_.back();
      pending_.pop_back();
      ++looked_at;
      if (!start_directory(id, errors)) continue;
    }
    listed_.clear();
    const auto more = reader_->next(count - looked_at, listed_);
    if (!more.ok()) {
      errors.push_back({tree_.path_of(current_), more.status(), true});
      ++looked_at;
    }
    if (!more.ok() || !*more) {
      reader_.reset();
      current_handle_.reset();
      continue;
    }
    for (const io::DirectoryEntry& listed : listed_) visit(listed, entries, errors);
    looked_at += listed_.size();
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

void TreeWalker::visit(const io::DirectoryEntry& listed, std::vector<WalkedEntry>& entries,
                       std::vector<WalkError>& errors) {
  const bool state_name = listed.name == kStateDirectoryName;
  if (state_name && listed.type == io::FileType::kDirectory) return;
  if (listed.type != io::FileType::kUnknown && is_left_out(listed.name, listed.type)) return;
  auto status = files_.stat_at(*current_handle_, listed.name);
  if (!status.ok()) {
    mark("walk_entry_failed");
    errors.push_back({tree_.path_of(current_, listed.name), status.status()});
    return;
  }
  if (listed.type != status->type && is_left_out(listed.name, status->type)) return;
  const bool directory = status->type == io::FileType::kDirectory;
  if (state_name) {
    if (directory) return;
    // Left out, but not in silence: it is somebody's file, and the target keeps this name for
    // itself.
    errors.push_back({tree_.path_of(current_, listed.name),
                      Status(ErrorCode::kRefused, "this name is kept for the state directory")});
    return;
  }
  WalkedEntry entry;
  if (status->type == io::FileType::kSymlink) {
    auto target = files_.read_link(*current_handle_, listed.name);
    if (!target.ok()) {
      errors.push_back({tree_.path_of(current_, listed.name), target.status()});
      return;
    }
    entry.symlink_target = std::move(*target);
  }
  entry.id = next_id_++;
  entry.parent = current_;
  entry.name = listed.name;
  entry.status = *status;
  if (directory && tree_.add(entry.id, current_, listed.name)) pending_.push_back(entry.id);
  entries.push_back(std::move(entry));
}

}  // namespace fgsync::storage
