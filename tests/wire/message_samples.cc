#include "wire/message_samples.h"

namespace fgsync::wire {

Checksum sample_checksum() {
  Checksum checksum;
  for (std::size_t i = 0; i < checksum.bytes.size(); ++i) checksum.bytes[i] = std::byte(0xf0 - i);
  return checksum;
}

Hello sample_hello() { return Hello{1, 3, 0x8000000000000001, "fgsync 0.1.0"}; }

Setup sample_setup() {
  Setup setup;
  setup.initiator = Role::kReceiver;
  setup.dry_run = true;
  setup.compare = true;
  setup.make_parents = true;
  setup.has_aes = true;
  setup.read_back = true;
  setup.resume = false;
  setup.fail_if_locked = true;
  setup.publish_tree = true;
  setup.durability = Durability::kFull;
  setup.last = {"*.index", "/latest"};
  setup.selection.rules = {{true, "/keep/***"}, {false, "*.tmp"}};
  setup.selection.rules_see_source_name = true;
  setup.selection.lists_paths = true;
  setup.selection.lists_whole_directories = true;
  setup.selection.copy_links = true;
  setup.selection.one_file_system = true;
  setup.selection.bytes_min = 5;
  setup.selection.bytes_max = std::uint64_t{7} << 40;
  setup.selection.safe_links = true;
  setup.changes = {Comparison::kContents, true, true, true};
  setup.direct_io = DirectIo::kNever;
  setup.cipher = Cipher::kChaCha20Poly1305;
  setup.streams = 64;
  setup.chunk_bytes = 4 << 20;
  setup.timeout_ms = 300'000;
  setup.bandwidth_limit = 125'000'000;
  setup.sources = {"/data/one", "relative/two/", ""};
  return setup;
}

SourceOffer sample_source_offer() {
  SourceDescription tree;
  tree.display = "/data/one";
  tree.base_name = "one";
  tree.is_directory = true;
  tree.contents_only = true;
  DirectoryIdentity identity;
  identity.boot.fill(std::byte{0x5a});
  identity.device = 2049;
  identity.inode = 0x123456789abcdef0;
  DirectoryIdentity root = identity;
  root.inode = 2;
  tree.ancestry = {identity, root};
  SourceDescription file;
  file.display = "/data/two";
  file.base_name = "two";
  return SourceOffer{{tree, file}};
}

TargetAccept sample_target_accept() {
  return TargetAccept{false, {"one", "two"}, {"/target/one", "/target/two"}};
}

ManifestBatch sample_manifest_batch() {
  ManifestEntry root;
  root.type = EntryType::kDirectory;
  root.mode = 0755;
  ManifestEntry file;
  file.id = 7;
  file.type = EntryType::kRegular;
  file.mode = 04751;
  file.uid = 1000;
  file.gid = 0xfffffffe;
  file.mtime_seconds = -5;
  file.mtime_nanoseconds = 999'999'999;
  file.size = 0x7fffffffffffffff;
  file.ctime_seconds = -6;
  file.ctime_nanoseconds = 999'999'998;
  file.inode = 0xfedcba9876543210;
  file.name = "model-00001.safetensors\xff";
  ManifestEntry link;
  link.id = 0xffffffffffffffff;
  link.parent = 7;
  link.type = EntryType::kSymlink;
  link.mode = 0777;
  link.name = "latest";
  link.symlink_target = "../x/y";
  return ManifestBatch{{root, file, link}};
}

Summary sample_summary() {
  Summary summary;
  for (std::size_t i = 0; i < kStageCount; ++i) {
    summary.figures.stages[i] = {double(i + 1) + 0.000001, 1000 + i};
  }
  summary.figures.cpu_seconds = 12.345678;
  summary.figures.cores = 96;
  summary.figures.peak_memory_bytes = std::uint64_t{200} << 20;
  summary.files = {1, 2, 3, 4, 5, 6, 7};
  summary.bytes = {11, 12, 13, 14, 15};
  summary.digest = sample_checksum();
  summary.errors_total = 17;
  return summary;
}

std::vector<Message> sample_messages() {
  const ErrorEntry error{"a/b\xff", ErrorCode::kNoSpace, "writing: No space left on device"};
  return {
      sample_hello(),
      sample_setup(),
      SetupReply{16, Cipher::kAes128Gcm, "uring"},
      sample_source_offer(),
      sample_target_accept(),
      sample_manifest_batch(),
      ManifestEnd{1'000'000, true},
      PlanBatch{{{1, PlanAction::kSend, {EntryDifferences::kAll}}, {2, PlanAction::kCompare}}},
      FileEnd{9, true, sample_checksum()},
      SettledBatch{{{1, true}, {2, false}}},
      sample_summary(),
      ErrorBatch{{error, {"", ErrorCode::kLocked, ""}}},
      NoteBatch{{"owners were not kept", ""}},
      Heartbeat{0x0102030405060708, {1, 0, 0xffffffffffffffff}},
      Abort{error},
      DataEnd{.failed = 3, .changed = 1},
      HeldChunks{9, (std::uint64_t{1} << 24) - 1, {sample_checksum(), Checksum()}},
      StreamEnded{63, 0xfffffffe, 0x1122334455667788},
      DifferenceBatch{{{DifferenceKind::kMissing, "a/\xff", ""},
                       {DifferenceKind::kContents, "", "other bytes"}}},
      ListedPaths{{"a/b/", ""}, true},
  };
}

}  // namespace fgsync::wire
