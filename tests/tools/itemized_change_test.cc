#include "itemized_change.h"

#include <gtest/gtest.h>

namespace fgsync::tools {
namespace {

using Differences = EntryDifferences;

TEST(ItemizedChange, IsRsyncsLine) {
  const EntryChange made = {"d/new/", EntryKind::kDirectory, "", {Differences::kNew}, true};
  EXPECT_EQ(itemized_change(made, true), "cd+++++++++ d/new/");
  EntryChange file = {"f", EntryKind::kFile, "", {Differences::kSize | Differences::kTime}, true};
  EXPECT_EQ(itemized_change(file, true), "<f.st...... f");
  EXPECT_EQ(itemized_change(file, false), ">f.st...... f");
  file.differences.bits = Differences::kAll & ~Differences::kNew;
  file.is_replicated = false;
  EXPECT_EQ(itemized_change(file, true), ".fcstpog... f");
  const EntryChange link = {"l", EntryKind::kSymlink, "a\nb", {Differences::kContents}, true};
  EXPECT_EQ(itemized_change(link, true), "cLc........ l -> a\\x0ab");
}

}  // namespace
}  // namespace fgsync::tools
