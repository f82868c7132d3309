// What Setup and ListedPaths say of the selection survives the round trip.
#include <gtest/gtest.h>

#include "wire/message.h"
#include "wire/message_samples.h"

namespace fgsync::wire {
namespace {

template <typename Body>
Body over_the_wire(const Body& body) {
  const Result<Message> decoded = decode_message(encode(body));
  EXPECT_TRUE(decoded.ok()) << decoded.status().message();
  return std::get<Body>(*decoded);
}

TEST(SelectionMessages, SetupTellsTheSelection) {
  const auto setup = over_the_wire(sample_setup());
  EXPECT_EQ(setup.selection.rules, sample_setup().selection.rules);
  EXPECT_TRUE(setup.selection.rules_see_source_name);
  EXPECT_TRUE(setup.selection.lists_paths);
  EXPECT_TRUE(setup.selection.lists_whole_directories);
  EXPECT_TRUE(setup.selection.copy_links);
  EXPECT_TRUE(setup.selection.one_file_system);
  EXPECT_EQ(setup.selection.bytes_min, 5u);
  EXPECT_EQ(setup.selection.bytes_max, std::uint64_t{7} << 40);
  EXPECT_TRUE(setup.selection.safe_links);
  EXPECT_EQ(setup.changes.comparison, Comparison::kContents);
  EXPECT_TRUE(setup.changes.update);
  EXPECT_TRUE(setup.changes.existing_only);
  EXPECT_TRUE(setup.changes.new_only);
}

TEST(SelectionMessages, ListedPathsMayBeEmptyOrEndInASlash) {
  const ListedPaths listed = over_the_wire(ListedPaths{{"a/b/", ""}, true});
  EXPECT_EQ(listed.paths, (std::vector<std::string>{"a/b/", ""}));
  EXPECT_TRUE(listed.more);
}

}  // namespace
}  // namespace fgsync::wire
