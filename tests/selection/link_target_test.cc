// Expectations made by rsync 3.5.0: which symlinks --safe-links takes.
#include "selection/link_target.h"

#include <gtest/gtest.h>

#include <array>

namespace fgsync::selection {
namespace {

struct Expectation {
  const char* target;
  std::array<bool, 3> leads_out;  // in the tree's top, a directory of it, one of that
};

constexpr Expectation kExpectations[] = {
    {".", {false, false, false}},        {"..", {true, false, false}},
    {"./..", {true, true, true}},        {"./../x", {true, true, true}},
    {"../x", {true, false, false}},      {"../../x", {true, true, false}},
    {"a/..", {true, true, true}},        {"a/../b", {true, true, true}},
    {".././x", {true, false, false}},    {"../../../x", {true, true, true}},
    {"x/", {false, false, false}},       {"..//", {true, false, false}},
    {"../..", {true, true, true}},       {".//x", {false, false, false}},
    {"../a/..", {true, true, true}},     {"..x/y", {false, false, false}},
    {"x/..y", {false, false, false}},    {"../..//a", {true, true, false}},
    {"./.", {false, false, false}},      {"../../a/..", {true, true, true}},
    {"/etc/passwd", {true, true, true}},
};

TEST(LinkTarget, LeadsOutWhereRsyncSaysSo) {
  for (const Expectation& expected : kExpectations) {
    for (std::size_t depth = 0; depth < expected.leads_out.size(); ++depth) {
      EXPECT_EQ(leads_out(expected.target, depth), expected.leads_out[depth])
          << expected.target << " at depth " << depth;
    }
  }
}

}  // namespace
}  // namespace fgsync::selection
