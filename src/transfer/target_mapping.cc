#include "transfer/target_mapping.h"

#include <cerrno>
#include <set>

#include "base/mark.h"
#include "transfer/source_mapping.h"

namespace fgsync::transfer {
namespace {

Status unusable(const std::string& path, const Status& why) {
  return Status(ErrorCode::kUnusable, path + ": " + why.message(), why.system_errno());
}

std::string join(const std::string& directory, const std::string& name) {
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

// The typed path without trailing slashes (but for the root directory), never empty.
std::string trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.empty() ? "." : path;
}

// The shape of the landing, before anything is looked at or made.
struct Landing {
  std::vector<std::string>
      directories;  // to be there or to be made, in this order; the last one is the root
  // The root is only the parent of what TARGET names: it is not made unasked.
  bool root_is_parent = false;
  bool replica_of_contents = false;
  std::vector<std::string> names;
};

Result<bool> is_directory(io::FileSystem& files, const std::string& path) {
  Result<io::FileStatus> status = files.stat_path(path, /*follow=*/true);
  if (status.ok()) return status->type == io::FileType::kDirectory;
  if (status.status().code() == ErrorCode::kNotFound) return false;
  return unusable(path, status.status());
}

// A file takes the name of another file, and of nothing that it could not have been.
Status check_place(io::FileSystem& files, const std::string& path) {
  Result<io::FileStatus> there = files.stat_path(path, /*follow=*/false);
  if (!there.ok() || there->type == io::FileType::kRegular ||
      there->type == io::FileType::kSymlink) {
    return Status();
  }
  return Status(ErrorCode::kUnusable,
                path + ": refused: a device, FIFO or socket stands there, not a file");
}

Result<Landing> choose_landing(io::FileSystem& files, const std::string& target,
                               const std::vector<wire::SourceDescription>& sources) {
  const bool slash = ends_with_slash(target);
  const std::string path = trimmed(target);
  Landing landing;
  if (sources.size() > 1) {
    landing.directories = {path};
    std::set<std::string> seen;
    for (const wire::SourceDescription& source : sources) {
      if (source.base_name.empty()) {
        return Status(ErrorCode::kInvalidArgument,
                      source.display + ": has no base name to stand under beside other sources");
      }
      if (!seen.insert(source.base_name).second) {
        return Status(ErrorCode::kInvalidArgument,
                      source.base_name + ": two sources have this base name");
      }
      landing.names.push_back(source.base_name);
    }
    return landing;
  }
  const wire::SourceDescription& source = sources.front();
  if (source.is_directory) {
    landing.directories = {path};
    const bool below = slash && !source.contents_only && !source.base_name.empty();
    if (below) landing.directories.push_back(join(path, source.base_name));
    landing.replica_of_contents = true;
    landing.names = {""};
    return landing;
  }
  Result<bool> into = is_directory(files, path);
  if (!into.ok()) return into.status();
  if (slash || *into) {
    landing.directories = {path};
    landing.names = {source.base_name};
    return landing;
  }
  FGSYNC_RETURN_IF_ERROR(check_place(files, path));
  landing.directories = {parent_of(path)};
  landing.root_is_parent = true;
  landing.names = {last_component(path)};
  if (!wire::is_valid_name(landing.names.front())) {
    return Status(ErrorCode::kUnusable, target + ": refused: no file can have this name here");
  }
  return landing;
}

Status parent_is_missing(const std::string& path) {
  return Status(ErrorCode::kUnusable,
                path +
                    ": making the target: its parent is missing (No such file or directory); "
                    "--mkpath makes it");
}

// Makes a directory that is missing. True if it is there (now), false if it would be made.
Result<bool> ensure_directory(io::FileSystem& files, const std::string& path, bool make_parents,
                              bool stays_missing) {
  Result<io::FileStatus> status = files.stat_path(path, /*follow=*/true);
  if (status.ok()) {
    if (status->type == io::FileType::kDirectory) return true;
    return Status(ErrorCode::kUnusable, path + ": opening the target: Not a directory");
  }
  if (status.status().code() != ErrorCode::kNotFound) return unusable(path, status.status());
  const std::string parent = parent_of(path);
  Result<io::FileStatus> parent_status = files.stat_path(parent, /*follow=*/true);
  if (!parent_status.ok()) {
    if (parent_status.status().code() != ErrorCode::kNotFound) {
      return unusable(path, parent_status.status().with_context("making the target"));
    }
    if (!make_parents) return parent_is_missing(path);
    Result<bool> made = ensure_directory(files, parent, make_parents, stays_missing);
    if (!made.ok()) return made;
  }
  if (stays_missing) return false;
  Status made = files.make_directory_path(path, 0777);
  if (made.system_errno() == EEXIST) {
    // Another run to this target has made it a moment ago; else it is what stood there before.
    mark("target_made_by_another");
    Result<bool> there = is_directory(files, path);
    if (there.ok() && *there) return true;
  }
  if (!made.ok()) return unusable(path, made);
  return true;
}

bool contains(const std::vector<wire::DirectoryIdentity>& ancestry,
              const wire::DirectoryIdentity& directory) {
  for (const wire::DirectoryIdentity& ancestor : ancestry) {
    if (ancestor == directory) return true;
  }
  return false;
}

// Refuses what would map a tree into itself. Both sides' directories are compared by kernel, device
// and inode, so neither an alias, nor a bind mount, nor reaching one's own host over ssh hides it.
Status check_overlap(io::Environment& environment, const std::string& landing,
                     const wire::SourceDescription& source) {
  auto ancestry = ancestry_of(environment, landing);
  if (!ancestry.ok()) return unusable(landing, ancestry.status());
  const wire::DirectoryIdentity& source_directory = source.ancestry.front();
  const wire::DirectoryIdentity& landing_directory = ancestry->front();
  if (source_directory == landing_directory) {
    return Status(ErrorCode::kUnusable,
                  landing + ": refused: it is the same directory as the source " + source.display);
  }
  if (contains(*ancestry, source_directory)) {
    return Status(ErrorCode::kUnusable,
                  landing + ": refused: the target is inside the source " + source.display);
  }
  if (contains(source.ancestry, landing_directory)) {
    return Status(ErrorCode::kUnusable,
                  landing + ": refused: the source " + source.display + " is inside the target");
  }
  return Status();
}

// The nearest directory at or above `path` that exists, without symlinks.
Result<std::string> nearest_directory(io::FileSystem& files, std::string path) {
  while (true) {
    Result<bool> there = is_directory(files, path);
    if (!there.ok()) return there.status();
    if (*there) return files.resolve_path(path);
    path = parent_of(path);
  }
}

Status check_directory(io::Environment& environment, const std::string& landing,
                       const wire::SourceDescription& source) {
  Result<bool> there = is_directory(environment.files(), landing);
  if (!there.ok()) return there.status();
  Result<std::string> nearest = nearest_directory(environment.files(), landing);
  if (!nearest.ok()) return unusable(landing, nearest.status());
  if (*there) return check_overlap(environment, *nearest, source);
  // Still to be made: only what will be its parents can be inside the source.
  auto ancestry = ancestry_of(environment, *nearest);
  if (!ancestry.ok()) return unusable(landing, ancestry.status());
  if (!contains(*ancestry, source.ancestry.front())) return Status();
  return Status(ErrorCode::kUnusable,
                landing + ": refused: the target is inside the source " + source.display);
}

Status check_file(io::Environment& environment, const std::string& root, const std::string& name,
                  const wire::SourceDescription& source) {
  Result<io::FileStatus> directory = environment.files().stat_path(root, /*follow=*/true);
  if (!directory.ok()) return Status();  // still to be made: nothing stands in it
  const wire::DirectoryIdentity identity{environment.host_identity(), directory->device,
                                         directory->inode};
  if (identity != source.ancestry.front() || name != last_component(source.display)) {
    return Status();
  }
  return Status(ErrorCode::kUnusable,
                join(root, name) + ": refused: source and target are the same file");
}

}  // namespace

bool lands_as_tree(const std::vector<wire::SourceDescription>& sources) {
  return sources.size() > 1 || sources.front().is_directory;
}

Result<ResolvedTarget> resolve_target(io::Environment& environment, const std::string& target,
                                      const std::vector<wire::SourceDescription>& sources,
                                      bool make_parents, RootMaking making) {
  io::FileSystem& files = environment.files();
  Result<Landing> landing = choose_landing(files, target, sources);
  if (!landing.ok()) return landing.status();

  // Refusals first: nothing is made for a mapping that is refused.
  const std::string& root = landing->directories.back();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string& name = landing->names[i];
    FGSYNC_RETURN_IF_ERROR(
        sources[i].is_directory
            ? check_directory(environment, name.empty() ? root : join(root, name), sources[i])
            : check_file(environment, root, name, sources[i]));
  }

  const bool root_may_be_made = make_parents || !landing->root_is_parent;
  if (!root_may_be_made &&
      files.stat_path(root, /*follow=*/true).status().code() == ErrorCode::kNotFound) {
    return parent_is_missing(target);
  }
  ResolvedTarget resolved;
  const Result<bool> was_there = is_directory(files, root);
  resolved.is_new = was_there.ok() && !*was_there;
  for (const std::string& directory : landing->directories) {
    // Below what a dry run has not made there is nothing to look at.
    if (!resolved.exists) break;
    const bool is_switched = making == RootMaking::kAboveRoot && &directory == &root;
    Result<bool> there = ensure_directory(files, directory, make_parents,
                                          is_switched || making == RootMaking::kNone);
    if (there.ok() && !*there && is_switched) {
      there = ensure_directory(files, parent_of(directory), make_parents, /*stays_missing=*/false);
      if (there.ok()) *there = false;
    }
    if (!there.ok()) return there.status();
    resolved.exists = *there;
  }
  resolved.root = resolved.typed_root = root;
  if (resolved.exists) {
    Result<std::string> absolute = files.resolve_path(resolved.root);
    if (!absolute.ok()) return unusable(resolved.root, absolute.status());
    resolved.root = *absolute;
  }
  resolved.accept.replica_of_contents = landing->replica_of_contents;
  resolved.accept.names = landing->names;
  for (std::size_t i = 0; !landing->replica_of_contents && i < sources.size(); ++i) {
    resolved.expected[landing->names[i]] =
        sources[i].is_directory ? wire::EntryType::kDirectory : wire::EntryType::kRegular;
  }
  for (const std::string& name : landing->names) {
    resolved.accept.displays.push_back(name.empty() ? resolved.root : join(resolved.root, name));
  }
  return resolved;
}

}  // namespace fgsync::transfer
