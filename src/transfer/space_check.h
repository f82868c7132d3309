// Whether what has been planned fits onto the target: so that nothing is sent that can't.
//
// Counted is what is planned and not yet written, since what is written is in the file system's own
// figures; and what old versions give back when the new ones have their names. So a run is refused
// only if it could not succeed in any order. Whether it does is still the disk's word: others write
// there too, and a quota is not in these figures.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/directory_tree.h"

namespace fgsync::transfer {

// What one planned file still needs, and gives back. Move-only; it ends with the file, published or
// given up. Thread-safe.
class SpaceClaim {
 public:
  SpaceClaim() = default;
  SpaceClaim(SpaceClaim&& other) noexcept = default;
  SpaceClaim& operator=(SpaceClaim&& other) noexcept {
    if (this != &other) {
      end();
      place_ = std::move(other.place_);
      amount_ = other.amount_;
      written_ = other.written_;
    }
    return *this;
  }
  ~SpaceClaim() { end(); }

  // Its room is taken: called before that is so, as counting it twice would refuse too much.
  void written();

 private:
  friend class SpaceCheck;
  struct Amount {
    std::uint64_t bytes = 0;
    std::uint64_t bytes_back = 0;
    bool replaces = false;
  };
  struct Place;
  SpaceClaim(std::shared_ptr<Place> place, const Amount& amount);
  void end();

  std::shared_ptr<Place> place_;
  Amount amount_;
  bool written_ = false;
};

// One thread at a time.
class SpaceCheck {
 public:
  SpaceCheck(io::FileSystem& files, std::string root_display)
      : files_(files), root_display_(std::move(root_display)) {}

  // A file that takes so many bytes more is planned, to be staged there (one directory for each
  // file system); `replaced` is the size of the version that goes then, if one does.
  SpaceClaim claim(const storage::DirectoryReference& staging, std::uint64_t bytes,
                   std::optional<std::uint64_t> replaced);

  // kNoSpace, with the figures, where what was planned does not fit any more. What a file system
  // does not tell is not judged. Blocks.
  Status judge();

 private:
  io::FileSystem& files_;
  const std::string root_display_;
  std::vector<std::shared_ptr<SpaceClaim::Place>> places_;
};

}  // namespace fgsync::transfer
