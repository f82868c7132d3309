#include "io/posix_file_status.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/limits.h"
#include "io/posix_open.h"

namespace fgsync::io {
namespace {

FileType type_of_mode(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileType::kRegular;
    case S_IFDIR:
      return FileType::kDirectory;
    case S_IFLNK:
      return FileType::kSymlink;
    case S_IFIFO:
      return FileType::kFifo;
    case S_IFSOCK:
      return FileType::kSocket;
    case S_IFBLK:
      return FileType::kBlockDevice;
    case S_IFCHR:
      return FileType::kCharacterDevice;
    default:
      return FileType::kUnknown;
  }
}

FileTime time_of(const struct statx_timestamp& timestamp) {
  return {timestamp.tv_sec, timestamp.tv_nsec};
}

FileStatus from_statx(const struct statx& from) {
  FileStatus status;
  status.type = type_of_mode(from.stx_mode);
  status.mode = from.stx_mode & 07777u;
  status.uid = from.stx_uid;
  status.gid = from.stx_gid;
  status.size = from.stx_size;
  status.links = from.stx_nlink;
  status.mtime = time_of(from.stx_mtime);
  status.ctime = time_of(from.stx_ctime);
  status.device = makedev(from.stx_dev_major, from.stx_dev_minor);
  status.inode = from.stx_ino;
  status.mount = status.device;
#ifdef STATX_MNT_ID
  // Mount numbers are small; subvolumes of one mount have device numbers of their own.
  if ((from.stx_mask & STATX_MNT_ID) != 0) status.mount ^= from.stx_mnt_id << 40;
#endif
  return status;
}

constexpr unsigned kWanted = STATX_BASIC_STATS
#ifdef STATX_MNT_ID
                             | STATX_MNT_ID
#endif
    ;

// For kernels and file systems that don't tell: having opened the file with O_DIRECT is the probe,
// and a page satisfies every device whose logical sectors are at most 4096 bytes, which is all that
// such kernels can mount.
std::uint32_t probed_direct_alignment(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_DIRECT) == 0 || lives_in_memory(descriptor)) return 0;
  return static_cast<std::uint32_t>(limits::kSlotAlignment);
}

std::uint32_t direct_alignment_of(const struct statx& from, int descriptor) {
  if ((from.stx_mode & S_IFMT) != S_IFREG) return 0;
#ifdef STATX_DIOALIGN
  if ((from.stx_mask & STATX_DIOALIGN) != 0) {
    if (from.stx_dio_mem_align == 0 || from.stx_dio_offset_align == 0) return 0;
    return std::max(from.stx_dio_mem_align, from.stx_dio_offset_align);
  }
#endif
  return probed_direct_alignment(descriptor);
}

}  // namespace

Result<FileStatus> status_of_descriptor(int descriptor) {
  constexpr unsigned kWantedOfOpen = kWanted
#ifdef STATX_DIOALIGN
                                     | STATX_DIOALIGN
#endif
      ;
  struct statx from;
  if (::statx(descriptor, "", AT_EMPTY_PATH, kWantedOfOpen, &from) != 0) {
    return Status::from_errno(errno, "reading the status");
  }
  FileStatus status = from_statx(from);
  status.direct_alignment = direct_alignment_of(from, descriptor);
  return status;
}

Result<FileStatus> status_of_path(int base_descriptor, const char* path, bool follow) {
  const int flags = AT_NO_AUTOMOUNT | (follow ? 0 : AT_SYMLINK_NOFOLLOW);
  struct statx from;
  if (::statx(base_descriptor, path, flags, kWanted, &from) != 0) {
    return Status::from_errno(errno, "reading the status");
  }
  return from_statx(from);
}

Result<FileSystemSpace> space_of_descriptor(int descriptor) {
  struct statvfs figures;
  if (uninterrupted([&] { return ::fstatvfs(descriptor, &figures); }) != 0) {
    return Status::from_errno(errno, "asking for room");
  }
  const bool is_root = ::geteuid() == 0;
  const std::uint64_t unit = figures.f_frsize != 0 ? figures.f_frsize : figures.f_bsize;
  FileSystemSpace space;
  space.bytes_total = figures.f_blocks * unit;
  space.bytes_available = (is_root ? figures.f_bfree : figures.f_bavail) * unit;
  // Network file systems give what they like to transfer, up to 1 MiB.
  space.block_bytes = std::min<std::uint64_t>(unit, 4096);
  space.inodes_total = figures.f_files;
  space.inodes_available = is_root ? figures.f_ffree : figures.f_favail;
  return space;
}

bool lives_in_memory(int descriptor) {
  struct statfs system;
  if (::fstatfs(descriptor, &system) != 0) return false;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

bool is_shared_between_hosts(int descriptor) {
  constexpr std::uint32_t kLustre = 0x0bd00bd0;  // not in linux/magic.h
  constexpr std::uint32_t kShared[] = {NFS_SUPER_MAGIC,  SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC,
                                       FUSE_SUPER_MAGIC, CEPH_SUPER_MAGIC, V9FS_MAGIC,
                                       kLustre};
  struct statfs system;
  if (::fstatfs(descriptor, &system) != 0) return true;
  return std::find(std::begin(kShared), std::end(kShared), std::uint32_t(system.f_type)) !=
         std::end(kShared);
}

}  // namespace fgsync::io
