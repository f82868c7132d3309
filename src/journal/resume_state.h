// What a journal says when it is read from its start to its end: the files that had begun to come
// and were neither published nor given up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "journal/journal_format.h"

namespace fgsync::journal {

// Files under way at once are few (a scheduler's turn and what waits for its fsync): a journal with
// more is not one of ours. With the bound on chunks below it bounds the memory of reading one.
inline constexpr std::size_t kPartialFilesMax = 4096;
// Chunks of all partial files together: 256 MiB of checksums.
inline constexpr std::uint64_t kPartialChunksMax = std::uint64_t{1} << 24;

struct PartialFile {
  std::uint64_t number = 0;
  FileVersion version;
  std::array<std::byte, 16> host{};
  std::uint64_t staged_inode = 0;
  std::vector<bool> held;                 // by chunk; as long as the last one that is held
  std::vector<wire::Checksum> checksums;  // of the held ones
};

// Not thread-safe.
class ResumeState {
 public:
  // kIoError for a record that cannot follow the ones before it; the state is as before it then.
  Status apply(Record record);

  // Removes and returns the one that was to become this path; nullopt if there is none.
  std::optional<PartialFile> take(const std::string& path);
  bool empty() const { return by_number_.empty(); }
  // Whether one of the partial files has this number.
  bool contains(std::uint64_t number) const { return by_number_.contains(number); }
  // Larger than any number that the journal has named.
  std::uint64_t next_number() const { return next_number_; }

 private:
  struct Entry {
    std::string path;
    PartialFile file;
  };
  Status begin(Begin begin);
  Status add(Chunks chunks);
  void forget(std::uint64_t number);

  std::unordered_map<std::uint64_t, Entry> by_number_;
  std::unordered_map<std::string, std::uint64_t> by_path_;
  std::uint64_t chunks_ = 0;  // slots of all `held`
  std::uint64_t next_number_ = 0;
};

}  // namespace fgsync::journal
