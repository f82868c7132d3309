#include "marker_watch.h"

#include <algorithm>

namespace fgsync::sim {

const std::vector<std::string>& MarkerWatch::names() {
  static const std::vector<std::string> kNames = {".metadata",
                                                  "model.index.json",
                                                  "latest",
                                                  "latest.txt",
                                                  "latest_checkpointed_iteration.txt",
                                                  "_SUCCESS",
                                                  "DONE"};
  return kNames;
}

void MarkerWatch::begin(const Disk& source, const std::string& source_root, const Disk& target,
                        const std::string& target_root) {
  target_root_ = target_root;
  take_down(source, *source.find_path(source_root), "", 0);
  for (Entry& entry : entries_) entry.stood = stands(target, entry);
}

void MarkerWatch::take_down(const Disk& source, const Node& node, const std::string& path,
                            int depth) {
  for (const auto& [name, inode] : node.entries) {
    const Node& child = *source.find(inode);
    const bool is_link = child.type == io::FileType::kSymlink;
    const bool is_directory = child.type == io::FileType::kDirectory;
    const bool is_named = std::find(names().begin(), names().end(), name) != names().end();
    const bool is_index = name == ".metadata" || name.ends_with(".index.json");
    const bool is_pointer = is_link || name.starts_with("latest");
    const std::string child_path = path.empty() ? name : path + "/" + name;
    entries_.push_back({child_path, child, !is_directory && (is_named || (is_link && depth == 0)),
                        Rank{is_pointer, -depth, !is_index}});
    if (is_directory) take_down(source, child, child_path, depth + 1);
  }
}

bool MarkerWatch::stands(const Disk& target, const Entry& entry) const {
  const Node* const there = target.find_path(target_root_ + "/" + entry.path);
  if (there == nullptr || there->type != entry.wanted.type) return false;
  if (there->type == io::FileType::kSymlink) return there->link_target == entry.wanted.link_target;
  if (there->type == io::FileType::kDirectory) return true;
  return there->attributes.mtime == entry.wanted.attributes.mtime &&
         same(*there->data, *entry.wanted.data);
}

std::string MarkerWatch::check(const Disk& target) const {
  const Entry* last = nullptr;  // of those that a run has published
  for (const Entry& entry : entries_) {
    const bool published = entry.is_marker && !entry.stood && stands(target, entry);
    if (published && (last == nullptr || last->rank < entry.rank)) last = &entry;
  }
  if (last == nullptr) return "";
  for (const Entry& entry : entries_) {
    const bool comes_before = !entry.is_marker || entry.rank < last->rank;
    if (comes_before && !stands(target, entry)) {
      return last->path + ": is there before " + entry.path;
    }
  }
  return "";
}

}  // namespace fgsync::sim
