// Walks the sources and announces their entries, while what was announced before is already being
// sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "selection/filter_rules.h"
#include "selection/listed_paths.h"
#include "storage/tree_walker.h"
#include "transfer/flow_window.h"
#include "transfer/markers.h"
#include "transfer/outgoing_table.h"
#include "transfer/session.h"
#include "transfer/source_mapping.h"

namespace fgsync::transfer {

class ManifestSender {
 public:
  ManifestSender(Session& session, OutgoingTable& outgoing, FlowWindow& window)
      : session_(session),
        outgoing_(outgoing),
        window_(window),
        markers_(session.parameters.last),
        rules_(session.parameters.selection.rules),
        listed_(std::move(session.listed_paths)) {}

  // Announces everything of `sources` under the names that the receiver gave them, then the end of
  // the manifest. On the control worker.
  io::Task<void> run(const std::vector<ResolvedSource>& sources, const wire::TargetAccept& accept);

  // So far; final once run() has returned.
  std::uint64_t files() const { return files_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t entries() const { return entries_; }

 private:
  // The entry of the source itself (a directory's own, or the single file).
  void announce_source(const ResolvedSource& source, SourceTree& tree, const std::string& name,
                       bool as_root);
  SourceTree* place_source(const ResolvedSource& source, const std::string& name, bool as_root);
  std::string name_for_rules(const wire::SourceDescription& source, bool as_root) const;
  io::Task<void> walk(SourceTree* tree, storage::WalkScope scope);
  storage::WalkScope scope_of(const ResolvedSource& source, std::string rules_prefix);
  void announce_walked(const SourceTree& tree, std::vector<storage::WalkedEntry> walked,
                       std::vector<storage::WalkError> errors);
  void announce(OutgoingEntry entry);
  void send_batch();

  Session& session_;
  OutgoingTable& outgoing_;
  FlowWindow& window_;
  const Markers markers_;
  const selection::FilterRules rules_;
  selection::ListedPaths listed_;  // with parameters.selection.lists_paths
  std::vector<std::unique_ptr<SourceTree>> trees_;
  std::map<std::string, SourceTree*> trees_of_files_;  // by directory
  wire::ManifestBatch batch_;
  std::size_t batch_bytes_ = 0;
  std::uint64_t next_id_ = 1;  // 0 is the target's root
  std::uint64_t entries_ = 0;
  bool incomplete_ = false;
  std::atomic<std::uint64_t> files_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace fgsync::transfer
