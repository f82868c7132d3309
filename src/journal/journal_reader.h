// Reads a journal that an earlier run has left.
#pragma once

#include <cstdint>
#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "journal/journal_format.h"
#include "journal/resume_state.h"

namespace fgsync::journal {

inline constexpr const char* kJournalName = "journal";

struct LoadedJournal {
  Header header;
  ResumeState state;
  io::FileTime written;          // mtime of the journal
  std::uint64_t good_bytes = 0;  // header and whole records
  std::uint64_t bytes_cut = 0;   // what follows them and says nothing
};

// Only the header: whose journal it is. Errors as load().
Result<Header> load_header(io::FileSystem& files, const io::FileHandle& staging);

// The journal in the staging directory, as far as it is whole. kNotFound if there is none,
// kUnsupported for a newer one, kIoError (or what the file system says) for one that cannot be read
// at all. Memory is bounded whatever it holds. Blocks.
Result<LoadedJournal> load(io::FileSystem& files, const io::FileHandle& staging);

}  // namespace fgsync::journal
