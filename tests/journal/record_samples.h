// Records with every field set, for the codec's tests and its fuzzer.
#pragma once

#include <vector>

#include "journal/journal_format.h"

namespace fgsync::journal {

Header sample_header();
Begin sample_begin();
std::vector<Record> sample_records();

}  // namespace fgsync::journal
