#include "transfer/markers.h"

#include <gtest/gtest.h>

#include "support/scripted_peer.h"

namespace fgsync::transfer {
namespace {

using testing::directory_entry;
using testing::file_entry;
using testing::symlink_entry;

bool is_marker(const wire::ManifestEntry& entry, const std::vector<std::string>& patterns = {},
               const std::string& path = "unasked") {
  return Markers(patterns).contains(entry, [&] { return path; });
}

TEST(Markers, AreTheNamesOfTheManual) {
  for (const char* name :
       {".metadata", "model.safetensors.index.json", "pytorch_model.bin.index.json", "latest",
        "latest.txt", "latest_checkpointed_iteration.txt", "_SUCCESS", "DONE"}) {
    EXPECT_TRUE(is_marker(file_entry(1, 5, name, 1))) << name;
    EXPECT_TRUE(is_marker(symlink_entry(1, 5, name, "there"))) << name;
    EXPECT_FALSE(is_marker(directory_entry(1, 5, name))) << name;
  }
  for (const char* name : {"metadata", "x.metadata", "index.json.bak", "index.json", "latest2",
                           "done", "_SUCCESS.crc"}) {
    EXPECT_FALSE(is_marker(file_entry(1, 5, name, 1))) << name;
  }
}

TEST(Markers, SymlinksAreMarkersAtTheTop) {
  EXPECT_TRUE(is_marker(symlink_entry(1, 0, "current", "step_2")));
  EXPECT_FALSE(is_marker(symlink_entry(2, 1, "current", "step_2")));
  EXPECT_FALSE(is_marker(file_entry(3, 0, "current", 1)));
}

TEST(Markers, PatternsAddToThem) {
  EXPECT_TRUE(is_marker(file_entry(1, 5, "tracker.json", 1), {"*.yaml", "tracker*"}));
  EXPECT_TRUE(is_marker(file_entry(1, 5, "DONE", 1), {"tracker*"}));
  EXPECT_FALSE(is_marker(directory_entry(1, 5, "tracker.json"), {"tracker*"}));
  EXPECT_TRUE(is_marker(file_entry(1, 5, "meta", 1), {"/run/*/meta"}, "run/7/meta"));
  EXPECT_FALSE(is_marker(file_entry(1, 5, "meta", 1), {"/run/*/meta"}, "old/run/7/meta"));
}

MarkerRank rank_at(const std::string& path, bool symlink = false) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return rank_of(symlink ? symlink_entry(1, 1, name, "there") : file_entry(1, 1, name, 1), path);
}

TEST(Markers, ComeInTheOrderInWhichTheyRelyOnEachOther) {
  const MarkerRank order[] = {rank_at("run/step_2/.metadata"),
                              rank_at("run/step_2/DONE"),
                              rank_at("run/model.safetensors.index.json"),
                              rank_at(".metadata"),
                              rank_at("_SUCCESS"),
                              rank_at("run/latest"),
                              rank_at("latest")};
  for (std::size_t i = 1; i < std::size(order); ++i) EXPECT_LT(order[i - 1], order[i]) << i;
  EXPECT_EQ(rank_at("latest"), rank_at("current", /*symlink=*/true));
  EXPECT_EQ(rank_at("run/1/.metadata"), rank_at("run/2/.metadata"));
}

}  // namespace
}  // namespace fgsync::transfer
