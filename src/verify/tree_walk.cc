#include "verify/tree_walk.h"

#include <utility>

#include "transfer/tree_comparison.h"

namespace fgsync::verify {
namespace {

// Directories held open while walking and opening files.
constexpr std::size_t kOpenDirectoriesMax = 12;

}  // namespace

TreeWalk::TreeWalk(io::FileSystem& files, const io::FileHandle& root, io::FileHandle root_to_walk,
                   receipt::ReceiptIndex& index, std::string only)
    : files_(files),
      root_(root),
      directories_(std::make_shared<storage::DirectoryTree>(files, std::move(root_to_walk),
                                                            kOpenDirectoriesMax)),
      walker_(files, *directories_, 1),
      index_(index),
      lookup_(files, root),
      only_(std::move(only)) {
  walker_.add_directory(0);
}

Result<bool> TreeWalk::next(std::size_t count, Found& found) {
  if (!only_.empty()) return look_at_only(found);
  std::vector<storage::WalkedEntry> entries;
  std::vector<storage::WalkError> errors;
  if (!walker_.next(count, entries, errors)) return false;
  for (const storage::WalkedEntry& entry : entries) {
    FGSYNC_RETURN_IF_ERROR(look_at(entry, found));
  }
  for (storage::WalkError& error : errors) {
    // What vanished is missed below, if it should be there.
    if (error.status.code() == ErrorCode::kNotFound) continue;
    found.errors.push_back({std::move(error.path), error.status.code(), error.status.message()});
  }
  return true;
}

Result<bool> TreeWalk::look_at_only(Found& found) {
  auto status = files_.stat_at(root_, only_);
  if (status.ok()) {
    storage::WalkedEntry entry;
    entry.name = only_;
    entry.status = *status;
    FGSYNC_RETURN_IF_ERROR(look_at(entry, found));
  } else if (status.status().code() != ErrorCode::kNotFound) {
    found.errors.push_back({only_, status.status().code(), status.status().message()});
  }
  return false;
}

Status TreeWalk::look_at(const storage::WalkedEntry& entry, Found& found) {
  std::string path = directories_->path_of(entry.parent, entry.name);
  const std::uint64_t hash = receipt::path_hash(path);
  if (!index_.is_of_part(hash)) return Status();
  Result<receipt::Finding> finding = index_.find(path, entry.status);
  if (!finding.ok()) return finding.status();
  index_.mark_seen(hash);
  if (entry.status.type == io::FileType::kRegular) {
    look_at_file(entry, std::move(path), std::move(*finding), found);
  } else if (finding->expected) {
    found.differences.push_back(
        {DifferenceKind::kType, std::move(path),
         std::string(transfer::type_text(entry.status.type)) + " instead of a file"});
  }
  return Status();
}

void TreeWalk::look_at_file(const storage::WalkedEntry& entry, std::string path,
                            receipt::Finding finding, Found& found) {
  auto& record = finding.matching ? finding.matching : finding.expected;
  if (!record) {
    found.extra.push_back(std::move(path));
    return;
  }
  if (record->size != entry.status.size) {
    found.differences.push_back(
        {DifferenceKind::kSize, std::move(path),
         std::to_string(entry.status.size) + " bytes instead of " + std::to_string(record->size)});
    return;
  }
  found.to_read.push_back({.place = {.directories = directories_,
                                     .directory = entry.parent,
                                     .name = entry.name,
                                     .identity = {entry.status.size, entry.status.mtime}},
                           .record = std::move(*record)});
}

Result<bool> TreeWalk::next_missing(std::size_t count, Found& found) {
  if (!only_.empty()) {
    Result<receipt::Finding> finding = index_.find(only_, std::nullopt);
    if (!finding.ok()) return finding.status();
    if (finding->expected) FGSYNC_RETURN_IF_ERROR(miss(*finding->expected, found));
    return false;
  }
  std::vector<receipt::FileRecord> unseen;
  Result<std::size_t> next = index_.next_unseen(unseen_slot_, count, unseen);
  if (!next.ok()) return next.status();
  unseen_slot_ = *next;
  for (const receipt::FileRecord& record : unseen) FGSYNC_RETURN_IF_ERROR(miss(record, found));
  return unseen_slot_ < index_.slots();
}

// The walk has not met it. Only what is not there is missing: a directory may be closed to us.
Status TreeWalk::miss(const receipt::FileRecord& record, Found& found) {
  auto status = lookup_.stat(record.path);
  if (!status.ok() && status.status().code() == ErrorCode::kNotFound) {
    found.differences.push_back({DifferenceKind::kMissing, record.path, ""});
  } else if (!status.ok()) {
    found.errors.push_back({record.path, status.status().code(), status.status().message()});
  }
  return Status();
}

}  // namespace fgsync::verify
