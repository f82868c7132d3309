#include "transfer/manifest_sender.h"

#include "base/limits.h"
#include "base/mark.h"
#include "storage/tree_walker.h"

namespace fgsync::transfer {
namespace {

// Directories held open while walking and opening files: enough for a deep branch and its
// neighbours.
constexpr std::size_t kOpenDirectoriesMax = 12;

wire::ManifestEntry make_entry(std::uint64_t id, std::uint64_t parent, std::string name,
                               const io::FileStatus& status) {
  wire::ManifestEntry entry;
  entry.id = id;
  entry.parent = parent;
  entry.type = status.type == io::FileType::kDirectory ? wire::EntryType::kDirectory
               : status.type == io::FileType::kSymlink ? wire::EntryType::kSymlink
                                                       : wire::EntryType::kRegular;
  entry.mode = status.mode;
  entry.uid = status.uid;
  entry.gid = status.gid;
  entry.mtime_seconds = status.mtime.seconds;
  entry.mtime_nanoseconds = status.mtime.nanoseconds;
  entry.size = entry.type == wire::EntryType::kRegular ? status.size : 0;
  entry.ctime_seconds = status.ctime.seconds;
  entry.ctime_nanoseconds = status.ctime.nanoseconds;
  entry.inode = status.inode;
  entry.name = std::move(name);
  return entry;
}

const char* special_name(io::FileType type) {
  switch (type) {
    case io::FileType::kFifo:
      return "FIFO";
    case io::FileType::kSocket:
      return "socket";
    case io::FileType::kBlockDevice:
    case io::FileType::kCharacterDevice:
      return "device";
    default:
      return "file of an unknown type";
  }
}

bool is_replicated_type(io::FileType type) {
  return type == io::FileType::kRegular || type == io::FileType::kDirectory ||
         type == io::FileType::kSymlink;
}

// Odd file systems have longer names, or symlinks to nothing; a receiver would refuse them as
// damage.
bool fits_the_manifest(const storage::WalkedEntry& found) {
  if (!wire::is_valid_name(found.name)) return false;
  if (found.status.type != io::FileType::kSymlink) return true;
  return !found.symlink_target.empty() &&
         found.symlink_target.size() <= limits::kSymlinkTargetBytesMax;
}

}  // namespace

io::Task<void> ManifestSender::run(const std::vector<ResolvedSource>& sources,
                                   const wire::TargetAccept& accept) {
  for (std::size_t i = 0; i < sources.size() && !session_.failed(); ++i) {
    const wire::SourceDescription& description = sources[i].description;
    const std::string name = name_for_rules(description, accept.replica_of_contents);
    if (!name.empty() && rules_.leave_out(name, description.is_directory)) continue;
    SourceTree* const tree = place_source(sources[i], accept.names[i], accept.replica_of_contents);
    if (tree == nullptr) continue;
    announce_source(sources[i], *tree, accept.names[i], accept.replica_of_contents);
    if (description.is_directory) co_await walk(tree, scope_of(sources[i], name));
  }
  send_batch();
  session_.push(wire::ManifestEnd{.entries = entries_, .incomplete = incomplete_});
}

// Under which the paths of a source begin; empty where its contents do without.
std::string ManifestSender::name_for_rules(const wire::SourceDescription& source,
                                           bool as_root) const {
  const bool contents_alone =
      source.contents_only || !session_.parameters.selection.rules_see_source_name;
  return as_root && contents_alone ? "" : source.base_name;
}

// The tree that a source belongs to: a directory's own; files of one directory share its.
SourceTree* ManifestSender::place_source(const ResolvedSource& source, const std::string& name,
                                         bool as_root) {
  const wire::SourceDescription& description = source.description;
  const std::string display =
      description.is_directory ? description.display : parent_of(description.display);
  if (!description.is_directory) {
    const auto known = trees_of_files_.find(display);
    if (known != trees_of_files_.end()) return known->second;
  }
  Result<io::FileHandle> root = session_.files().open_path(display);
  if (!root.ok()) {
    session_.errors().add(display, root.status());
    incomplete_ = true;
    return nullptr;
  }
  auto tree = std::make_unique<SourceTree>();
  tree->display = display;
  if (description.is_directory && !as_root) tree->prefix = name;
  tree->directories = std::make_unique<storage::DirectoryTree>(session_.files(), std::move(*root),
                                                               kOpenDirectoriesMax);
  if (!description.is_directory) trees_of_files_.emplace(display, tree.get());
  trees_.push_back(std::move(tree));
  return trees_.back().get();
}

void ManifestSender::announce_source(const ResolvedSource& source, SourceTree& tree,
                                     const std::string& name, bool as_root) {
  const wire::SourceDescription& description = source.description;
  const std::uint64_t id = as_root ? 0 : next_id_++;
  if (description.is_directory) tree.root_entry = id;
  announce(
      OutgoingEntry{.entry = make_entry(id, 0, name, source.status),
                    .tree = &tree,
                    .directory = 0,
                    .name = description.is_directory ? "" : last_component(description.display),
                    .file = nullptr});
}

storage::WalkScope ManifestSender::scope_of(const ResolvedSource& source,
                                            std::string rules_prefix) {
  const Selection& selection = session_.parameters.selection;
  storage::WalkScope scope;
  if (!rules_.empty()) scope.rules = &rules_;
  if (selection.lists_paths) {
    listed_.leave_out(rules_, rules_prefix);
    scope.listed = &listed_;
    scope.listed_directories_whole = selection.lists_whole_directories;
  }
  scope.through_links = selection.copy_links;
  if (selection.one_file_system) scope.device = source.status.device;
  scope.prefix = std::move(rules_prefix);
  return scope;
}

io::Task<void> ManifestSender::walk(SourceTree* tree, storage::WalkScope scope) {
  io::Io& io = session_.control_io();
  storage::TreeWalker walker(session_.files(), *tree->directories, next_id_, std::move(scope));
  walker.add_directory(0);
  for (bool more = true; more && !session_.failed();) {
    co_await window_.wait_open(io);
    std::vector<storage::WalkedEntry> walked;
    std::vector<storage::WalkError> errors;
    co_await io::run_blocking(
        io, [&] { more = walker.next(limits::kManifestBatchEntries, walked, errors); });
    session_.add_progress(walked.size() + errors.size());
    announce_walked(*tree, std::move(walked), std::move(errors));
    // What has been found so far goes now: the receiver plans while the next directory is read.
    send_batch();
  }
  next_id_ = walker.take_id();
}

void ManifestSender::announce_walked(const SourceTree& tree,
                                     std::vector<storage::WalkedEntry> walked,
                                     std::vector<storage::WalkError> errors) {
  for (storage::WalkedEntry& found : walked) {
    if (!is_replicated_type(found.status.type)) {
      mark("manifest_special_file");
      session_.errors().add(
          tree.display_path(found.parent, found.name),
          Status(ErrorCode::kUnsupported, std::string("replicating: a ") +
                                              special_name(found.status.type) +
                                              " is not replicated by this version"));
      continue;
    }
    if (!fits_the_manifest(found)) {
      session_.errors().add(tree.display_path(found.parent, found.name),
                            Status(ErrorCode::kUnsupported,
                                   "replicating: its name or symlink target is not possible on a "
                                   "target"));
      continue;
    }
    const std::uint64_t parent = found.parent == 0 ? tree.root_entry : found.parent;
    OutgoingEntry entry{.entry = make_entry(found.id, parent, found.name, found.status),
                        .tree = &tree,
                        .directory = found.parent,
                        .name = found.name,
                        .file = nullptr};
    entry.entry.symlink_target = std::move(found.symlink_target);
    announce(std::move(entry));
  }
  for (const storage::WalkError& error : errors) {
    const std::string path =
        tree.display == "/" ? "/" + error.path : tree.display + "/" + error.path;
    const bool vanished = error.status.code() == ErrorCode::kNotFound && !error.listed;
    session_.errors().add(
        path, vanished ? Status(ErrorCode::kSourceChanged, "looking at it: it has vanished")
                       : error.status);
    // What could not be looked at is there all the same.
    incomplete_ |= error.directory || !vanished;
  }
}

void ManifestSender::announce(OutgoingEntry entry) {
  ++entries_;
  if (entry.entry.type == wire::EntryType::kRegular) {
    files_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(entry.entry.size, std::memory_order_relaxed);
  }
  entry.in_window = entry.entry.type != wire::EntryType::kRegular ||
                    !markers_.contains(entry.entry, [&] { return entry.target_path(); });
  if (entry.in_window) window_.add(1);
  batch_bytes_ += entry.entry.name.size() + entry.entry.symlink_target.size() + 64;
  batch_.entries.push_back(entry.entry);
  outgoing_.add(std::move(entry));
  if (batch_.entries.size() >= limits::kManifestBatchEntries ||
      batch_bytes_ >= limits::kManifestBatchBytes) {
    send_batch();
  }
}

void ManifestSender::send_batch() {
  if (batch_.entries.empty()) return;
  session_.push(std::exchange(batch_, {}));
  batch_bytes_ = 0;
}

}  // namespace fgsync::transfer
