// SOURCE arguments on the host that has them: what each one is, and under which name it travels.
#pragma once

#include <string>
#include <vector>

#include "io/file_system.h"
#include "io/io.h"
#include "wire/message.h"

namespace fgsync::transfer {

struct ResolvedSource {
  std::string path;       // as typed
  io::FileStatus status;  // of what it names: a directory or a regular file
  wire::SourceDescription description;
};

// Looks at each path. kUnusable when one is missing, unreadable, or neither a directory nor a
// regular file. A symlink named as SOURCE stands for what it leads to. With `lists_paths` there is
// one directory, and it stands for its contents. Blocks.
Result<std::vector<ResolvedSource>> resolve_sources(io::Environment& environment,
                                                    const std::vector<std::string>& paths,
                                                    bool lists_paths = false);

// Identities of the directory `path` (absolute, without symlinks) and of all its parents, from
// itself up.
Result<std::vector<wire::DirectoryIdentity>> ancestry_of(io::Environment& environment,
                                                         std::string path);

// Whether a typed path says that it is about what is in the directory; the root directory does not.
bool ends_with_slash(const std::string& path);

// The directory part and the last component of an absolute path; "/" has the empty name.
std::string parent_of(const std::string& path);
std::string last_component(const std::string& path);

}  // namespace fgsync::transfer
