#include "transfer/source_mapping.h"

namespace fgsync::transfer {
namespace {

std::string without_trailing_slashes(std::string path) {
  while (ends_with_slash(path)) path.pop_back();
  return path;
}

Status unusable(const std::string& path, const Status& why) {
  return Status(ErrorCode::kUnusable, path + ": " + why.message(), why.system_errno());
}

Result<ResolvedSource> resolve_source(io::Environment& environment, const std::string& path) {
  io::FileSystem& files = environment.files();
  Result<io::FileStatus> status = files.stat_path(path, /*follow=*/true);
  if (!status.ok()) return unusable(path, status.status());
  Result<std::string> absolute = files.resolve_path(path);
  if (!absolute.ok()) return unusable(path, absolute.status());

  ResolvedSource source{.path = path, .status = *status, .description = {}};
  wire::SourceDescription& description = source.description;
  description.display = *absolute;
  description.is_directory = status->type == io::FileType::kDirectory;
  if (!description.is_directory && status->type != io::FileType::kRegular) {
    return Status(ErrorCode::kUnusable,
                  path + ": reading the source: neither a directory nor a regular file");
  }
  if (description.is_directory) {
    Result<io::FileHandle> readable = files.open_path(path);
    if (!readable.ok()) return unusable(path, readable.status());
  }
  const std::string typed_name = last_component(without_trailing_slashes(path));
  const bool is_dot = typed_name == "." || typed_name == "..";
  description.contents_only = ends_with_slash(path) || is_dot;
  description.base_name = is_dot || typed_name.empty() ? last_component(*absolute) : typed_name;

  if (!description.base_name.empty() && !wire::is_valid_name(description.base_name)) {
    return Status(ErrorCode::kUnusable,
                  path + ": refused: a state directory is never part of what is replicated");
  }

  const std::string directory = description.is_directory ? *absolute : parent_of(*absolute);
  auto ancestry = ancestry_of(environment, directory);
  if (!ancestry.ok()) return unusable(path, ancestry.status());
  // Of a file only its directory is asked about.
  if (!description.is_directory) ancestry->resize(1);
  description.ancestry = std::move(*ancestry);
  return source;
}

}  // namespace

bool ends_with_slash(const std::string& path) { return path.size() > 1 && path.back() == '/'; }

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string last_component(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Result<std::vector<wire::DirectoryIdentity>> ancestry_of(io::Environment& environment,
                                                         std::string path) {
  std::vector<wire::DirectoryIdentity> ancestry;
  while (true) {
    Result<io::FileStatus> status = environment.files().stat_path(path, /*follow=*/true);
    if (!status.ok()) return status.status().with_context(path);
    ancestry.push_back({environment.host_identity(), status->device, status->inode});
    if (path == "/") return ancestry;
    path = parent_of(path);
  }
}

Result<std::vector<ResolvedSource>> resolve_sources(io::Environment& environment,
                                                    const std::vector<std::string>& paths,
                                                    bool lists_paths) {
  std::vector<ResolvedSource> sources;
  if (lists_paths && paths.size() != 1) {
    return Status(ErrorCode::kInvalidArgument, "the paths of a list stand below one source");
  }
  for (const std::string& path : paths) {
    Result<ResolvedSource> source = resolve_source(environment, path);
    if (!source.ok()) return source.status();
    wire::SourceDescription& description = source->description;
    if (lists_paths && !description.is_directory) {
      return Status(ErrorCode::kUnusable, path + ": the paths of a list stand below a directory");
    }
    description.contents_only |= lists_paths;
    sources.push_back(std::move(*source));
  }
  return sources;
}

}  // namespace fgsync::transfer
