// The hidden directory beside a target in which its new tree is made (docs/publish.md): whose it
// is, and what is in it.
#pragma once

#include <chrono>
#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/remove_tree.h"
#include "transfer/workshop_record.h"

namespace fgsync::transfer {

// Not thread-safe; everything blocks.
class Workshop {
 public:
  static constexpr const char* kTreeName = "tree";
  static constexpr const char* kCopyName = "copy";  // of a file, on its way into the tree

  // With `durable` what is made is there after a power cut. `step`: see TreeStep.
  Workshop(io::FileSystem& files, bool durable, storage::TreeStep step)
      : files_(files), durable_(durable), step_(std::move(step)) {}

  // One attempt to have it alone, until close() or the end of the process. False: another run has
  // it, or has just removed it. kUnsupported where the file system has no locks. It is made where
  // it is missing, and `now` is when it was last used.
  Result<bool> try_open(const io::FileHandle& parent, const std::string& name,
                        std::chrono::system_clock::time_point now);
  // The same, where there is one; kNotFound where there is none.
  Result<bool> try_open_present(const io::FileHandle& parent, const std::string& name);
  // After an attempt that found it held: by whom, for messages.
  const std::string& holder() const { return holder_; }
  const io::FileHandle& directory() const { return directory_; }
  bool is_open() const { return bool(directory_); }

  // What an earlier run has written down, whose tree is still there.
  Result<WorkshopRecord> base() const;
  // kUnsupported where the file system cannot exchange two names.
  Status try_exchange();
  // Removes all that is in it, once the names in it and in `parent`, where it stands, are durable.
  // True if there was anything.
  Result<bool> clear(const io::FileHandle& parent);
  // Makes the tree, with a copy of the old one's receipt, and then the base that names it.
  Status begin(WorkshopRecord base, std::uint32_t mode, const io::FileHandle& old_root);
  // With all that is in it, and gives up the lock.
  Status remove(const io::FileHandle& parent);
  // Gives up the lock. What is empty goes.
  void close(const io::FileHandle& parent);

 private:
  Result<bool> has_locks(const io::FileHandle& parent);
  Status copy_receipt(const io::FileHandle& tree, const io::FileHandle& old_root);

  io::FileSystem& files_;
  const bool durable_;
  const storage::TreeStep step_;
  std::string name_;
  std::string holder_;
  io::FileHandle directory_;
};

// The identity of the old tree's receipt; zeros where there is none.
Status describe_receipt(io::FileSystem& files, const io::FileHandle& old_root,
                        WorkshopRecord& base);

}  // namespace fgsync::transfer
