// Every row of the manual's table of what lands where, and what is refused.
#include "transfer/target_mapping.h"

#include "support/tree_listing.h"
#include "transfer/mapping_fixture.h"

namespace fgsync::transfer {
namespace {

class TargetMapping : public testing::MappingFixture {
 protected:
  TargetMapping() {
    directory.make_directory("ckpt");
    directory.make_directory("ckpt/below");
    directory.write("ckpt/file", "contents");
    directory.write("single", "contents");
  }
  void expect_contents_in(const std::string& root, const Result<ResolvedTarget>& mapped) {
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    EXPECT_EQ(mapped->root, top + "/" + root);
    EXPECT_TRUE(mapped->exists);
    EXPECT_TRUE(mapped->accept.replica_of_contents);
    EXPECT_EQ(mapped->accept.names, std::vector<std::string>{""});
    EXPECT_EQ(mapped->accept.displays, std::vector<std::string>{top + "/" + root});
    EXPECT_TRUE(directory.exists(root));
  }
  void expect_name_in(const std::string& root, const std::string& name,
                      const Result<ResolvedTarget>& mapped) {
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    const std::string place = root.empty() ? top : top + "/" + root;
    EXPECT_EQ(mapped->root, place);
    EXPECT_FALSE(mapped->accept.replica_of_contents);
    EXPECT_EQ(mapped->accept.names, std::vector<std::string>{name});
    EXPECT_EQ(mapped->accept.displays, std::vector<std::string>{place + "/" + name});
    EXPECT_EQ(mapped->expected.at(name), wire::EntryType::kRegular);
    EXPECT_EQ(mapped->expected.size(), 1u);
  }
  void expect_refused(const Result<ResolvedTarget>& mapped) {
    ASSERT_FALSE(mapped.ok()) << mapped->root;
    EXPECT_EQ(mapped.status().code(), ErrorCode::kUnusable) << mapped.status().message();
  }
};

TEST_F(TargetMapping, ADirectorysContentsStandDirectlyInTheTarget) {
  expect_contents_in("target", map({"ckpt"}, "target"));
  expect_contents_in("target", map({"ckpt"}, "target"));  // and when it stands already
}

TEST_F(TargetMapping, WithATrailingSlashOfTheSourceTheContentsGoInEitherForm) {
  expect_contents_in("target", map({"ckpt/"}, "target"));
  expect_contents_in("other", map({"ckpt/"}, "other/"));
}

TEST_F(TargetMapping, WithATrailingSlashOfTheTargetTheDirectoryStandsInIt) {
  expect_contents_in("target/ckpt", map({"ckpt"}, "target/"));
}

TEST_F(TargetMapping, AFileTakesTheNameOfTheTarget) {
  expect_name_in("", "name", map({"single"}, "name"));
  EXPECT_FALSE(directory.exists("name"));
}

TEST_F(TargetMapping, AFileGoesIntoADirectoryThatStands) {
  directory.make_directory("target");
  expect_name_in("target", "single", map({"single"}, "target"));
}

TEST_F(TargetMapping, AFileGoesIntoADirectoryThatATrailingSlashNames) {
  expect_name_in("target", "single", map({"single"}, "target/"));
  EXPECT_TRUE(directory.exists("target"));
}

TEST_F(TargetMapping, AFileReplacesAFileAndASymlinkByName) {
  directory.write("old", "old");
  expect_name_in("", "old", map({"single"}, "old"));
  directory.make_symlink("nowhere", "dangling");
  expect_name_in("", "dangling", map({"single"}, "dangling"));
}

TEST_F(TargetMapping, SeveralSourcesStandUnderTheirBaseNames) {
  for (const char* target : {"target", "target/"}) {
    auto mapped = map({"ckpt/", "single"}, target);
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    EXPECT_EQ(mapped->root, top + "/target");
    EXPECT_FALSE(mapped->accept.replica_of_contents);
    EXPECT_EQ(mapped->accept.names, (std::vector<std::string>{"ckpt", "single"}));
    EXPECT_EQ(mapped->expected.at("ckpt"), wire::EntryType::kDirectory);
    EXPECT_EQ(mapped->expected.at("single"), wire::EntryType::kRegular);
    EXPECT_FALSE(directory.exists("target/ckpt"));  // comes with the manifest
  }
}

TEST_F(TargetMapping, TwoSourcesOfOneNameAreAUsageError) {
  directory.make_directory("elsewhere");
  directory.write("elsewhere/ckpt", "x");
  auto mapped = map({"ckpt", "elsewhere/ckpt"}, "target");
  EXPECT_EQ(mapped.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(directory.exists("target"));
}

TEST_F(TargetMapping, MissingParentsAreMadeOnlyIfAskedFor) {
  for (const char* target : {"a/b/c", "a/b/c/"}) {
    expect_refused(map({"ckpt"}, target));
    expect_refused(map({"single"}, target));
    EXPECT_FALSE(directory.exists("a"));
  }
  // Of the two names that are missing, "a" is the parent.
  for (const bool dry_run : {true, false}) {
    expect_refused(map({"single"}, "a/b", /*make_parents=*/false, dry_run));
    expect_refused(map({"ckpt"}, "a/b", /*make_parents=*/false, dry_run));
    EXPECT_FALSE(directory.exists("a"));
  }
  expect_contents_in("a/b/c", map({"ckpt"}, "a/b/c", /*make_parents=*/true));
  expect_name_in("d/e", "f", map({"single"}, "d/e/f", /*make_parents=*/true));
  expect_name_in("g/h", "single", map({"single"}, "g/h/", /*make_parents=*/true));
}

TEST_F(TargetMapping, ADryRunMakesNothingAndRefusesTheSame) {
  const auto before = testing::list_tree(directory.path());
  for (const char* target : {"target", "target/"}) {
    auto tree = map({"ckpt"}, target, /*make_parents=*/false, /*dry_run=*/true);
    ASSERT_TRUE(tree.ok()) << tree.status().message();
    EXPECT_FALSE(tree->exists);
  }
  auto deep = map({"ckpt"}, "a/b/c/", /*make_parents=*/true, /*dry_run=*/true);
  ASSERT_TRUE(deep.ok()) << deep.status().message();
  EXPECT_EQ(deep->accept.displays.front(), directory.path("a/b/c/ckpt"));
  auto file = map({"single"}, "name", /*make_parents=*/false, /*dry_run=*/true);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->exists);
  expect_refused(map({"ckpt"}, "a/b", /*make_parents=*/false, /*dry_run=*/true));
  expect_refused(map({"ckpt"}, "ckpt/inside", /*make_parents=*/false, /*dry_run=*/true));
  EXPECT_EQ(testing::list_tree(directory.path()), before);
}

TEST_F(TargetMapping, ATargetThatIsNoDirectoryIsUnusable) {
  expect_refused(map({"ckpt"}, "single"));
  expect_refused(map({"ckpt"}, "single/below"));
  expect_refused(map({"single"}, "ckpt/file/"));
  directory.make_symlink("nowhere", "dangling");
  expect_refused(map({"ckpt"}, "dangling"));
}

TEST_F(TargetMapping, NamesThatNoFileCanHaveAreUnusable) {
  expect_refused(map({"single"}, ".fgsync"));
  expect_refused(map({"single"}, "missing/.."));
}

TEST_F(TargetMapping, ATreeIsNeverMappedIntoItself) {
  const auto before = testing::list_tree(directory.path());
  directory.make_symlink("ckpt", "alias");
  directory.make_symlink("ckpt/below", "below_alias");
  for (const char* target :
       {"ckpt", "ckpt/", "ckpt/.", "ckpt/below", "ckpt/below/", "ckpt/new", "ckpt/new/deeper",
        "ckpt/below/../below", "alias", "alias/", "alias/new", "below_alias", "below_alias/new"}) {
    SCOPED_TRACE(target);
    expect_refused(map({"ckpt/"}, target, /*make_parents=*/true));
  }
  // The reverse.
  expect_refused(map({"ckpt/below"}, "ckpt"));
  expect_refused(map({"ckpt/below"}, "alias"));
  expect_refused(map({"ckpt/below/"}, "."));
  EXPECT_EQ(testing::list_files(directory.path("ckpt")),
            (std::map<std::string, std::string>{{"file", "contents"}}));
  EXPECT_FALSE(directory.exists("ckpt/new"));
  EXPECT_EQ(before.at("ckpt").mtime_nanoseconds,
            testing::list_tree(directory.path()).at("ckpt").mtime_nanoseconds);
}

TEST_F(TargetMapping, ADirectoryBesideItselfIsNoOverlap) {
  directory.make_directory("ckpt2");  // a longer name with the same beginning
  expect_contents_in("ckpt2", map({"ckpt"}, "ckpt2"));
  // "ckpt/" beside a slash: into the directory that holds it, under its own name, is itself.
  expect_refused(map({"ckpt"}, "./"));
}

TEST_F(TargetMapping, OneOfSeveralThatWouldLandInItselfIsRefused) {
  expect_refused(map({"single", "ckpt"}, "."));
  expect_refused(map({"single", "ckpt"}, "ckpt"));
  EXPECT_FALSE(directory.exists("ckpt/single"));
}

TEST_F(TargetMapping, AFileIsNeverMappedOntoItself) {
  directory.make_symlink("ckpt", "alias");
  expect_refused(map({"single"}, "single"));
  expect_refused(map({"single"}, "."));
  expect_refused(map({"ckpt/file"}, "alias/"));
  expect_refused(map({"ckpt/file"}, "alias/file"));
  expect_name_in("ckpt", "copy", map({"ckpt/file"}, "alias/copy"));
}

TEST_F(TargetMapping, ADirectoryThatCannotBeMadeIsUnusable) {
  auto resolved = resolve({directory.path("ckpt")});
  ASSERT_TRUE(resolved.ok());
  std::vector<wire::SourceDescription> sources;
  sources.push_back(resolved->front().description);
  auto mapped = resolve_target(*environment, "/proc/nothing/can/be/made", sources,
                               /*make_parents=*/true, RootMaking::kAll);
  EXPECT_EQ(mapped.status().code(), ErrorCode::kUnusable);
}

}  // namespace
}  // namespace fgsync::transfer
