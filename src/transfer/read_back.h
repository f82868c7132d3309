// --verify=readback: what the disk has of a file is what arrived.
#pragma once

#include "transfer/committer.h"

namespace fgsync::transfer {

// Reads a staged file that has been synced, past the page cache, and compares it with the checksums
// of what arrived: chunk by chunk, or a packed file as a whole. kChecksumMismatch says where it
// differs. Blocks; ends early when the session fails.
Status read_back(Session& session, const StagedEntry& entry);

}  // namespace fgsync::transfer
