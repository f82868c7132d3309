#include "transfer/tree_comparison.h"

#include <algorithm>
#include <utility>

#include "receipt/receipt_reader.h"

namespace fgsync::transfer {
namespace {

constexpr std::size_t kOpenDirectoriesMax = 12;

io::FileType type_of(wire::EntryType type) {
  switch (type) {
    case wire::EntryType::kDirectory:
      return io::FileType::kDirectory;
    case wire::EntryType::kSymlink:
      return io::FileType::kSymlink;
    case wire::EntryType::kRegular:
      break;
  }
  return io::FileType::kRegular;
}

bool is_comparable(io::FileType type) {
  return type == io::FileType::kRegular || type == io::FileType::kDirectory ||
         type == io::FileType::kSymlink;
}

}  // namespace

const char* type_text(io::FileType type) {
  switch (type) {
    case io::FileType::kRegular:
      return "a file";
    case io::FileType::kDirectory:
      return "a directory";
    case io::FileType::kSymlink:
      return "a symlink";
    case io::FileType::kFifo:
      return "a FIFO";
    case io::FileType::kSocket:
      return "a socket";
    case io::FileType::kBlockDevice:
    case io::FileType::kCharacterDevice:
      return "a device";
    default:
      return "something else";
  }
}

TreeComparison::TreeComparison(io::FileSystem& files, const ResolvedTarget& target,
                               io::FileHandle root)
    : files_(files),
      target_(target),
      directories_(
          std::make_shared<storage::DirectoryTree>(files, std::move(root), kOpenDirectoriesMax)),
      order_(*directories_, target) {}

Status TreeComparison::compare(const wire::ManifestBatch& batch, Compared& compared) {
  compared.plan.decisions.reserve(batch.entries.size());
  for (const wire::ManifestEntry& entry : batch.entries) {
    FGSYNC_RETURN_IF_ERROR(order_.take(entry));
    ++entries_;
    if (entry.type == wire::EntryType::kRegular) {
      ++files_count_;
      bytes_ += entry.size;
    }
    compared.plan.decisions.push_back({entry.id, decide(entry, compared)});
  }
  return Status();
}

wire::PlanAction TreeComparison::decide(const wire::ManifestEntry& entry, Compared& compared) {
  std::string path = directories_->path_of(entry.parent, entry.name);
  announced_.push_back(receipt::path_hash(path));
  if (entry.id == 0) return wire::PlanAction::kKept;
  // The directory's own difference, or error, says it all.
  if (passed_over_.contains(entry.parent)) return pass_over(entry);
  auto directory = directories_->open(entry.parent);
  Result<io::FileStatus> present = directory.status();
  if (directory.ok()) present = files_.stat_at(**directory, entry.name);
  if (present.ok()) return compare_with(*present, entry, std::move(path), compared);
  if (present.status().code() == ErrorCode::kNotFound) {
    compared.differences.push_back({DifferenceKind::kMissing, std::move(path), ""});
  } else {
    compared.errors.push_back(
        {std::move(path), present.status().code(), present.status().message()});
  }
  return pass_over(entry);
}

wire::PlanAction TreeComparison::compare_with(const io::FileStatus& present,
                                              const wire::ManifestEntry& entry, std::string path,
                                              Compared& compared) {
  const io::FileType announced = type_of(entry.type);
  if (present.type != announced) {
    passed_over_paths_.insert(receipt::path_hash(path));
    compared.differences.push_back(
        {DifferenceKind::kType, std::move(path),
         std::string(type_text(present.type)) + " instead of " + type_text(announced)});
    return pass_over(entry);
  }
  if (entry.type == wire::EntryType::kDirectory) {
    const auto opened = directories_->open(entry.id);
    if (opened.ok()) return wire::PlanAction::kKept;
    passed_over_paths_.insert(receipt::path_hash(path));
    compared.errors.push_back({std::move(path), opened.status().code(), opened.status().message()});
    return pass_over(entry);
  }
  if (entry.type == wire::EntryType::kSymlink) {
    return compare_symlink(entry, std::move(path), compared);
  }
  if (present.size != entry.size) {
    compared.differences.push_back(
        {DifferenceKind::kSize, std::move(path),
         std::to_string(present.size) + " bytes instead of " + std::to_string(entry.size)});
    return wire::PlanAction::kFailed;
  }
  compared.to_read.push_back({.id = entry.id,
                              .path = std::move(path),
                              .place = {.directories = directories_,
                                        .directory = entry.parent,
                                        .name = entry.name,
                                        .identity = {present.size, present.mtime}}});
  return wire::PlanAction::kSend;
}

wire::PlanAction TreeComparison::compare_symlink(const wire::ManifestEntry& entry, std::string path,
                                                 Compared& compared) {
  auto directory = directories_->open(entry.parent);
  Result<std::string> target = directory.status();
  if (directory.ok()) target = files_.read_link(**directory, entry.name);
  if (!target.ok()) {
    compared.errors.push_back({std::move(path), target.status().code(), target.status().message()});
    return wire::PlanAction::kFailed;
  }
  if (*target == entry.symlink_target) return wire::PlanAction::kKept;
  compared.differences.push_back({DifferenceKind::kSymlink, std::move(path),
                                  "to " + *target + " instead of " + entry.symlink_target});
  return wire::PlanAction::kFailed;
}

wire::PlanAction TreeComparison::pass_over(const wire::ManifestEntry& entry) {
  if (entry.type == wire::EntryType::kDirectory) passed_over_.insert(entry.id);
  return wire::PlanAction::kFailed;
}

Result<bool> TreeComparison::still_stands() {
  auto compared = directories_->open(0);
  if (!compared.ok()) return compared.status();
  auto known = files_.stat(**compared);
  if (!known.ok()) return known.status();
  auto standing = files_.open_path(target_.root);
  if (standing.status().code() == ErrorCode::kNotFound) return false;
  if (!standing.ok()) return standing.status();
  auto found = files_.stat(*standing);
  if (!found.ok()) return found.status();
  return found->device == known->device && found->inode == known->inode;
}

// ---- What only the target has

Status TreeComparison::begin_walk() {
  auto root = files_.open_path(target_.root);
  if (!root.ok()) return root.status();
  walked_directories_ =
      std::make_unique<storage::DirectoryTree>(files_, std::move(*root), kOpenDirectoriesMax);
  walker_ = std::make_unique<storage::TreeWalker>(files_, *walked_directories_, 1);
  walker_->add_directory(0);
  std::ranges::sort(announced_);
  return Status();
}

Result<bool> TreeComparison::look_for_extra(std::size_t count, Compared& compared) {
  // Where single sources stand in a directory the rest of it is nobody's concern.
  if (!target_.accept.replica_of_contents) return false;
  if (walker_ == nullptr) FGSYNC_RETURN_IF_ERROR(begin_walk());
  std::vector<storage::WalkedEntry> entries;
  std::vector<storage::WalkError> errors;
  if (!walker_->next(count, entries, errors)) return false;
  for (const storage::WalkedEntry& entry : entries) look_at(entry, compared);
  for (storage::WalkError& error : errors) {
    const bool is_known = passed_over_paths_.contains(receipt::path_hash(error.path));
    if (is_known || error.status.code() == ErrorCode::kNotFound) continue;
    compared.errors.push_back({std::move(error.path), error.status.code(), error.status.message()});
  }
  return true;
}

void TreeComparison::look_at(const storage::WalkedEntry& entry, Compared& compared) {
  const bool is_directory = entry.status.type == io::FileType::kDirectory;
  if (not_looked_into_.contains(entry.parent)) {
    if (is_directory) not_looked_into_.insert(entry.id);
    return;
  }
  std::string path = walked_directories_->path_of(entry.parent, entry.name);
  const std::uint64_t hash = receipt::path_hash(path);
  const bool is_announced = std::ranges::binary_search(announced_, hash);
  if (is_directory && (!is_announced || passed_over_paths_.contains(hash))) {
    not_looked_into_.insert(entry.id);
  }
  if (is_announced) return;
  if (is_comparable(entry.status.type)) {
    compared.differences.push_back(
        {DifferenceKind::kExtra, std::move(path), is_directory ? "a directory" : ""});
    return;
  }
  compared.errors.push_back({std::move(path), ErrorCode::kUnsupported,
                             std::string("comparing: ") + type_text(entry.status.type) +
                                 " is not compared by this version"});
}

}  // namespace fgsync::transfer
