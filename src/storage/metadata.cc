#include "storage/metadata.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/mark.h"

namespace fgsync::storage {
namespace {

// The two ways to name what is set: by its handle, and by its name in a directory.
struct OpenTarget {
  io::FileSystem& files;
  const io::FileHandle& file;
  Status set_owner(std::uint32_t uid, std::uint32_t gid) const {
    return files.set_owner(file, uid, gid);
  }
  Status set_mode(std::uint32_t mode) const { return files.set_mode(file, mode); }
  Status set_mtime(io::FileTime mtime) const { return files.set_mtime(file, mtime); }
};

struct NamedTarget {
  io::FileSystem& files;
  const io::FileHandle& directory;
  const std::string& name;
  Status set_owner(std::uint32_t uid, std::uint32_t gid) const {
    return files.set_owner_at(directory, name, uid, gid);
  }
  Status set_mode(std::uint32_t mode) const { return files.set_mode_at(directory, name, mode); }
  Status set_mtime(io::FileTime mtime) const { return files.set_mtime_at(directory, name, mtime); }
};

// A refusal is no reason to lose the file: it is told once, at the end. False then.
Result<bool> set_owner_unless_refused(io::FileSystem& files, const Status& outcome) {
  if (outcome.ok()) return true;
  if (outcome.system_errno() != EPERM && outcome.system_errno() != EINVAL) return outcome;
  mark("owner_refused");
  files.owner_was_refused();
  return false;
}

template <typename Target>
Result<bool> bring_in_line(const Target& target, const io::FileStatus& present,
                           const Metadata& wanted, bool with_mtime) {
  bool changed = false;
  std::uint32_t mode = wanted.mode;
  if (target.files.may_set_owner() && (present.uid != wanted.uid || present.gid != wanted.gid)) {
    Result<bool> set =
        set_owner_unless_refused(target.files, target.set_owner(wanted.uid, wanted.gid));
    if (!set.ok()) return set.status();
    changed = *set;
    // Nothing runs as whoever happens to own the file instead.
    if (!*set) mode &= ~std::uint32_t{S_ISUID | S_ISGID};
  }
  // After a change of owner in any case: chown(2) clears setuid and setgid.
  if (changed || present.mode != mode) {
    FGSYNC_RETURN_IF_ERROR(target.set_mode(mode));
    changed = true;
  }
  if (with_mtime && present.mtime != wanted.mtime) {
    FGSYNC_RETURN_IF_ERROR(target.set_mtime(wanted.mtime));
    changed = true;
  }
  return changed;
}

}  // namespace

Status apply_metadata(io::FileSystem& files, const io::FileHandle& file, const Metadata& metadata) {
  auto present = files.stat(file);
  if (!present.ok()) return present.status();
  return bring_in_line(OpenTarget{files, file}, *present, metadata, true).status();
}

Status apply_symlink_metadata(io::FileSystem& files, const io::FileHandle& directory,
                              const std::string& name, const Metadata& metadata) {
  if (files.may_set_owner()) {
    Result<bool> set = set_owner_unless_refused(
        files, files.set_owner_at(directory, name, metadata.uid, metadata.gid));
    if (!set.ok()) return set.status();
  }
  return files.set_mtime_at(directory, name, metadata.mtime);
}

Result<bool> update_metadata_at(io::FileSystem& files, const io::FileHandle& directory,
                                const std::string& name, const io::FileStatus& present,
                                const Metadata& wanted, bool with_mtime) {
  return bring_in_line(NamedTarget{files, directory, name}, present, wanted, with_mtime);
}

}  // namespace fgsync::storage
