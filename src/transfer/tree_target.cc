#include "transfer/tree_target.h"

#include <charconv>

#include "transfer/source_mapping.h"

namespace fgsync::transfer {
namespace {

constexpr char kNumberMark = '~';
constexpr std::size_t kDigitsMax = 6;

Status cannot_switch(const std::string& path, const char* why) {
  return Status(ErrorCode::kUnsupported, path + ": publishing the tree at once: " + why);
}

// A path with a last component that is a name; the working directory and the like have theirs
// elsewhere.
Result<std::string> with_a_name(io::FileSystem& files, const std::string& path) {
  if (io::is_single_component(last_component(path))) return path;
  return files.resolve_path(path);
}

Status open_parent(io::FileSystem& files, const std::string& path, io::FileHandle& parent,
                   std::string& name) {
  name = last_component(path);
  if (!io::is_single_component(name)) {
    return cannot_switch(path, "the root directory cannot be switched");
  }
  const std::string above = parent_of(path);
  auto opened = files.open_path(above);
  if (!opened.ok()) return opened.status().with_context(above);
  parent = std::move(*opened);
  return Status();
}

// What is mounted keeps its place.
Status check_mount(io::FileSystem& files, const TreeTarget& target) {
  auto outside = files.stat(target.parent);
  if (!outside.ok()) return outside.status().with_context(target.path);
  auto inside = files.stat_at(target.parent, target.name);
  if (!inside.ok()) return inside.status().with_context(target.path);
  if (inside->mount == outside->mount) return Status();
  return cannot_switch(target.path,
                       "it is a mount point, which cannot be renamed; a directory below it can be "
                       "the target, or a symlink to one, or it can be replicated into without "
                       "--publish=tree");
}

}  // namespace

unsigned TreeTarget::number() const {
  const std::size_t mark = name.rfind(kNumberMark);
  if (mark == std::string::npos || mark == 0 || name.size() - mark - 1 > kDigitsMax) return 1;
  unsigned number = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + mark + 1, end, number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == end;
  return whole && number >= 2 ? number : 1;
}

std::string TreeTarget::stem() const {
  return number() == 1 ? name : name.substr(0, name.rfind(kNumberMark));
}

std::string TreeTarget::workshop_name() const {
  return "." + (kind == Kind::kSymlink ? stem() : name) + ".fgsync-tree";
}

std::string TreeTarget::numbered(unsigned number) const {
  return stem() + kNumberMark + std::to_string(number);
}

std::string TreeTarget::link_text_for(io::FileSystem& files, const std::string& new_name) const {
  std::string absolute = parent_of(path) + "/" + new_name;
  const bool is_absolute = link_text.starts_with('/');
  const std::string above = parent_of(link_text);
  auto led_to = files.stat_path(is_absolute ? above : parent_of(link_path) + "/" + above,
                                /*follow=*/true);
  auto held = files.stat(parent);
  if (!led_to.ok() || !held.ok() || last_component(link_text) != name ||
      led_to->inode != held->inode || led_to->device != held->device) {
    return absolute;
  }
  const bool is_bare = link_text.find('/') == std::string::npos;
  return is_bare ? new_name : above + "/" + new_name;
}

Result<TreeTarget> find_tree_target(io::FileSystem& files, const std::string& typed) {
  auto path = with_a_name(files, typed);
  if (!path.ok()) return path.status().with_context(typed);
  TreeTarget target;
  target.path = *path;
  auto status = files.stat_path(*path, /*follow=*/false);
  if (status.status().code() == ErrorCode::kNotFound) {
    FGSYNC_RETURN_IF_ERROR(open_parent(files, *path, target.parent, target.name));
    return target;
  }
  if (!status.ok()) return status.status().with_context(*path);
  target.kind = TreeTarget::Kind::kDirectory;
  if (status->type == io::FileType::kSymlink) {
    target.kind = TreeTarget::Kind::kSymlink;
    FGSYNC_RETURN_IF_ERROR(open_parent(files, *path, target.link_parent, target.link_name));
    auto text = files.read_link(target.link_parent, target.link_name);
    if (!text.ok()) return text.status().with_context(*path);
    target.link_text = *text;
    target.link_path = *path;
  }
  auto real = files.resolve_path(*path);
  if (!real.ok()) return real.status().with_context(*path);
  target.path = *real;
  FGSYNC_RETURN_IF_ERROR(open_parent(files, *real, target.parent, target.name));
  FGSYNC_RETURN_IF_ERROR(check_mount(files, target));
  return target;
}

}  // namespace fgsync::transfer
