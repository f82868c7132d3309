// What may stand at the target: of every path, the versions that it has had there and at the
// source. The properties of a tree are checked against it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "disk.h"
#include "io/io.h"

namespace fgsync::sim {

class Ledger {
 public:
  struct Version {
    io::FileTime mtime;
    std::shared_ptr<const Bytes> data;
    io::TimePoint until = io::TimePoint::max();  // when the source had another one
  };
  struct Record {
    std::vector<Version> files;
    std::set<std::string> links;
    bool directory = false;
    bool stands = false;  // at the target from the start: something must always be there
    bool rotten = false;  // a bit has flipped, at either side: by size and time nobody can tell
    io::TimePoint changed = io::TimePoint::min();  // at the source, the last time
  };

  // `root` is the target's directory on its disk.
  Ledger(std::string root) : root_(std::move(root)) {}

  // Takes down what is below the directory now. At the target it also has to stay.
  void add_tree(const Disk& disk, const std::string& directory, bool target);
  // A source file has changed at this moment; `now_there` is nullptr when it is gone.
  void source_changed(const std::string& path, const Node* now_there, io::TimePoint now);
  // A bit of the file has flipped; `before` is what it was.
  void rotted(const std::string& path, const Node& file, const Bytes& before);
  // Paths that are or were files at the source.
  std::vector<std::string> source_files() const;
  // Whether the file is a version as it is, and the source has it still.
  bool knows(const std::string& path, const Node& file) const;
  // What stands at both with different types makes way for the other.
  void settle_types();

  // Empty when the node may stand where it does; else why not.
  std::string check_node(const Disk& disk, const Node& node) const;
  std::string check_tree(const Disk& disk) const;
  // Whether the target is the source's replica; `since`: what has changed from then on may be any
  // version of that time. `in_company`: another run may be making the same names once more, which
  // moves the times of directories and symlinks.
  std::string compare(const Disk& source, const std::string& source_root, const Disk& target,
                      io::TimePoint since, bool in_company, bool owners) const;

  // Nothing has changed at the source, or rotted anywhere.
  bool is_steady() const { return steady_; }

  const std::map<std::string, Record>& records() const { return records_; }

 private:
  void add_node(const Disk& disk, const Node& node, const std::string& path, bool target);
  struct Comparison;
  std::string compare_node(const Comparison& how, const Node& wanted, const Node* present,
                           const std::string& path) const;
  bool holds_changing(const std::string& directory, io::TimePoint since) const;
  std::string relative(const Disk& disk, const Node& node) const;

  const std::string root_;
  bool steady_ = true;
  std::map<std::string, Record> records_;  // by path relative to the root
};

}  // namespace fgsync::sim
