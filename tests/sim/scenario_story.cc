// What a seed asks for: how the runs are made, and what goes wrong meanwhile.
#include <algorithm>
#include <array>
#include <cerrno>

#include "scenario_ends.h"

namespace fgsync::sim {
namespace {

constexpr std::uint64_t kChunkBytes = 64 * 1024;
}  // namespace

// ---- Plans

void Scenario::choose_plan() {
  Random& random = world_.random();
  plan_.push = random.percent(60);
  plan_.streams = std::uint16_t(1 + random.below(3));
  plan_.workers = 1 + random.below(2);
  plan_.cipher = std::array{Cipher::kAes128Gcm, Cipher::kAes128Gcm, Cipher::kAuto,
                            Cipher::kChaCha20Poly1305, Cipher::kNone}[random.below(5)];
  const bool direct = source_.offers_direct_io() && target_.offers_direct_io();
  plan_.direct_io = random.percent(direct ? 40 : 3) ? DirectIo::kAlways : DirectIo::kAuto;
  // Where it is not offered, large files are refused.
  if (!direct && plan_.direct_io == DirectIo::kAlways) obstructed_ = true;
  plan_.chunk_bytes = std::uint32_t(kChunkBytes * (random.percent(70) ? 1 : 2));
  plan_.timeout = std::chrono::milliseconds(random.percent(70) ? 20'000 : 5'000);
  const std::uint64_t spelling = random.below(4);
  plan_.source = kSourceRoot + std::string(std::array{"", "", "/", "/."}[spelling]);
  plan_.target = kTargetRoot + std::string(std::array{"", "", "/", ""}[spelling]);
  wire_.latency = io::Duration(std::int64_t(20'000 + random.skewed(20'000'000)));
  // Most seeds are about one or two kinds of trouble, some about none.
  for (std::uint64_t kind = 0; kind < kFaultKinds; ++kind) {
    if (random.percent(kind == kCompany || kind == kState ? 20 : kind == kLoss ? 25 : 45))
      fault_kinds_ |= std::uint64_t{1} << kind;
  }
  if (random.percent(8)) fault_kinds_ = 1u << kCompany;
  if (random.percent(10)) fault_kinds_ = 1u << kLoss;
  // Slow ones leave more behind when they are interrupted.
  plan_.bandwidth_limit =
      random.percent(is_about(kState) ? 80 : 15) ? 100'000 + random.skewed(2'000'000) : 0;
  // Nothing is promised of what a power cut leaves, then.
  const bool may_lose_power = (fault_kinds_ & (1u << kDeath)) != 0;
  const std::uint64_t durability = random.below(10);
  plan_.durability = durability < 3                      ? Durability::kFull
                     : durability < 5 && !may_lose_power ? Durability::kNone
                                                         : Durability::kBatch;
  plan_.read_back = plan_.durability != Durability::kNone && random.percent(25);
  has_left_state_ = (fault_kinds_ & ((1u << kDisk) | (1u << kDeath) | (1u << kState))) != 0;
  only_company_ = fault_kinds_ == 1u << kCompany;
  keeps_receipts_ = (fault_kinds_ & ((1u << kDisk) | (1u << kState))) == 0 && target_.has_locks;
  only_losses_ = fault_kinds_ == 1u << kLoss;
  plan_.retry_for = std::chrono::milliseconds(
      std::array{60'000, 60'000, 60'000, 60'000, 5'000, 0}[random.below(6)]);
  if (only_losses_) plan_.retry_for = std::chrono::milliseconds(60'000);
  // A connection that falls silent is noticed after a minute.
  if (only_losses_) plan_.timeout = std::chrono::milliseconds(150'000);
  wire_.sealed = plan_.cipher != Cipher::kNone;
  some_at_once_ = random.percent(35);
  all_at_once_ = some_at_once_ && random.percent(80);
  target_.has_links = random.percent(80);
  target_.has_exchange = random.percent(97);
  if (some_at_once_ && !can_be_switched()) obstructed_ = true;
  // By dice of its own: the rest of a story is what it would be without.
  Random selecting(Random(random).next() ^ 0x73656c656374);
  // A tree that is published at once is whole in any case.
  has_rules_ = !some_at_once_ && selecting.percent(8);
  if (has_rules_) plan_.selection.rules = {{true, "/f1"}, {false, "f1"}, {false, "d1/"}};
  if (selecting.percent(8)) plan_.changes.comparison = Comparison::kContents;
}

bool Scenario::chooses_at_once() {
  return some_at_once_ && (all_at_once_ || world_.random().percent(50));
}

// Whether a run that is to publish the tree at once is not refused.
bool Scenario::can_be_switched() const {
  if (!target_.has_exchange || !target_.has_locks) return false;
  const Node* const root = target_.disk.find_path(kTargetRoot);
  return root == nullptr || std::ranges::all_of(root->entries, [&](const auto& entry) {
           return target_.disk.find(entry.second)->mount == root->mount;
         });
}

bool Scenario::is_left_out() {
  const std::uint64_t number = faults_asked_++;
  return number < limits_.faults_skipped || number - limits_.faults_skipped >= limits_.faults_max;
}

void Scenario::plan_faults() {
  plan_.frames_until_flip = -1;
  Random& random = world_.random();
  const std::uint64_t count = fault_kinds_ == 0 ? 0
                              : only_company_   ? 1 + random.below(2)
                                                : random.skewed(4);
  for (std::uint64_t i = 0; i < count; ++i) plan_one_fault();
  if (is_about(kState) && runs_ == 1) plan_damage();  // there is nothing yet: interrupts the run
}

// The last run has no trouble of its own, but what was left for it may not be what it was.
void Scenario::plan_last() {
  if (is_about(kState)) plan_damage();
  if (!is_about(kSourceChange)) return;
  const std::uint64_t choice = world_.random().below(10);
  if (choice < 3) rewrite_unseen();
  if (choice >= 7) change_source(/*at_rest=*/true);
}

bool Scenario::is_about(std::uint64_t kind) const { return ((fault_kinds_ >> kind) & 1) != 0; }

void Scenario::plan_one_fault() {
  Random& random = world_.random();
  std::uint64_t kind = random.below(kFaultKinds);
  while (((fault_kinds_ >> kind) & 1) == 0) kind = (kind + 1) % kFaultKinds;
  switch (kind) {
    case kDisk:
      return plan_disk_fault(random.percent(30) ? source_ : target_);
    case kNetwork:
      return plan_network_fault();
    case kDeath:
      return plan_death();
    case kSourceChange:
      // What an interrupted run has sent in part tempts the most.
      return random.percent(30) ? rewrite_unseen() : plan_source_change();
    case kState:
      return plan_damage();
    case kLoss:
      return plan_loss();
    default:
      return plan_company();
  }
}

void Scenario::plan_disk_fault(Host& host) {
  Random& random = world_.random();
  DiskFault fault;
  fault.at = host.calls + 1 + random.skewed(250);
  switch (random.below(12)) {
    case 0:
      fault.kind = DiskFault::Kind::kFull;
      break;
    case 7:
      // Only reading back can tell.
      if (&host == &target_ && plan_.read_back) {
        fault.kind = DiskFault::Kind::kLostWrite;
        fault.calls = (1u << unsigned(FileCall::kSync)) | (1u << unsigned(FileCall::kSyncMount));
        break;
      }
      [[fallthrough]];
    case 1:
      fault.kind = DiskFault::Kind::kSlow;
      break;
    case 2:
    case 3:
      fault.kind = DiskFault::Kind::kShort;
      break;
    case 4:
      fault.kind = DiskFault::Kind::kRot;
      break;
    case 5:
    case 6:
      fault.error = EIO;
      fault.calls = (1u << unsigned(FileCall::kSync)) | (1u << unsigned(FileCall::kSyncMount));
      break;
    default:
      fault.error = std::array{EIO, EIO, EIO, EIO, EIO, ENOSPC, EACCES, EPERM}[random.below(8)];
      if (random.percent(60)) fault.calls = 1u << random.below(kFileCallCount);
  }
  if (is_left_out()) return;
  // Half of the time before the run, when what an earlier one has left is at rest as well.
  if (fault.kind == DiskFault::Kind::kRot && fault.at % 2 == 0) return let_rot(host);
  host.faults.push_back(fault);
}

// Of the source, while it is compared.
void Scenario::plan_read_error() {
  DiskFault fault;
  fault.at = source_.calls + 1 + world_.random().skewed(60);
  fault.calls = 1u << unsigned(FileCall::kRead);
  fault.error = EIO;
  if (world_.random().percent(60) || is_left_out()) return;
  source_.faults.push_back(fault);
}

void Scenario::plan_network_fault() {
  Random& random = world_.random();
  constexpr std::array kKinds = {NetworkFault::Kind::kReset, NetworkFault::Kind::kStall,
                                 NetworkFault::Kind::kPartition, NetworkFault::Kind::kFlip,
                                 NetworkFault::Kind::kBlock};
  const std::uint64_t choice = random.below(kKinds.size() + 1);
  const std::uint64_t at = random.skewed(80);
  // A block may last for longer than any run tries.
  const bool for_good =
      choice < kKinds.size() && kKinds[choice] == NetworkFault::Kind::kBlock && random.percent(40);
  const std::uint64_t seconds = for_good ? 100'000 : random.skewed(90);
  const io::Duration time(std::int64_t(seconds * 1'000'000'000));
  if (is_left_out()) return;
  if (choice == kKinds.size()) {
    plan_.frames_until_flip = std::int64_t(at % 8);
    return;
  }
  wire_.plan({.kind = kKinds[choice], .at = at, .time = time, .to_stream = false});
}

// What a run is to get over by itself: one data connection breaks, falls silent or stalls for a
// while; any connection breaks; the far side dies.
void Scenario::plan_loss() {
  Random& random = world_.random();
  constexpr std::array kKinds = {NetworkFault::Kind::kReset, NetworkFault::Kind::kReset,
                                 NetworkFault::Kind::kSilence, NetworkFault::Kind::kStall};
  const std::uint64_t choice = random.below(kKinds.size() + 2);
  // A run has few sends, and the first and the last are the likeliest to be forgotten; those that
  // make the connections don't count.
  const std::uint64_t at = 2u * plan_.streams + random.skewed(30);
  const io::Duration time(std::int64_t(random.skewed(20'000'000'000)));
  const io::Duration later(std::int64_t(random.skewed(2'000'000'000)));
  if (is_left_out()) return;
  if (choice < kKinds.size()) {
    return wire_.plan({.kind = kKinds[choice], .at = at, .time = time, .to_stream = true});
  }
  const bool far_dies = choice == kKinds.size();
  const int run = runs_;
  world_.after(later, [this, run, far_dies] {
    if (run != runs_ || last_ || under_way_ == nullptr || under_way_->fars.empty()) return;
    // A first session that does not come to stand is not tried again.
    if (wire_.data_bytes - under_way_->bytes_before < 1000) return;
    if (far_dies) return under_way_->fars.back().process->kill();
    wire_.plan({.kind = NetworkFault::Kind::kReset, .at = 0, .time = {}, .to_stream = false});
  });
}

void Scenario::plan_death() {
  Random& random = world_.random();
  Host& host = random.percent(30) ? source_ : target_;
  const bool power = random.percent(60);
  DiskFault fault;
  fault.kind = power ? DiskFault::Kind::kPowerCut : DiskFault::Kind::kKill;
  fault.at = host.calls + 1 + random.skewed(300);
  const std::uint64_t choice = random.below(5);
  const std::int64_t later = std::int64_t(random.skewed(2'000'000'000));
  if (is_left_out()) return;
  if (choice == 0) {
    // Where most is at stake: around renames.
    fault.calls = 1u << unsigned(FileCall::kRename);
    fault.at = host.calls + 1;
    host.faults.push_back(fault);
  } else if (choice == 4) {
    // Its user has had enough.
    interrupt_after(io::Duration(later));
  } else if (choice == 1) {
    // At any moment.
    const int run = runs_;
    world_.after(io::Duration(later), [this, &host, power, run] {
      if (run != runs_ || last_) return;
      power ? host.cut_power() : host.kill_all();
    });
  } else {
    host.faults.push_back(fault);
  }
}

// Another run between the same trees, from either side, while this one is under way.
void Scenario::plan_company() {
  Random& random = world_.random();
  // At once they run for the same names; later the one finds what the other has done so far.
  const std::uint64_t at_most =
      std::array<std::uint64_t, 3>{1'000, 50'000'000, 1'000'000'000}[random.below(3)];
  const io::Duration later(std::int64_t(random.skewed(at_most)));
  const bool push = random.percent(50);
  const bool fail_if_locked = random.percent(25);
  if (is_left_out()) return;
  const int run = runs_;
  world_.after(later, [this, run, push, fail_if_locked] {
    if (run != runs_ || last_ || under_way_ == nullptr) return;
    RunPlan plan = plan_;
    plan.push = push;
    plan.fail_if_locked = fail_if_locked;
    plan.frames_until_flip = -1;
    plan.dry_run = plan.compare = false;
    plan.publish_tree = chooses_at_once();
    world_.trace("company", std::uint64_t(run), push);
    start(plan);
  });
}

}  // namespace fgsync::sim
