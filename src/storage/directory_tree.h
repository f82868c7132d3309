// Directories by number. Both sides speak of a directory by the id of its manifest entry; this
// keeps, for each, its parent and name, and opens it when asked: component by component from the
// nearest ancestor that is still held open, never following a symlink, so that a path can be deeper
// than PATH_MAX and can't be led astray by a directory swapped for a link. At most `open_max`
// directories are held open at a time (least recently used go first).
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::storage {

// Shared so that closing a directory for the next one does not pull it from under whoever is using
// it.
using DirectoryReference = std::shared_ptr<const io::FileHandle>;

// Thread-safe. open() blocks: call it inside a blocking job.
class DirectoryTree {
 public:
  DirectoryTree(io::FileSystem& files, io::FileHandle root, std::size_t open_max);

  // Another root, before anything was added or opened.
  void set_root(io::FileHandle root);

  // False when the parent is unknown, the id is taken, or the name is not a single component. Id 0
  // is the root and always there.
  bool add(std::uint64_t id, std::uint64_t parent, std::string name);
  bool contains(std::uint64_t id) const;
  // Nothing was added.
  bool is_empty() const;
  // Of a directory that was added; the root is its own.
  std::uint64_t parent_of(std::uint64_t id) const;
  // kNotFound for an id that was never added; else what the opening of it, or of an ancestor, said.
  Result<DirectoryReference> open(std::uint64_t id);
  // Relative to the root, components joined by "/"; empty for the root. With `name`, the path of
  // that entry of it.
  std::string path_of(std::uint64_t id, const std::string& name = {}) const;

 private:
  struct Step {
    std::uint64_t id = 0;
    std::string name;
  };
  struct Node {
    std::uint64_t parent = 0;
    std::string name;
    DirectoryReference handle;
    std::list<std::uint64_t>::iterator use;  // in recently_used_, while handle is held
  };
  // The nearest held directory at or above `id`, and what has to be opened from there, last step
  // first.
  Result<DirectoryReference> nearest_held(std::uint64_t id, std::vector<Step>& missing);
  DirectoryReference hold(std::uint64_t id, io::FileHandle handle);

  io::FileSystem& files_;
  DirectoryReference root_;  // constant once anything was opened
  const std::size_t open_max_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Node> nodes_;  // guarded by mutex_
  std::list<std::uint64_t> recently_used_;         // guarded by mutex_; front: the latest
};

}  // namespace fgsync::storage
