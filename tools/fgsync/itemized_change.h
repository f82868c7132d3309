// Changes as people and scripts read them.
#pragma once

#include <string>

#include "fgsync/report.h"

namespace fgsync::tools {

// rsync's itemized line, without its end: what is done ('<' sent to another host, '>' to this one,
// 'c' made here, '.' brought in line), its kind, in what it differed, and its name, escaped.
std::string itemized_change(const EntryChange& change, bool to_another_host);

}  // namespace fgsync::tools
