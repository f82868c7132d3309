// A disk: what a host's processes see of it, and, apart from that, what would be left of it after a
// power cut. Data, metadata and directory entries become durable each by their own syncs and not
// otherwise, which is what POSIX promises and no more:
//
//   fsync(file)       its data and metadata, not its name
//   fdatasync(file)   its data and size
//   fsync(directory)  its entries (a rename between two directories whole) and metadata
//   syncfs            everything on that mount
//
// Whatever is not durable may or may not survive: the seed decides page by page, entry by entry. A
// failed sync leaves pages clean that are not on the disk: no later sync writes them, unless they
// are written anew (what Linux does; see "Can Applications Recover from fsync Failures?", USENIX
// ATC 2020). Of what a failed syncfs has lost, the next sync of the file itself tells, once.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/file_system.h"
#include "random.h"

namespace fgsync::sim {

using Bytes = std::vector<std::byte>;

// As == does, which goes byte by byte for std::byte (libstdc++ 12): a third of a campaign's time.
inline bool same(const Bytes& one, const Bytes& other) {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

struct Attributes {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  io::FileTime mtime;
};

struct Node {
  std::uint64_t inode = 0;
  io::FileType type = io::FileType::kRegular;
  std::uint64_t mount = 0;
  Attributes attributes;
  io::FileTime ctime;
  std::shared_ptr<Bytes> data;  // regular files; shared with copies and the durable state
  std::string link_target;
  std::map<std::string, std::uint64_t> entries;  // directories
  std::uint64_t parent = 0;                      // the directory that holds it; 0: none
  std::string name;

  Attributes durable_attributes;
  std::shared_ptr<Bytes> durable_data;
  std::map<std::string, std::uint64_t> durable_entries;
  std::set<std::size_t> lost_pages;  // clean in memory, and not on the disk
  bool loss_untold = false;          // its next sync says so
};

class Disk {
 public:
  explicit Disk(std::uint64_t device);

  static constexpr std::uint64_t kRoot = 1;
  std::uint64_t device() const { return device_; }
  Node* find(std::uint64_t inode);
  const Node* find(std::uint64_t inode) const;
  // Absolute, of directories and symlinks without following any.
  const Node* find_path(const std::string& path) const;
  std::string path_of(const Node& node) const;
  bool is_below(const Node& node, std::uint64_t directory) const;
  bool is_in_state_directory(const Node& node) const;

  // Changes of what processes see. The caller has checked that they make sense.
  Node& create(Node& directory, const std::string& name, io::FileType type, std::uint32_t mode,
               io::FileTime now);
  void rename(Node& from, const std::string& from_name, Node& to, const std::string& to_name,
              io::FileTime now);
  void exchange(Node& directory, const std::string& name, Node& other_directory,
                const std::string& other_name, io::FileTime now);
  // One more name for a file. It gets a node of its own that begins with the same contents, which
  // is the same for everybody who never changes in place a file with two names.
  Node& link(const Node& file, Node& directory, const std::string& name, io::FileTime now);
  void remove(Node& directory, const std::string& name, io::FileTime now);
  void write(Node& node, std::span<const std::byte> bytes, std::uint64_t offset, io::FileTime now);
  void truncate(Node& node, std::uint64_t size, io::FileTime now);
  void replace(Node& node, const Bytes& bytes, io::FileTime now);

  void sync_data(Node& node);
  void sync(Node& node);
  void sync_mount(std::uint64_t mount);
  // Whether a sync of the file must fail for what was lost before.
  bool tells_loss(Node& node) { return std::exchange(node.loss_untold, false); }
  // What is read next is what the disk has, unless it still waits to be written.
  void drop_cached(Node& node);
  // A sync that fails, whether it says so or not: what it should have made durable never will be.
  void fail_sync(Node& node);
  void fail_sync_mount(std::uint64_t mount, bool silently, Random& random);
  // How many syncs of each mount have failed and said so.
  const std::map<std::uint64_t, std::uint64_t>& failed_syncs() const { return failed_syncs_; }

  // Power is cut: only the durable part and what the seed lets survive of the rest is left.
  void crash(Random& random);
  // Flips a bit of the file, in memory and on the disk, and nothing else tells of it.
  void rot(Node& file, Random& random);
  // Regular files below the directory with something in them, all of it on the disk.
  std::vector<Node*> files_at_rest(std::uint64_t directory);

 private:
  struct EntryChange {
    std::uint64_t directory;
    std::string name;
    std::uint64_t inode;           // 0: removed
    std::uint64_t from_directory;  // 0: no rename
    std::string from_name;
    std::uint64_t exchanged = 0;  // what has got that name in exchange
  };
  void make_durable(const EntryChange& change);
  void make_entries_durable(std::uint64_t directory);
  void detach(Node& directory, const std::string& name);
  static Bytes& own_data(Node& node);
  // What would be there if everything that waits were written.
  static std::shared_ptr<Bytes> written(const Node& node);
  static std::shared_ptr<Bytes> torn(const Node& node, Random& random);

  std::uint64_t device_;
  std::uint64_t next_inode_ = kRoot;
  std::map<std::uint64_t, Node> nodes_;
  std::vector<EntryChange> pending_;  // in the order they were made
  std::map<std::uint64_t, std::uint64_t> failed_syncs_;
};

}  // namespace fgsync::sim
