#include "receipt/receipt_rewrite.h"

#include <optional>
#include <utility>

#include "receipt/receipt_appender.h"
#include "receipt/receipt_index.h"
#include "receipt/tree_lookup.h"

namespace fgsync::receipt {
namespace {

// 16 MiB: a receiver's memory, its buffers included, stays under 256 MiB.
constexpr std::size_t kSlots = std::size_t{1} << 20;

Result<std::optional<io::FileStatus>> present(TreeLookup& tree, const std::string& path) {
  Result<io::FileStatus> status = tree.stat(path);
  if (status.ok()) return std::optional(*status);
  if (status.status().code() == ErrorCode::kNotFound) return std::optional<io::FileStatus>();
  return status.status();
}

// The record of this path that counts, if any does.
Result<std::optional<FileRecord>> choose(const ReceiptIndex& index, TreeLookup& tree,
                                         const std::string& path) {
  auto status = present(tree, path);
  if (!status.ok()) return status.status();
  Result<Finding> finding = index.find(path, *status);
  if (!finding.ok()) return finding.status();
  if (finding->matching) return std::move(finding->matching);
  return std::move(finding->expected);
}

// Keeps what counts of one record after the other.
class Rewriting {
 public:
  Rewriting(const ReceiptIndex& index, TreeLookup tree, ReceiptAppender& out)
      : index_(index), tree_(std::move(tree)), out_(out) {}

  void take(const PlacedRecord& placed) {
    const std::string* const path = path_of(placed.record);
    if (!status_.ok() || path == nullptr) return;
    const std::uint64_t hash = path_hash(*path);
    if (!index_.is_of_part(hash)) return;
    // With the first of a path's records, all are looked at; with those that are out of date, none.
    const std::vector<std::uint64_t> offsets = index_.offsets_of(hash);
    if (offsets.empty() || offsets.front() != placed.offset) return;
    if (offsets.size() == 1 && index_.is_sure(placed.offset)) {
      if (std::holds_alternative<FileRecord>(placed.record)) keep(placed.record);
      return;
    }
    auto chosen = choose(index_, tree_, *path);
    if (!chosen.ok()) {
      status_ = chosen.status();
    } else if (*chosen) {
      keep(**chosen);
    }
  }
  const Status& status() const { return status_; }
  std::uint64_t kept() const { return kept_; }

 private:
  void keep(const Record& record) {
    status_ = out_.add(record);
    ++kept_;
  }
  const ReceiptIndex& index_;
  TreeLookup tree_;
  ReceiptAppender& out_;
  Status status_;
  std::uint64_t kept_ = 0;
};

}  // namespace

Result<LogSummary> rewrite(io::FileSystem& files, const ReceiptReader& old,
                           const LogSummary& summary, std::uint64_t trusted_end,
                           const io::FileHandle& root, const io::FileHandle& out,
                           const Header& header) {
  FGSYNC_RETURN_IF_ERROR(files.write(out, encode(header), 0));
  ReceiptAppender appender(files, out, header, kHeaderBytes);
  ReceiptIndex index(old, summary, kSlots);
  LogSummary written;
  for (std::uint64_t part = 0; part < index.parts(); ++part) {
    FGSYNC_RETURN_IF_ERROR(index.load(part, trusted_end));
    Rewriting rewriting(index, TreeLookup(files, root), appender);
    FGSYNC_RETURN_IF_ERROR(
        old.for_each([&](const PlacedRecord& placed) { rewriting.take(placed); }));
    FGSYNC_RETURN_IF_ERROR(rewriting.status());
    written.records += rewriting.kept();
  }
  written.live = written.records;
  FGSYNC_RETURN_IF_ERROR(appender.add(SettledRecord{written.records, written.live}));
  FGSYNC_RETURN_IF_ERROR(appender.flush());
  written.end = written.settled_end = appender.end();
  return written;
}

}  // namespace fgsync::receipt
