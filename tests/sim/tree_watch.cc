#include "tree_watch.h"

#include "storage/tree_walker.h"

namespace fgsync::sim {
namespace {

// Names, contents and attributes, but nothing of the root itself, whose time the lock moves.
void describe(const Disk& disk, const Node& directory, std::string& text) {
  for (const auto& [name, inode] : directory.entries) {
    if (name == storage::kStateDirectoryName) continue;
    const Node& node = *disk.find(inode);
    text += name + "\n" + std::to_string(int(node.type)) + " " +
            std::to_string(node.attributes.mode) + " " + std::to_string(node.attributes.uid) + " " +
            std::to_string(node.attributes.mtime.seconds) + "." +
            std::to_string(node.attributes.mtime.nanoseconds) + " " + node.link_target + "\n";
    if (node.data != nullptr) {
      text.append(reinterpret_cast<const char*>(node.data->data()), node.data->size());
    }
    if (node.type == io::FileType::kDirectory) {
      text += "{";
      describe(disk, node, text);
      text += "}";
    }
  }
}

}  // namespace

std::string TreeWatch::workshop_of(const std::string& root) {
  const std::size_t slash = root.rfind('/');
  return root.substr(0, slash + 1) + "." + root.substr(slash + 1) + ".fgsync-tree";
}

std::string TreeWatch::text_of(const Disk& disk) const {
  const Node* const root = disk.find_path(root_);
  if (root == nullptr) return "missing";
  std::string text;
  describe(disk, *root, text);
  return text;
}

void TreeWatch::begin(const Disk& disk) {
  const Node* const root = disk.find_path(root_);
  root_inode_ = root == nullptr ? 0 : root->inode;
  trees_.insert(text_of(disk));
}

bool TreeWatch::has_switched(const Disk& disk) {
  const Node* const root = disk.find_path(root_);
  if (root == nullptr || root->inode == root_inode_) return false;
  root_inode_ = root->inode;
  trees_.insert(text_of(disk));
  return true;
}

std::string TreeWatch::check(const Disk& disk) const {
  return trees_.contains(text_of(disk)) ? "" : "the target is neither the old tree nor the new one";
}

bool TreeWatch::is_in_workshop(const Disk& disk, const Node& node) const {
  const Node* const workshop = disk.find_path(workshop_of(root_));
  return workshop != nullptr && disk.is_below(node, workshop->inode);
}

}  // namespace fgsync::sim
