#include "ledger.h"

#include <algorithm>

#include "storage/tree_walker.h"

namespace fgsync::sim {
namespace {

std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

std::string text_of(io::FileTime time) {
  return std::to_string(time.seconds) + "." + std::to_string(time.nanoseconds);
}

// Where two contents part, for whoever reads the violation.
std::string difference(const Bytes& present, const Bytes& wanted) {
  std::size_t at = 0;
  while (at < present.size() && at < wanted.size() && present[at] == wanted[at]) ++at;
  return "size " + std::to_string(present.size()) + " and " + std::to_string(wanted.size()) +
         ", differing from byte " + std::to_string(at);
}

}  // namespace

void Ledger::add_tree(const Disk& disk, const std::string& directory, bool target) {
  const Node* const root = disk.find_path(directory);
  if (root != nullptr) add_node(disk, *root, "", target);
}

void Ledger::add_node(const Disk& disk, const Node& node, const std::string& path, bool target) {
  Record& record = records_[path];
  if (target) record.stands = true;
  switch (node.type) {
    case io::FileType::kDirectory:
      record.directory = true;
      for (const auto& [name, inode] : node.entries) {
        if (name != storage::kStateDirectoryName) {
          add_node(disk, *disk.find(inode), join(path, name), target);
        }
      }
      break;
    case io::FileType::kSymlink:
      record.links.insert(node.link_target);
      break;
    case io::FileType::kRegular:
      record.files.push_back(
          {node.attributes.mtime, node.data, target ? io::TimePoint::min() : io::TimePoint::max()});
      break;
    default:
      break;  // is not replicated
  }
}

void Ledger::source_changed(const std::string& path, const Node* now_there, io::TimePoint now) {
  steady_ = false;
  Record& record = records_[path];
  record.changed = now;
  for (Version& version : record.files) version.until = std::min(version.until, now);
  if (now_there == nullptr) return;
  record.files.push_back({now_there->attributes.mtime, now_there->data});
}

void Ledger::rotted(const std::string& path, const Node& file, const Bytes& before) {
  steady_ = false;
  Record& record = records_.at(path);
  record.rotten = true;
  io::TimePoint until = io::TimePoint::min();
  for (const Version& version : record.files) {
    const bool was_this = version.mtime == file.attributes.mtime && *version.data == before;
    if (was_this) until = std::max(until, version.until);
  }
  record.files.push_back({file.attributes.mtime, file.data, until});
}

std::vector<std::string> Ledger::source_files() const {
  std::vector<std::string> paths;
  for (const auto& [path, record] : records_) {
    const bool source = std::any_of(record.files.begin(), record.files.end(), [](const auto& file) {
      return file.until != io::TimePoint::min();
    });
    if (source) paths.push_back(path);
  }
  return paths;
}

bool Ledger::knows(const std::string& path, const Node& file) const {
  const auto& files = records_.at(path).files;
  return std::any_of(files.begin(), files.end(), [&](const Version& version) {
    return version.until == io::TimePoint::max() && version.mtime == file.attributes.mtime &&
           same(*version.data, *file.data);
  });
}

void Ledger::settle_types() {
  for (auto& [path, record] : records_) {
    const int types = int(!record.files.empty()) + int(!record.links.empty()) + record.directory;
    if (types < 2) continue;
    // One makes way for the other, with everything below it.
    record.stands = false;
    for (auto& [below, other] : records_) {
      if (below.starts_with(path + "/")) other.stands = false;
    }
  }
}

std::string Ledger::relative(const Disk& disk, const Node& node) const {
  const std::string path = disk.path_of(node);
  if (path == root_) return "";
  return path.substr(root_.size() + 1);
}

std::string Ledger::check_node(const Disk& disk, const Node& node) const {
  const std::string path = relative(disk, node);
  const auto found = records_.find(path);
  if (found == records_.end()) return path + ": stands at the target and never was at the source";
  const Record& record = found->second;
  if (node.type == io::FileType::kDirectory) {
    return record.directory ? "" : path + ": a directory where none is to be";
  }
  if (node.type == io::FileType::kSymlink) {
    return record.links.contains(node.link_target) ? ""
                                                   : path + ": a symlink to " + node.link_target;
  }
  std::string nearest = "no file is to be there";
  for (const Version& version : record.files) {
    const bool same_time = version.mtime == node.attributes.mtime;
    const bool same_data = version.data == node.data || same(*version.data, *node.data);
    if (same_time && same_data) return "";
    if (same_data) nearest = "a version's contents with another's time";
    if (same_time) nearest = difference(*node.data, *version.data);
  }
  return path + ": is no whole version (" + nearest + ")";
}

std::string Ledger::check_tree(const Disk& disk) const {
  for (const auto& [path, record] : records_) {
    const Node* const node = disk.find_path(root_ + "/" + path);
    if (node == nullptr) {
      if (record.stands) return path + ": is missing at the target";
      continue;
    }
    if (std::string wrong = check_node(disk, *node); !wrong.empty()) return wrong;
    if (node->type != io::FileType::kDirectory) continue;
    for (const auto& [name, inode] : node->entries) {
      const bool state = name == storage::kStateDirectoryName;
      if (!state && !records_.contains(join(path, name))) {
        return join(path, name) + ": stands at the target and never was at the source";
      }
    }
  }
  return "";
}

struct Ledger::Comparison {
  const Disk& source;
  const Disk& target;
  io::TimePoint since;
  bool in_company;
  bool owners;  // they must be the same: none was refused
};

std::string Ledger::compare(const Disk& source, const std::string& source_root, const Disk& target,
                            io::TimePoint since, bool in_company, bool owners) const {
  const Comparison how{source, target, since, in_company, owners};
  return compare_node(how, *source.find_path(source_root), target.find_path(root_), "");
}

bool Ledger::holds_changing(const std::string& directory, io::TimePoint since) const {
  return std::any_of(records_.begin(), records_.end(), [&](const auto& entry) {
    const auto& [path, record] = entry;
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    return !path.empty() && parent == directory && record.changed >= since;
  });
}

std::string Ledger::compare_node(const Comparison& how, const Node& wanted, const Node* present,
                                 const std::string& path) const {
  const std::string name = path.empty() ? "." : path;
  const auto found = records_.find(path);
  const bool known = found != records_.end();
  const bool changing = known && found->second.changed >= how.since;
  if (present == nullptr) return changing ? "" : name + ": is missing";
  if (changing && wanted.type == io::FileType::kRegular && present->data != nullptr) {
    // Whatever stands there is a version (checked elsewhere), and must be one of this run's time.
    for (const Version& version : found->second.files) {
      if (version.until >= how.since && same(*version.data, *present->data)) return "";
    }
    return name + ": is older than the run";
  }
  if (present->type != wanted.type) return name + ": has another type";
  if (wanted.type == io::FileType::kSymlink && present->link_target != wanted.link_target) {
    return name + ": leads to " + present->link_target;
  }
  const bool rotten = known && found->second.rotten;
  if (wanted.data != nullptr && !same(*wanted.data, *present->data) && !rotten) {
    return name + ": " + difference(*present->data, *wanted.data);
  }
  const Attributes& is = present->attributes;
  const Attributes& must = wanted.attributes;
  const bool directory = wanted.type == io::FileType::kDirectory;
  const bool time_moves =
      (wanted.data == nullptr && how.in_company) || (directory && holds_changing(path, how.since));
  if (is.mtime != must.mtime && !time_moves) {
    return name + ": time " + text_of(is.mtime) + " instead of " + text_of(must.mtime);
  }
  if (how.owners && (is.uid != must.uid || is.gid != must.gid)) return name + ": another owner";
  if (wanted.type != io::FileType::kSymlink && is.mode != must.mode) return name + ": another mode";
  for (const auto& [child, inode] : wanted.entries) {
    const auto entry = present->entries.find(child);
    const Node* const there =
        entry == present->entries.end() ? nullptr : how.target.find(entry->second);
    std::string wrong = compare_node(how, *how.source.find(inode), there, join(path, child));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace fgsync::sim
