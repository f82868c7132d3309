// What must hold, all through a seed's story and at the ends of its runs.
#include <algorithm>

#include "receipt/receipt_reader.h"
#include "scenario_ends.h"
#include "storage/tree_walker.h"

namespace fgsync::sim {

namespace {

// A pack of 1 MiB, its last file and its headers.
constexpr std::uint64_t kFrameBytesMax = 1'400'000;

}  // namespace

void Scenario::watch_target() {
  source_.somebody_else = [this] { change_source(); };
  for (Host* const host : {&source_, &target_}) {
    host->on_rot = [this, host] { let_rot(*host); };
  }
  target_.on_change = [this](const Node& node) {
    if (world_.violation()) return;
    Disk& disk = target_.disk;
    if (node.parent == 0 && node.inode != Disk::kRoot) return;  // has no name any more
    const Node* const root = disk.find_path(kTargetRoot);
    if (some_at_once_ && tree_.is_in_workshop(disk, node)) {
      if (world_.random().percent(3)) check_crash("at a change of the new tree");
      return;
    }
    if (root == nullptr || !disk.is_below(node, root->inode)) {
      // The target itself was made, or somebody else has had its way.
      const bool is_beside = some_at_once_ && disk.path_of(node) == "/data";
      if (node.inode != Disk::kRoot && !is_beside) {
        world_.violate("outside the target: " + disk.path_of(node));
      }
      return;
    }
    if (disk.is_in_state_directory(node)) {
      if (world_.random().percent(10)) check_crash("at a change of the state");
      return;
    }
    if (all_at_once_) watch_switch(node);
    std::string wrong = ledger_.check_node(disk, node);
    if (wrong.empty()) wrong = what_markers_say(disk);
    if (wrong.empty()) wrong = what_rules_say(disk, node);
    if (!wrong.empty()) world_.violate("at a change: " + wrong);
    if (node.type == io::FileType::kDirectory) check_whole("at a change");
    // What would be there if the power were cut right now?
    if (world_.random().percent(15)) check_crash("at a change");
  };
  // One run at a time gives names, unless somebody has been at its state or the lock was refused.
  target_.on_rename = [this](const Node& node, const auto& holds_lock) {
    if (!target_.has_locks || is_about(kDisk) || is_about(kState)) return;
    if (target_.disk.is_in_state_directory(node)) return;
    // A new tree has a lock of its own, and then gets its name.
    const bool is_new =
        tree_.is_in_workshop(target_.disk, node) || target_.disk.path_of(node) == kTargetRoot;
    if (is_new) return;
    const Node* const state =
        target_.disk.find_path(std::string(kTargetRoot) + "/" + storage::kStateDirectoryName);
    if (state == nullptr || !holds_lock(state->inode)) {
      world_.violate("a name is given without the lock: " + target_.disk.path_of(node));
    }
  };
  target_.on_power_cut = [this] {
    check_whole("after a power cut");
    tree_.begin(target_.disk);  // it may be the one before again
  };
  source_.on_power_cut = [this] { take_down_source(); };
  source_.on_change = [this](const Node& node) {
    world_.violate("the sender changes its host: " + source_.disk.path_of(node));
  };
}

// A tree that is published at once changes by nothing else, and is whole when it is.
void Scenario::watch_switch(const Node& node) {
  const Disk& disk = target_.disk;
  const Node& root = *disk.find_path(kTargetRoot);
  if (!tree_.has_switched(disk)) {
    if (node.inode == root.inode) return;  // its time, when it is locked
    return world_.violate("changed in place: " + disk.path_of(node));
  }
  if (!ledger_.is_steady()) return;
  std::string wrong = ledger_.compare(source_.disk, kSourceRoot, disk, io::TimePoint::max(),
                                      /*in_company=*/false, /*owners=*/false);
  if (!wrong.empty()) world_.violate("switched, but " + wrong);
}

// Of what rules have left out they promise nothing.
std::string Scenario::what_markers_say(const Disk& target) const {
  return ledger_.is_steady() && !has_rules_ ? markers_.check(target) : "";
}

// What they leave out is not touched: f1, but not the one at the top, and every directory d1. By
// the names that the source has, as that is what the rules are about.
std::string Scenario::what_rules_say(const Disk& target, const Node& node) const {
  if (under_way_ == nullptr || under_way_->plan.selection.rules.empty()) return "";
  const std::string path = target.path_of(node).substr(std::string(kTargetRoot).size());
  const bool left_out = path.find("/d1/") != std::string::npos || path.ends_with("/d1") ||
                        (path.ends_with("/f1") && path != "/f1");
  return left_out ? "what the rules leave out is touched: " + path : "";
}

std::string Scenario::what_is_wrong(const Disk& target) const {
  std::string wrong = ledger_.check_tree(target);
  if (wrong.empty()) wrong = what_markers_say(target);
  if (wrong.empty() && all_at_once_ && rotted_.empty()) wrong = tree_.check(target);
  return wrong.empty() ? check_receipt(target, kTargetRoot, rotted_) : wrong;
}

void Scenario::check_whole(const char* when) {
  std::string wrong = what_is_wrong(target_.disk);
  if (wrong.empty() && outside() != outside_) wrong = "something outside the target has changed";
  if (!wrong.empty()) world_.violate(std::string(when) + ": " + wrong);
}

// On a copy, with chances of its own: the run goes on as if nothing had been.
void Scenario::check_crash(const char* when) {
  if (plan_.durability == Durability::kNone) return;
  Disk disk = target_.disk;
  Random random(world_.random().next());
  disk.crash(random);
  const std::string wrong = what_is_wrong(disk);
  if (!wrong.empty()) world_.violate(std::string(when) + ", were the power cut: " + wrong);
  check_journals(disk, when);
}

// With Durability::kFull what the sender has heard of is there for good, name and all.
void Scenario::check_settled(const std::string& path) {
  const std::string at = kTargetRoot + ("/" + path);
  const Node* const live = target_.disk.find_path(at);
  if (live == nullptr || live->data == nullptr) return;  // only files are settled after the plan
  Disk disk = target_.disk;
  Random random(world_.random().next());
  disk.crash(random);
  const Node* const left = disk.find_path(at);
  if (left == nullptr || left->data == nullptr || !same(*left->data, *live->data) ||
      left->attributes.mtime != live->attributes.mtime) {
    world_.violate("settled, but not durable: " + path);
  }
}

void Scenario::check_good_end(const Ends& ends) {
  const auto compare = [&](const Disk& disk) {
    std::string wrong =
        ledger_.compare(source_.disk, kSourceRoot, disk, ends.started, ends.in_company,
                        /*owners=*/!ends.receiver().files().has_refused_owners());
    if (!wrong.empty() || !keeps_receipts_) return wrong;
    return check_settled_receipt(disk, kTargetRoot, old_files_);
  };
  if (std::string wrong = compare(target_.disk); !wrong.empty()) {
    world_.violate("success, but " + wrong);
    return;
  }
  for (int i = 0; i < 3 && plan_.durability != Durability::kNone; ++i) {
    Disk disk = target_.disk;
    Random random(world_.random().next());
    disk.crash(random);
    if (std::string wrong = compare(disk); !wrong.empty()) {
      world_.violate("success, but not durable: " + wrong);
      return;
    }
  }
  if (!ends.in_company) check_cost(ends);
}

// What is in the state directory besides the receipt.
std::string Scenario::left_state() const {
  // A run that publishes file by file leaves it for those that don't.
  const bool may_be_left = some_at_once_ && !all_at_once_;
  if (!may_be_left && target_.disk.find_path(TreeWatch::workshop_of(kTargetRoot)) != nullptr) {
    return "the new tree's workshop is left";
  }
  const std::string path = std::string(kTargetRoot) + "/" + storage::kStateDirectoryName;
  const Node* const state = target_.disk.find_path(path);
  if (state == nullptr) return "";
  for (const auto& [name, inode] : state->entries) {
    if (name != receipt::kReceiptName) return "state is left: " + name;
  }
  return state->entries.empty() ? "an empty state directory is left" : "";
}

// What a run leaves and what it has sent. In company either may be another one's.
void Scenario::check_cost(const Ends& ends) {
  if (std::string left = left_state(); !has_left_state_ && !left.empty()) {
    world_.violate("success, but " + left);
  }
  // 32 bytes of header and 36 of frame to a file or chunk, and as much again for tags and answers;
  // of each connection that is lost a part of its last frame.
  const std::uint64_t connections = wire_.data_connections - ends.connections_before;
  const std::uint64_t lost = wire_.data_connections_lost() - ends.lost_before;
  const std::uint64_t bound =
      ends.missing + 200 * (ledger_.records().size() + ends.missing / 65536) + 2048 * connections +
      lost * std::min<std::uint64_t>(ends.missing, kFrameBytesMax);
  const std::uint64_t sent = wire_.data_bytes - ends.bytes_before;
  bool changing = false;
  for (const auto& [path, record] : ledger_.records()) changing |= record.changed >= ends.started;
  // Comparing contents finds what sizes and times do not tell.
  const bool compares = ends.plan.changes.comparison == Comparison::kContents;
  if (!changing && !compares && sent > bound) {
    world_.violate("sent " + std::to_string(sent) + " bytes where " + std::to_string(ends.missing) +
                   " were missing");
  }
}

// A file is said to have changed only if it has.
void Scenario::check_blame(const Ends& ends) {
  const std::string root = std::string(kSourceRoot) + "/";
  for (const ErrorEntry& error : ends.near_end->report().errors) {
    if (error.code != ErrorCode::kSourceChanged || !error.path.starts_with(root)) continue;
    const auto record = ledger_.records().find(error.path.substr(root.size()));
    if (record != ledger_.records().end() && record->second.changed >= ends.started) continue;
    world_.violate("a file that did not change is said to have: " + error.path + ": " +
                   error.message);
  }
}

namespace {

std::uint64_t missing_below(const Disk& source, const Node& wanted, const Disk& target,
                            const Node* present) {
  std::uint64_t bytes = 0;
  for (const auto& [name, inode] : wanted.entries) {
    const Node& node = *source.find(inode);
    const Node* there = nullptr;
    if (present != nullptr) {
      const auto entry = present->entries.find(name);
      if (entry != present->entries.end()) there = target.find(entry->second);
    }
    if (node.type == io::FileType::kDirectory) {
      bytes += missing_below(source, node, target, there);
    } else if (node.data != nullptr) {
      const bool same = there != nullptr && there->data != nullptr &&
                        there->data->size() == node.data->size() &&
                        there->attributes.mtime == node.attributes.mtime;
      if (!same) bytes += node.data->size();
    }
  }
  return bytes;
}

void describe(const Disk& disk, const Node& node, std::string& text) {
  text += node.name + ":" + std::to_string(node.inode) + ":" +
          std::to_string(node.attributes.mode) + ":" +
          std::to_string(node.attributes.mtime.nanoseconds);
  if (node.data != nullptr) {
    text.append(reinterpret_cast<const char*>(node.data->data()), node.data->size());
  }
  for (const auto& [name, inode] : node.entries) describe(disk, *disk.find(inode), text);
}

}  // namespace

std::uint64_t Scenario::missing_bytes() const {
  return missing_below(source_.disk, *source_.disk.find_path(kSourceRoot), target_.disk,
                       target_.disk.find_path(kTargetRoot));
}

// Everything on the target's host that is none of the run's business.
std::string Scenario::outside() const {
  std::string text;
  describe(target_.disk, *target_.disk.find_path("/outside"), text);
  for (const auto& [name, inode] : target_.disk.find_path("/data")->entries) {
    // What a new tree is made in comes and goes.
    if (name != "target" && !name.ends_with(".fgsync-tree")) text += name;
  }
  return text;
}

}  // namespace fgsync::sim
