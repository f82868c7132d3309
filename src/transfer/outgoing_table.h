// Entries that the sender has announced and that are not settled yet.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transfer/outgoing_file.h"
#include "transfer/source_tree.h"
#include "wire/message.h"

namespace fgsync::transfer {

struct OutgoingEntry {
  wire::ManifestEntry entry;
  const SourceTree* tree = nullptr;
  std::uint64_t directory =
      0;  // its place in the tree: number of its directory there, and its name
  std::string name;
  std::vector<wire::HeldChunks> held = {};  // what the receiver says that it has of it
  EntryDifferences differences = {};        // says the receiver when it asks for it
  std::shared_ptr<OutgoingFile> file;       // once the receiver asked for it
  // Whether it takes a place in the window. A marker is settled after all else: were it counted, a
  // windowful of them would keep the rest from being announced.
  bool in_window = true;

  // Relative to the target's root. A single file may stand there under another name than here.
  std::string target_path() const {
    return tree->target_path(directory, name.empty() ? name : entry.name);
  }
};

// Thread-safe.
class OutgoingTable {
 public:
  void add(OutgoingEntry entry) {
    std::lock_guard lock(mutex_);
    const std::uint64_t id = entry.entry.id;
    entries_.emplace(id, std::move(entry));
  }
  // Runs `use` on the entry under the lock; false if there is none.
  template <typename Use>
  bool with(std::uint64_t id, Use use) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return false;
    use(found->second);
    return true;
  }
  // Removes it; nullopt if there is none.
  std::optional<OutgoingEntry> take(std::uint64_t id) {
    std::lock_guard lock(mutex_);
    auto node = entries_.extract(id);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }
  bool empty() const {
    std::lock_guard lock(mutex_);
    return entries_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, OutgoingEntry> entries_;  // guarded by mutex_
};

}  // namespace fgsync::transfer
