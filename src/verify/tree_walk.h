// What stands in a tree, against what its receipt says: all that can be said without reading a
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fgsync/verify.h"
#include "receipt/receipt_index.h"
#include "receipt/tree_lookup.h"
#include "storage/directory_tree.h"
#include "storage/tree_walker.h"
#include "transfer/file_digest.h"

namespace fgsync::verify {

// A file whose contents are to be compared.
struct FileToRead {
  transfer::FilePlace place;
  receipt::FileRecord record;  // of its size
};

struct Found {
  std::vector<FileToRead> to_read;
  std::vector<Difference> differences;  // of files that need not be read
  std::vector<std::string> extra;       // paths of files that the receipt does not know
  std::vector<ErrorEntry> errors;
};

// The part of a tree that an index has loaded. Not thread-safe; everything blocks.
class TreeWalk {
 public:
  // With `only`, this one file of the root directory. The index is marked; it must outlive the
  // walk.
  TreeWalk(io::FileSystem& files, const io::FileHandle& root, io::FileHandle root_to_walk,
           receipt::ReceiptIndex& index, std::string only);

  // Looks at about `count` entries; false at the end.
  Result<bool> next(std::size_t count, Found& found);
  // Then: the same for files that are missing.
  Result<bool> next_missing(std::size_t count, Found& found);

 private:
  Status look_at(const storage::WalkedEntry& entry, Found& found);
  void look_at_file(const storage::WalkedEntry& entry, std::string path, receipt::Finding finding,
                    Found& found);
  Result<bool> look_at_only(Found& found);
  Status miss(const receipt::FileRecord& record, Found& found);

  io::FileSystem& files_;
  const io::FileHandle& root_;
  const std::shared_ptr<storage::DirectoryTree> directories_;
  storage::TreeWalker walker_;
  receipt::ReceiptIndex& index_;
  receipt::TreeLookup lookup_;
  const std::string only_;
  std::size_t unseen_slot_ = 0;
};

}  // namespace fgsync::verify
