// What an interrupted run with --publish=tree has left beside a target, when the next run publishes
// file by file.
#pragma once

#include <string>

#include "transfer/session.h"

namespace fgsync::transfer {

// An old tree whose removal was interrupted is removed, and so is a new one that nobody has gone on
// with for seven days; a younger one stays, with a note. What a living run holds is not touched.
// `path` is the target as typed. Trouble with it never fails a run. Blocks.
void settle_left_tree(Session& session, const std::string& path);

}  // namespace fgsync::transfer
