// From what both sides counted to the report.
#pragma once

#include <string>

#include "fgsync/report.h"
#include "transfer/roles.h"

namespace fgsync::transfer {

// Fills in figures, errors, notes, digest and status of the side whose user reads the report.
// `local`: the other half runs in the same process.
void fill_report(TransferReport& report, Session& session, const Role& role);

// `rate_limit_seconds`: what a bandwidth limit alone asks for.
// What the run was limited by, from the figures: one of the names of the manual.
std::string limited_by(const TransferReport& report, double rate_limit_seconds);

}  // namespace fgsync::transfer
