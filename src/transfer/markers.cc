#include "transfer/markers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace fgsync::transfer {
namespace {

// What trainers write last and loaders read first: torch.distributed.checkpoint and the index of
// sharded safetensors and PyTorch files; DeepSpeed, Megatron-LM, Spark, and plain habit.
constexpr std::string_view kIndexName = ".metadata";
constexpr std::string_view kIndexEnding = ".index.json";
constexpr std::array<std::string_view, 5> kNames = {
    "latest", "latest.txt", "latest_checkpointed_iteration.txt", "_SUCCESS", "DONE"};
constexpr std::string_view kPointerBeginning = "latest";

bool is_index(const wire::ManifestEntry& entry) {
  return entry.name == kIndexName || entry.name.ends_with(kIndexEnding);
}

}  // namespace

Markers::Markers(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    selection::PathPattern read(pattern);
    (read.is_about_name() ? names_ : paths_).push_back(std::move(read));
  }
}

bool Markers::is_known(const wire::ManifestEntry& entry) {
  if (entry.type == wire::EntryType::kSymlink && entry.parent == 0) return true;
  return is_index(entry) || std::find(kNames.begin(), kNames.end(), entry.name) != kNames.end();
}

bool Markers::is_named(const std::string& name) const {
  return std::any_of(names_.begin(), names_.end(), [&](const selection::PathPattern& pattern) {
    return pattern.matches(name, /*is_directory=*/false);
  });
}

bool Markers::is_at(const std::string& path) const {
  return std::any_of(paths_.begin(), paths_.end(), [&](const selection::PathPattern& pattern) {
    return pattern.matches(path, /*is_directory=*/false);
  });
}

MarkerRank rank_of(const wire::ManifestEntry& entry, const std::string& path) {
  const auto depth = std::size_t(std::count(path.begin(), path.end(), '/'));
  return {.is_pointer =
              entry.type == wire::EntryType::kSymlink || entry.name.starts_with(kPointerBeginning),
          .height = std::numeric_limits<std::size_t>::max() - depth,
          .says_done = !is_index(entry)};
}

}  // namespace fgsync::transfer
