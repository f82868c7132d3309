// The directory at the top of a target (and of each mount inside) that holds what runs keep there;
// see docs/architecture.md, "State at the target".
#pragma once

#include <cstdint>
#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::storage {

inline constexpr std::uint32_t kStateMode = 0700;

// Opens it, making it where it is missing, and sees to it that nobody else can put names into it.
// ENOENT: another run has removed it in between. Blocks.
Result<io::FileHandle> make_state_directory(io::FileSystem& files, const io::FileHandle& parent);
// ENOENT where there is none. Blocks.
Result<io::FileHandle> open_state_directory(io::FileSystem& files, const io::FileHandle& parent);
// Removes it, unless something is in it: another run's state, or what is kept for a later one.
// Blocks.
Status remove_state_directory(io::FileSystem& files, const io::FileHandle& parent);

// Whether the name still stands for the open directory.
Result<bool> is_named(io::FileSystem& files, const io::FileHandle& base, const std::string& name,
                      const io::FileHandle& open);

// One run at a time changes a target: it holds the lock on the state directory of its root
// (flock(2) on the directory itself), which the kernel drops when it dies. Where the file system
// has no locks everybody gets it. Blocks for no longer than a call takes.
class StateLock {
 public:
  // One attempt. False: another run holds it. The directory is made where it is missing.
  Result<bool> try_take(io::FileSystem& files, const io::FileHandle& root);
  // The same, where there is one; kNotFound where there is none: then nobody holds it.
  Result<bool> try_take_present(io::FileSystem& files, const io::FileHandle& root);
  bool is_held() const { return bool(state_); }
  // After an attempt that found it held: by whom, for messages.
  const std::string& holder() const { return holder_; }
  void release() { state_.reset(); }

 private:
  // Takes the lock on an open state directory; kNotFound if that is the state directory no more.
  Result<bool> try_take_open(io::FileSystem& files, const io::FileHandle& root,
                             io::FileHandle state);

  io::FileHandle state_;
  std::string holder_;
};

}  // namespace fgsync::storage
