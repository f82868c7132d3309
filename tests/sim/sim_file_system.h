// The file half of the I/O seam over a simulated disk, as one process sees it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "host.h"
#include "io/file_system.h"

namespace fgsync::sim {

class SimFileSystem final : public io::FileSystem {
 public:
  explicit SimFileSystem(Process& process);
  ~SimFileSystem() override;

  Result<io::FileHandle> open_path(const std::string& path) override;
  Result<io::FileStatus> stat_path(const std::string& path, bool follow) override;
  Status make_directory_path(const std::string& path, std::uint32_t mode) override;
  Result<std::string> resolve_path(const std::string& path) override;

  Result<io::FileHandle> open_directory(const io::FileHandle& base,
                                        const std::string& name) override;
  Result<io::FileHandle> open_file(const io::FileHandle& base, const std::string& name,
                                   io::OpenMode mode) override;
  Result<std::unique_ptr<io::DirectoryReader>> list(const io::FileHandle& directory) override;
  Result<io::FileStatus> stat(const io::FileHandle& file) override;
  Result<io::FileStatus> stat_at(const io::FileHandle& base, const std::string& name) override;
  Result<std::string> read_link(const io::FileHandle& base, const std::string& name) override;

  std::int64_t read_some(const io::FileHandle& file, std::span<std::byte> bytes,
                         std::uint64_t offset) override;
  std::int64_t write_some(const io::FileHandle& file, std::span<const std::byte> bytes,
                          std::uint64_t offset) override;
  Status truncate(const io::FileHandle& file, std::uint64_t size) override;
  Status allocate(const io::FileHandle& file, std::uint64_t size) override;
  Status sync_data(const io::FileHandle& file) override;
  Status sync(const io::FileHandle& file_or_directory) override;
  Status sync_file_system(const io::FileHandle& any) override;
  Status drop_cached(const io::FileHandle& file) override;
  Result<io::FileSystemSpace> space(const io::FileHandle& any) override;
  bool is_in_memory(const io::FileHandle& file) override;

  Status make_directory(const io::FileHandle& base, const std::string& name,
                        std::uint32_t mode) override;
  Status make_symlink(const io::FileHandle& base, const std::string& name,
                      const std::string& target) override;
  Status rename(const io::FileHandle& from_base, const std::string& from,
                const io::FileHandle& to_base, const std::string& to) override;
  Status exchange(const io::FileHandle& base, const std::string& name,
                  const io::FileHandle& other_base, const std::string& other) override;
  Status make_special(const io::FileHandle& base, const std::string& name, io::FileType type,
                      std::uint32_t mode) override;
  Status link(const io::FileHandle& from_base, const std::string& from,
              const io::FileHandle& to_base, const std::string& to) override;
  Status unlink(const io::FileHandle& base, const std::string& name) override;
  Status remove_directory(const io::FileHandle& base, const std::string& name) override;

  bool may_set_owner() override { return true; }
  Status set_mode(const io::FileHandle& file, std::uint32_t mode) override;
  Status set_owner(const io::FileHandle& file, std::uint32_t uid, std::uint32_t gid) override;
  Status set_mtime(const io::FileHandle& file, io::FileTime mtime) override;
  Status set_mode_at(const io::FileHandle& base, const std::string& name,
                     std::uint32_t mode) override;
  Status set_owner_at(const io::FileHandle& base, const std::string& name, std::uint32_t uid,
                      std::uint32_t gid) override;
  Status set_mtime_at(const io::FileHandle& base, const std::string& name,
                      io::FileTime mtime) override;

  Result<bool> try_lock(const io::FileHandle& directory) override;
  std::string lock_holder(const io::FileHandle&) override { return ""; }
  void close(int descriptor) override;

  // For the operations of an engine; a negated errno or a count.
  std::int64_t read_at(int descriptor, std::span<std::byte> bytes, std::uint64_t offset);
  std::int64_t write_at(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset);

  std::size_t open_count() const { return open_.size(); }
  // Of a process that has died: its locks are free.
  void drop_locks();

 private:
  struct Open {
    std::uint64_t inode;
    bool direct;
    bool writable;
  };
  // What comes before every call: what others do meanwhile, then the faults that are due. Not 0:
  // the call fails with it and has had no effect.
  int enter(FileCall call);
  // How much one call reads or writes of so many bytes.
  std::size_t taken(const Open& open, std::size_t bytes);
  int strike(const DiskFault& fault);
  void check_aligned(const Open& open, std::span<const std::byte> bytes, std::uint64_t offset);
  Node* node_of(const io::FileHandle& file) { return node_of(file.descriptor()); }
  Node* node_of(int descriptor);
  // The node under a name that the call may act upon, or the errno.
  Node* named(const io::FileHandle& base, const std::string& name, int& error);
  Result<Node*> walk(const std::string& path, bool follow, int depth = 0);
  io::FileHandle open_node(const Node& node, bool direct, bool writable);
  io::FileStatus status_of(const Node& node, bool opened) const;
  int make_node(const io::FileHandle& base, const std::string& name, FileCall call,
                io::FileType type, std::uint32_t mode, Node** made);
  template <typename Sync>
  Status sync_node(const io::FileHandle& file, Sync sync);
  template <typename Change>
  Status change_attributes(Node* node, const char* doing, Change change);
  void changed(const Node& node);

  Process& process_;
  std::map<std::uint64_t, std::uint64_t>
      told_;  // failed syncs of mounts that this process knows of
  std::map<int, Open> open_;
};

}  // namespace fgsync::sim
