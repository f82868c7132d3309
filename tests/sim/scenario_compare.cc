// Runs that compare: what they must say, told from the two disks.
#include "scenario_ends.h"
#include "storage/tree_walker.h"

namespace fgsync::sim {
namespace {

using Lines = std::vector<std::string>;

std::string line(DifferenceKind kind, const std::string& path) {
  return std::string(difference_name(kind)) + " " + path;
}

// What is not is an error on its side, and no difference.
bool is_replicated(const Node& node) {
  return node.type == io::FileType::kRegular || node.type == io::FileType::kDirectory ||
         node.type == io::FileType::kSymlink;
}

// Everything was compared but special files.
bool has_compared_all(const TransferReport& report) {
  return report.status.ok() && std::ranges::all_of(report.errors, [](const ErrorEntry& error) {
           return error.code == ErrorCode::kUnsupported;
         });
}

struct Trees {
  const Disk& source;
  const Disk& target;
};

void compare_directories(const Trees& trees, const Node& wanted, const Node& present,
                         const std::string& prefix, Lines& lines);

void compare_nodes(const Trees& trees, const Node& wanted, const Node& present,
                   const std::string& path, Lines& lines) {
  if (wanted.type != present.type) {
    lines.push_back(line(DifferenceKind::kType, path));
  } else if (wanted.type == io::FileType::kDirectory) {
    compare_directories(trees, wanted, present, path + "/", lines);
  } else if (wanted.type == io::FileType::kSymlink) {
    if (wanted.link_target != present.link_target) {
      lines.push_back(line(DifferenceKind::kSymlink, path));
    }
  } else if (wanted.data->size() != present.data->size()) {
    lines.push_back(line(DifferenceKind::kSize, path));
  } else if (!same(*wanted.data, *present.data)) {
    lines.push_back(line(DifferenceKind::kContents, path));
  }
}

void compare_directories(const Trees& trees, const Node& wanted, const Node& present,
                         const std::string& prefix, Lines& lines) {
  std::set<std::string> announced;
  for (const auto& [name, inode] : wanted.entries) {
    const Node& node = *trees.source.find(inode);
    if (name == storage::kStateDirectoryName || !is_replicated(node)) continue;
    announced.insert(name);
    const auto there = present.entries.find(name);
    if (there == present.entries.end()) {
      lines.push_back(line(DifferenceKind::kMissing, prefix + name));
    } else {
      compare_nodes(trees, node, *trees.target.find(there->second), prefix + name, lines);
    }
  }
  for (const auto& [name, inode] : present.entries) {
    const Node& node = *trees.target.find(inode);
    if (name == storage::kStateDirectoryName || !is_replicated(node)) continue;
    if (!announced.contains(name)) lines.push_back(line(DifferenceKind::kExtra, prefix + name));
  }
}

}  // namespace

std::optional<Lines> Scenario::true_differences() const {
  const Node* const source = source_.disk.find_path(kSourceRoot);
  const Node* const target = target_.disk.find_path(kTargetRoot);
  if (source == nullptr || target == nullptr) return std::nullopt;
  Lines lines;
  compare_directories({source_.disk, target_.disk}, *source, *target, "", lines);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Where the trees have stood still: a comparison that ends well has said all that differs, and none
// ever says more.
void Scenario::check_comparison(const Ends& ends) {
  const std::optional<Lines> truth = true_differences();
  // Who finds that it was switched says so, whatever it has found before.
  const bool replaced =
      std::ranges::any_of(ends.near_end->report().errors, [](const ErrorEntry& error) {
        return error.path == kTargetRoot && error.code == ErrorCode::kSourceChanged;
      });
  const bool stood_still = ledger_.is_steady() && truth == ends.differences_before;
  if (!truth || replaced || !(stood_still || last_)) return;
  Lines said = ends.differences;
  std::sort(said.begin(), said.end());
  if (has_compared_all(ends.near_end->report()) && said != *truth) {
    world_.violate("a comparison that ended well has not said what differs, or more");
  }
  for (const std::string& one : said) {
    if (!std::binary_search(truth->begin(), truth->end(), one)) {
      world_.violate("called different, and is not: " + one);
    }
  }
}

// When all is over, and nothing goes wrong any more.
void Scenario::compare_trees() {
  if (target_.disk.find_path(kTargetRoot) == nullptr) return;
  RunPlan plan = plan_;
  plan.push = world_.random().percent(50);
  plan.dry_run = plan.compare = true;
  Ends& ends = start(plan);
  if (!go_on_until([&ends] { return ends.near_is_over(); }, kRunBound, "comparing")) return;
  const TransferReport& report = ends.near_end->report();
  if (!has_compared_all(report)) {
    world_.violate("a comparison without trouble ended with " + std::to_string(report.exit_code) +
                   ": " + report.status.message());
  }
  ends.leave_far_ends_alone();
  (void)go_on_until([&ends] { return ends.is_over(); }, kRunBound, "what comparing left behind");
}

}  // namespace fgsync::sim
