// A receipt without what is out of date: for each path the one record that counts.
#pragma once

#include <cstdint>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "receipt/receipt_reader.h"

namespace fgsync::receipt {

// Writes to the new, empty file `out`, as a settled receipt; not durable yet. Records of `old` from
// `trusted_end` on are kept only where they describe what stands below `root`. Memory is bounded: a
// long receipt is read several times. Blocks.
Result<LogSummary> rewrite(io::FileSystem& files, const ReceiptReader& old,
                           const LogSummary& summary, std::uint64_t trusted_end,
                           const io::FileHandle& root, const io::FileHandle& out,
                           const Header& header);

}  // namespace fgsync::receipt
