// A directory to map into, a real environment, and the working directory put where a test wants it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <climits>
#include <memory>
#include <string>
#include <vector>

#include "io/posix_environment.h"
#include "support/temporary_directory.h"
#include "transfer/source_mapping.h"
#include "transfer/target_mapping.h"

namespace fgsync::testing {

class MappingFixture : public ::testing::Test {
 protected:
  MappingFixture() {
    char resolved[PATH_MAX];
    EXPECT_NE(::realpath(directory.path().c_str(), resolved), nullptr);
    top = resolved;
  }

  Result<std::vector<transfer::ResolvedSource>> resolve(const std::vector<std::string>& paths) {
    return transfer::resolve_sources(*environment, paths);
  }
  // Both ends of a mapping, below the directory. A trailing slash of the paths is kept.
  Result<transfer::ResolvedTarget> map(const std::vector<std::string>& sources,
                                       const std::string& target, bool make_parents = false,
                                       bool dry_run = false) {
    std::vector<std::string> paths;
    for (const std::string& source : sources) paths.push_back(directory.path(source));
    auto resolved = resolve(paths);
    EXPECT_TRUE(resolved.ok()) << resolved.status().message();
    if (!resolved.ok()) return resolved.status();
    std::vector<wire::SourceDescription> descriptions;
    for (const auto& source : *resolved) descriptions.push_back(source.description);
    return transfer::resolve_target(
        *environment, directory.path(target), descriptions, make_parents,
        dry_run ? transfer::RootMaking::kNone : transfer::RootMaking::kAll);
  }

  const TemporaryDirectory directory;
  const std::unique_ptr<io::Environment> environment = io::make_posix_environment();
  std::string top;  // the directory without symlinks
};

}  // namespace fgsync::testing
