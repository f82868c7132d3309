#include "journal/resume_state.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fgsync::journal {
namespace {

Status misplaced(const char* what) { return Status(ErrorCode::kIoError, what); }

}  // namespace

Status ResumeState::apply(Record record) {
  if (auto* begun = std::get_if<Begin>(&record)) return begin(std::move(*begun));
  if (auto* chunks = std::get_if<Chunks>(&record)) return add(std::move(*chunks));
  forget(std::get<Done>(record).number);
  return Status();
}

Status ResumeState::begin(Begin begin) {
  if (begin.number == std::numeric_limits<std::uint64_t>::max()) {
    return misplaced("a record's number is out of bounds");
  }
  forget(begin.number);
  if (by_number_.size() >= kPartialFilesMax) return misplaced("too many files under way");
  // One name has one partial file: the one before was given up without a word.
  if (const auto older = by_path_.find(begin.path); older != by_path_.end()) {
    forget(std::uint64_t(older->second));
  }
  next_number_ = std::max(next_number_, begin.number + 1);
  by_path_.emplace(begin.path, begin.number);
  by_number_.emplace(begin.number,
                     Entry{std::move(begin.path), PartialFile{.number = begin.number,
                                                              .version = begin.version,
                                                              .host = begin.host,
                                                              .staged_inode = begin.staged_inode,
                                                              .held = {},
                                                              .checksums = {}}});
  return Status();
}

Status ResumeState::add(Chunks chunks) {
  const auto found = by_number_.find(chunks.number);
  if (found == by_number_.end()) return misplaced("chunks of a file that has not begun");
  PartialFile& file = found->second.file;
  const std::uint64_t end = chunks.first + chunks.checksums.size();
  if (end > file.version.chunks()) return misplaced("a chunk behind the end of its file");
  if (end > file.held.size()) {
    const std::uint64_t more = end - file.held.size();
    if (more > kPartialChunksMax - chunks_) return misplaced("too many chunks");
    chunks_ += more;
    file.held.resize(end);
    file.checksums.resize(end);
  }
  for (std::size_t i = 0; i < chunks.checksums.size(); ++i) {
    file.held[chunks.first + i] = true;
    file.checksums[chunks.first + i] = chunks.checksums[i];
  }
  return Status();
}

void ResumeState::forget(std::uint64_t number) {
  const auto node = by_number_.extract(number);
  if (node.empty()) return;
  chunks_ -= node.mapped().file.held.size();
  by_path_.erase(node.mapped().path);
}

std::optional<PartialFile> ResumeState::take(const std::string& path) {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return std::nullopt;
  const auto node = by_number_.find(found->second);
  PartialFile file = std::move(node->second.file);
  chunks_ -= file.held.size();
  by_number_.erase(node);
  by_path_.erase(found);
  return file;
}

}  // namespace fgsync::journal
