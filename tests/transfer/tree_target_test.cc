// Which name is switched when a target is published at once, and what a workshop remembers.
#include "transfer/tree_target.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "io/posix_file_system.h"
#include "support/temporary_directory.h"
#include "transfer/workshop_record.h"

namespace fgsync::transfer {
namespace {

class TreeTargetTest : public ::testing::Test {
 protected:
  TreeTarget find(const std::string& below) {
    auto target = find_tree_target(*files, directory.path(below));
    EXPECT_TRUE(target.ok()) << target.status().message();
    return target.ok() ? std::move(*target) : TreeTarget();
  }

  testing::TemporaryDirectory directory;
  const std::unique_ptr<io::FileSystem> files = io::make_posix_file_system();
};

TEST_F(TreeTargetTest, ADirectoryAndAMissingOne) {
  directory.make_directory("there");
  EXPECT_EQ(find("there").kind, TreeTarget::Kind::kDirectory);
  EXPECT_EQ(find("there").name, "there");
  EXPECT_EQ(find("there/.").name, "there");
  EXPECT_EQ(find("missing").kind, TreeTarget::Kind::kMissing);
  EXPECT_EQ(find("missing").name, "missing");
}

TEST_F(TreeTargetTest, ASymlinkIsSwitchedInItsOwnManner) {
  directory.make_directory("store");
  directory.make_directory("store/v1");
  const std::string absolute = directory.path("store/v1");
  const std::pair<std::string, std::string> kTexts[] = {
      {"store/v1", "store/v1~2"},
      {absolute, directory.path("store/v1~2")},
  };
  for (const auto& [text, expected] : kTexts) {
    ASSERT_EQ(::symlink(text.c_str(), directory.path("link").c_str()), 0);
    const TreeTarget target = find("link");
    EXPECT_EQ(target.kind, TreeTarget::Kind::kSymlink);
    EXPECT_EQ(target.name, "v1");
    EXPECT_EQ(target.link_name, "link");
    EXPECT_EQ(target.link_text_for(*files, "v1~2"), expected);
    ::unlink(directory.path("link").c_str());
  }
}

TEST_F(TreeTargetTest, ASymlinkToASymlinkGetsThePath) {
  directory.make_directory("v1");
  ASSERT_EQ(::symlink("v1", directory.path("middle").c_str()), 0);
  ASSERT_EQ(::symlink("middle", directory.path("link").c_str()), 0);
  EXPECT_EQ(find("link").name, "v1");
  const std::string text = find("link").link_text_for(*files, "v1~2");
  EXPECT_TRUE(text.starts_with('/') && text.ends_with("/v1~2")) << text;
}

TEST_F(TreeTargetTest, NumbersAreCountedOn) {
  const std::pair<std::string, std::string> kNames[] = {
      {"v1", "v1~2"},   {"v1~2", "v1~3"}, {"v1~1", "v1~1~2"}, {"~2", "~2~2"},
      {"v~x", "v~x~2"}, {"v~", "v~~2"},   {"a~9", "a~10"},    {"a~1234567", "a~1234567~2"},
  };
  for (const auto& [name, next] : kNames) {
    TreeTarget target;
    target.name = name;
    EXPECT_EQ(target.numbered(target.number() + 1), next) << name;
  }
}

TEST_F(TreeTargetTest, TheRootCannotBeSwitched) {
  EXPECT_EQ(find_tree_target(*files, "/").status().code(), ErrorCode::kUnsupported);
}

TEST_F(TreeTargetTest, AMountPointCannotBeSwitched) {
  auto found = find_tree_target(*files, "/proc");
  EXPECT_EQ(found.status().code(), ErrorCode::kUnsupported);
  EXPECT_NE(found.status().message().find("mount point"), std::string::npos);
}

TEST_F(TreeTargetTest, ARecordSurvivesAndDamageIsNoticed) {
  auto workshop = files->open_path(directory.path());
  ASSERT_TRUE(workshop.ok());
  EXPECT_EQ(load_base(*files, *workshop).status().code(), ErrorCode::kNotFound);
  WorkshopRecord record;
  record.transfer.bytes[3] = std::byte{7};
  record.new_inode = 1u << 20;
  record.old_inode = UINT64_MAX;
  record.receipt_size = 99;
  record.receipt_mtime = {-1, 999'999'999};
  for (const bool durable : {true, false}) {
    ASSERT_TRUE(store_base(*files, *workshop, record, durable).ok());
    auto loaded = load_base(*files, *workshop);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(*loaded, record);
  }
  const std::string bytes = directory.read("base");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = char(damaged[i] ^ 1);
    ::unlink(directory.path("base").c_str());
    directory.write("base", damaged);
    EXPECT_FALSE(load_base(*files, *workshop).ok()) << i;
  }
  for (const std::string& other : {bytes.substr(1), bytes + "x", std::string()}) {
    ::unlink(directory.path("base").c_str());
    directory.write("base", other);
    EXPECT_EQ(load_base(*files, *workshop).status().code(), ErrorCode::kProtocolError);
  }
}

}  // namespace
}  // namespace fgsync::transfer
