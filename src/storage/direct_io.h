// Opening a file past the page cache where the option asks for it and the file system offers it;
// the same rule for reading a source and writing a staged file.
#pragma once

#include <cstdint>
#include <string>

#include "base/limits.h"
#include "fgsync/options.h"
#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::storage {

// kAuto: below this direct I/O saves too little cache to pay for its waits.
inline constexpr std::uint64_t kDirectIoFileBytesMin = 16 * limits::kMiB;

// What a direct read or write of so many bytes asks for: whole blocks.
constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

enum class OpenPurpose : std::uint8_t { kRead, kCreate, kUpdate };

struct OpenedFile {
  io::FileHandle handle;
  // Multiples of this for offset, length and memory; 0: opened through the page cache.
  std::uint32_t direct_alignment = 0;
  // Asked only of files that don't travel packed: of those each call counts.
  bool in_memory = false;
};

// kAuto: direct from kDirectIoFileBytesMin on where it is offered. kAlways: direct for all files
// but those that may travel packed, which are read and written in one piece of any length;
// kUnsupported where it is not offered. An alignment beyond limits::kSlotAlignment counts as not
// offered: buffers don't have it.
Result<OpenedFile> open_for(io::FileSystem& files, const io::FileHandle& base,
                            const std::string& name, OpenPurpose purpose, std::uint64_t size,
                            DirectIo direct);

}  // namespace fgsync::storage
