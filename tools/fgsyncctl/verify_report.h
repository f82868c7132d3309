// A verification in words and as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fgsync/verify.h"

namespace fgsync::tools {

// A tree that was checked against its receipt, or a source and a target that were compared.
struct Verified {
  std::string tree;  // empty: two trees
  std::string source;
  std::string target;
};

// "PATH: contents differ", "PATH: time differs: THIS instead of THAT". Escaped.
std::string difference_line(const Difference& difference);

// "verified 3.8 GB (39 files) in 3.1 s: 1.2 GB/s", with what was found in front.
std::string verify_final_line(const VerifyReport& report, const Verified& verified);

// "fgsyncctl: TREE/PATH: doing: why", at most `shown_max` and then how many more there are, and why
// the verification ended early, if it did. Escaped.
std::vector<std::string> verify_error_lines(const VerifyReport& report, const Verified& verified,
                                            std::size_t shown_max);

// One object, its keys fixed.
std::string verify_json(const VerifyReport& report, const Verified& verified,
                        const std::vector<std::string>& command);

}  // namespace fgsync::tools
