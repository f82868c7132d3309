// What interrupted runs leave at the target: whether their journals tell the truth, how much they
// save the next run, and what may become of them meanwhile.
#include <algorithm>

#include "journal/journal_reader.h"
#include "scenario_ends.h"
#include "storage/tree_walker.h"

namespace fgsync::sim {
namespace {

constexpr const char* kStagingPrefix = "staging-";

// A staging directory's journal, read without the code that is tested but its codec.
struct FoundJournal {
  std::vector<std::pair<std::string, journal::PartialFile>> files;  // by path below the root
};

FoundJournal read_journal(const Bytes& bytes) {
  FoundJournal found;
  if (bytes.size() < journal::kHeaderBytes) return found;
  const auto header = journal::decode_header(std::span(bytes).first(journal::kHeaderBytes));
  if (!header.ok()) return found;
  journal::ResumeState state;
  std::vector<std::string> paths;
  for (std::size_t at = journal::kHeaderBytes; at + journal::kRecordLengthBytes <= bytes.size();) {
    const auto rest = std::span(bytes).subspan(at);
    const std::size_t length = journal::record_body_bytes(rest) + journal::kRecordFixedBytes;
    if (length > rest.size()) break;
    auto record = journal::decode_record(rest.first(length), *header, at);
    if (!record.ok()) break;
    if (const auto* begin = std::get_if<journal::Begin>(&*record)) paths.push_back(begin->path);
    if (!state.apply(std::move(*record)).ok()) break;
    at += length;
  }
  for (const std::string& path : paths) {
    if (auto file = state.take(path)) found.files.emplace_back(path, std::move(*file));
  }
  return found;
}

const Node* child(const Disk& disk, const Node& directory, const std::string& name) {
  const auto entry = directory.entries.find(name);
  return entry == directory.entries.end() ? nullptr : disk.find(entry->second);
}

// Bytes of the chunks that are claimed, if all of them are there; nullopt if one is not.
std::optional<std::uint64_t> true_claims(const journal::PartialFile& file, const Node* staged) {
  std::uint64_t bytes = 0;
  for (std::uint64_t chunk = 0; chunk < file.held.size(); ++chunk) {
    if (!file.held[chunk]) continue;
    if (staged == nullptr || staged->data == nullptr) return std::nullopt;
    const std::uint64_t offset = chunk * file.version.chunk_bytes;
    const std::uint64_t length =
        std::min<std::uint64_t>(file.version.chunk_bytes, file.version.size - offset);
    if (staged->data->size() < offset + length) return std::nullopt;
    const auto data = std::span<const std::byte>(*staged->data).subspan(offset, length);
    if (wire::checksum_of(data) != file.checksums[chunk]) return std::nullopt;
    bytes += length;
  }
  return bytes;
}

}  // namespace

std::vector<const Node*> Scenario::stagings(const Disk& disk, const std::string& root) const {
  std::vector<const Node*> found;
  const Node* const top = disk.find_path(root);
  const Node* const state =
      top == nullptr ? nullptr : child(disk, *top, storage::kStateDirectoryName);
  if (state == nullptr) return found;
  for (const auto& [name, inode] : state->entries) {
    const Node* const staging = disk.find(inode);
    if (name.starts_with(kStagingPrefix) && staging->type == io::FileType::kDirectory) {
      found.push_back(staging);
    }
  }
  return found;
}

// Also those in a new tree that is still being made.
std::vector<const Node*> Scenario::all_stagings(const Disk& disk) const {
  std::vector<const Node*> found = stagings(disk, kTargetRoot);
  const std::vector<const Node*> beside = stagings(disk, TreeWatch::new_tree_of(kTargetRoot));
  found.insert(found.end(), beside.begin(), beside.end());
  return found;
}

// A journal never claims what is not on the disk. A staged file whose name is gone claims nothing:
// it has been published, or is given up by who reads the journal.
void Scenario::check_journals(const Disk& disk, const char* when) {
  // Disks that lose what they say is written are only there where everything is read back.
  if (state_damaged_ || plan_.read_back) return;
  for (const Node* const staging : all_stagings(disk)) {
    const Node* const node = child(disk, *staging, journal::kJournalName);
    if (node == nullptr || node->data == nullptr) continue;
    for (const auto& [path, file] : read_journal(*node->data).files) {
      const Node* const staged = child(disk, *staging, std::to_string(file.number));
      if (staged == nullptr || true_claims(file, staged)) continue;
      world_.violate(std::string(when) + ": the journal claims what is not there of " + path);
    }
  }
}

// Bytes that need not be sent again. Where several runs have left something only one is gone on
// with.
std::uint64_t Scenario::held_bytes() const {
  const std::vector<const Node*> found = stagings(target_.disk, kTargetRoot);
  if (found.size() != 1 || state_damaged_ || !target_.has_locks) return 0;
  const Node* const node = child(target_.disk, *found.front(), journal::kJournalName);
  if (node == nullptr || node->data == nullptr) return 0;
  std::uint64_t bytes = 0;
  for (const auto& [path, file] : read_journal(*node->data).files) {
    const Node* const source = source_.disk.find_path(kSourceRoot + ("/" + path));
    const Node* const there = target_.disk.find_path(kTargetRoot + ("/" + path));
    const Node* const staged = child(target_.disk, *found.front(), std::to_string(file.number));
    if (source == nullptr || source->data == nullptr || staged == nullptr) continue;
    const journal::FileVersion version{.size = source->data->size(),
                                       .mtime = source->attributes.mtime,
                                       .ctime = source->ctime,
                                       .inode = source->inode,
                                       .chunk_bytes = plan_.chunk_bytes};
    if (file.version != version) continue;
    const bool is_there = there != nullptr && there->data != nullptr &&
                          there->data->size() == version.size &&
                          there->attributes.mtime == version.mtime;
    if (!is_there) bytes += true_claims(file, staged).value_or(0);
  }
  return bytes;
}

// There must be something first.
void Scenario::interrupt_after(io::Duration time) {
  const int run = runs_;
  world_.after(time, [this, run] {
    if (run == runs_ && under_way_ != nullptr && !last_) cancel_run();
  });
}

// Somebody, or a disk, gets at the state while no run is there.
void Scenario::plan_damage() {
  Random& random = world_.random();
  const std::uint64_t choice = random.below(7);
  const std::uint64_t at = random.next();
  const io::Duration later(std::int64_t(random.skewed(3'000'000'000)));
  const std::vector<const Node*> found = all_stagings(target_.disk);
  const bool in_use = std::ranges::any_of(ends_, [](const auto& e) { return e->is_receiving(); });
  if (is_left_out() || in_use) return;
  if (found.empty()) return interrupt_after(later);
  Disk& disk = target_.disk;
  Node& staging = *disk.find(found[at % found.size()]->inode);
  const Node* const named = child(disk, staging, journal::kJournalName);
  if (named == nullptr || named->data == nullptr || named->data->empty()) return;
  Node& journal_node = *disk.find(named->inode);
  state_damaged_ = true;
  world_.trace("state is damaged", choice, journal_node.inode);
  const io::FileTime now = target_.wall_time();
  Bytes bytes = *journal_node.data;
  switch (choice) {
    case 0:
      bytes[at % bytes.size()] ^= std::byte{0x08};
      break;
    case 1:
      bytes.resize(at % bytes.size());
      break;
    case 2:
      std::fill(bytes.begin() + std::ptrdiff_t(at % bytes.size()), bytes.end(), std::byte{0});
      break;
    case 3:
    case 4: {
      // Another transfer's, of today or of long ago.
      auto header = journal::decode_header(std::span(bytes).first(journal::kHeaderBytes));
      if (!header.ok()) return;
      header->transfer.bytes[0] ^= std::byte{1};
      std::ranges::copy(journal::encode(*header), bytes.begin());
      break;
    }
    default:
      return damage_staged(staging, at);
  }
  disk.replace(journal_node, bytes, now);
  if (choice == 4) journal_node.attributes.mtime.seconds -= 8 * 86'400;
  disk.sync(journal_node);
}

// Other bytes in a staged file, from later than the journal; or less of it, or nothing.
void Scenario::damage_staged(Node& staging, std::uint64_t at) {
  Disk& disk = target_.disk;
  for (const auto& [name, inode] : staging.entries) {
    Node& staged = *disk.find(inode);
    if (name == journal::kJournalName || staged.data == nullptr || staged.data->empty()) continue;
    io::FileTime later = target_.wall_time();
    later.seconds += 3600;
    switch (at % 4) {
      case 0: {
        const std::string gone = name;
        disk.remove(staging, gone, later);
        return disk.sync(staging);
      }
      case 1:
        disk.truncate(staged, staged.data->size() / 2, later);
        break;
      default:
        disk.write(staged, world_.random().bytes(1 + at % 1000),
                   (at / 1000) % staged.data->size() / 2, later);
        staged.attributes.mtime = later;
    }
    return disk.sync(staged);
  }
}

// In place, at the same size, with the old mtime put back: nothing but the ctime tells. Only of
// what is not at the target yet, where size and time would say that nothing is to be done.
void Scenario::rewrite_unseen() {
  Random& random = world_.random();
  const std::uint64_t choice = random.next();
  const io::Duration later(std::int64_t(random.skewed(3'000'000'000)));
  const std::vector<const Node*> found_stagings = all_stagings(target_.disk);
  if (is_left_out()) return;
  if (found_stagings.empty()) return interrupt_after(later);
  for (const Node* const staging : found_stagings) {
    const Node* const node = child(target_.disk, *staging, journal::kJournalName);
    if (node == nullptr || node->data == nullptr) continue;
    for (const auto& [path, file] : read_journal(*node->data).files) {
      const Node* const found = source_.disk.find_path(kSourceRoot + ("/" + path));
      if (found == nullptr || found->data == nullptr || found->data->empty()) continue;
      const auto is_there = [&](const std::string& root) {
        const Node* const there = target_.disk.find_path(root + "/" + path);
        return there != nullptr && there->attributes.mtime == found->attributes.mtime;
      };
      if (is_there(kTargetRoot) || is_there(TreeWatch::new_tree_of(kTargetRoot))) continue;
      Node& source = *source_.disk.find(found->inode);
      const io::FileTime mtime = source.attributes.mtime;
      source_.disk.write(source, random.bytes(1), choice % source.data->size(),
                         source_.wall_time());
      source.attributes.mtime = mtime;
      source_.disk.sync(source);
      world_.trace("rewritten unseen", source.inode, 0, path);
      ledger_.source_changed(path, &source, world_.now());
      return;
    }
  }
}

}  // namespace fgsync::sim
