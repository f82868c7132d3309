// What a workshop (tree_switch.h) is about: by this the next run knows whether it can go on there,
// and which of two trees is the new one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "wire/checksum.h"

namespace fgsync::transfer {

struct WorkshopRecord {
  wire::Checksum transfer;          // the sources, and what is passed over of them
  std::uint64_t new_inode = 0;      // of the tree that is made
  std::uint64_t old_inode = 0;      // of the one that it takes the place of; 0: none
  std::uint64_t receipt_inode = 0;  // the old tree's receipt: any other run has changed it since
  std::uint64_t receipt_size = 0;
  io::FileTime receipt_mtime;
  bool operator==(const WorkshopRecord&) const = default;
};

inline constexpr const char* kBaseName = "base";

// kNotFound where there is none, kProtocolError for anything that store_base() has not written.
Result<WorkshopRecord> load_base(io::FileSystem& files, const io::FileHandle& workshop);
// Whole or not at all, also after a power cut if `durable`.
Status store_base(io::FileSystem& files, const io::FileHandle& workshop, const WorkshopRecord& base,
                  bool durable);

}  // namespace fgsync::transfer
