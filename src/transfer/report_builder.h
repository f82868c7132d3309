// From what both sides counted to the report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fgsync/report.h"
#include "transfer/roles.h"

namespace fgsync::transfer {

// Fills in figures, errors, notes, digest, cipher and status of the session of the side whose user
// reads the report.
void fill_report(TransferReport& report, Session& session, const Role& role);

// What lands where: "SOURCE -> TARGET", each with its prefix ("HOST:" or nothing).
std::vector<std::string> mapping_of(const Role& role, const std::string& source_prefix,
                                    const std::string& target_prefix);

// What stood at the target when a run began, as its sessions have found.
struct FoundAtStart {
  bool is_complete = false;  // one of them has planned to its end
  std::uint64_t files = 0;   // unchanged ones, and their bytes
  std::uint64_t bytes = 0;
  std::uint64_t held = 0;  // bytes of files that had come in parts
};

// Adds a session's report to that of its run. Not the first one (`found` is there): what this one
// found and the run had not found at its start has been sent in between, heard of or not.
void add_session(TransferReport& run, TransferReport session,
                 const std::optional<FoundAtStart>& found);

// `rate_limit_seconds`: what a bandwidth limit alone asks for.
// What the run was limited by, from the figures: one of the names of the manual.
std::string limited_by(const TransferReport& report, double rate_limit_seconds);

}  // namespace fgsync::transfer
