// Sessions whose streams are damaged: the Nth frame or message, one at a time, until a run is not
// touched any more. Neither end ever says that all is well while it is not, no name at the target
// ever stands for half a file, and the next run, over sound streams, brings everything in order.
#include <gtest/gtest.h>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using Kind = StreamDamage::Kind;

class StreamFaults : public ::testing::Test {
 protected:
  StreamFaults() {
    directory_.make_directory("source");
    directory_.write("source/large", contents_of(200'000, 1));
    directory_.make_directory("source/below");
    for (unsigned i = 0; i < 5; ++i) {
      directory_.write("source/below/small" + std::to_string(i), contents_of(30'000, 2 + i));
    }
    directory_.write("source/.metadata", "names the others");
    source_ = list_tree(directory_.path("source"));
  }

  std::string target() const { return "target" + std::to_string(runs_); }
  std::map<std::string, ListedEntry> list_target() const {
    auto found = list_tree(directory_.path(target()));
    std::erase_if(found, [](const auto& entry) { return entry.first.starts_with(".fgsync"); });
    return found;
  }
  void make_target() {
    directory_.make_directory(target());
    directory_.write(target() + "/large", "old large");
  }

  void expect_nothing_torn(const std::map<std::string, ListedEntry>& found) {
    for (const auto& [path, entry] : found) {
      if (entry.type != 'f') continue;
      const bool is_old = path == "large" && entry.contents == "old large";
      EXPECT_TRUE(is_old || source_.at(path).contents == entry.contents) << path;
    }
    EXPECT_TRUE(found.contains("large"));
    if (!found.contains(".metadata")) return;
    for (const auto& [path, entry] : source_) {
      if (entry.type != 'f') continue;
      EXPECT_TRUE(found.contains(path) && found.at(path).contents == entry.contents)
          << "a marker before " << path;
    }
  }

  // Each end is some run's user's end, and what it says must be true.
  void expect_truth(const LocalOutcome& outcome, const std::map<std::string, ListedEntry>& found) {
    if (!outcome.sender.errors.empty() || !outcome.receiver.errors.empty()) return;
    for (const HalfOutcome* half : {&outcome.sender, &outcome.receiver}) {
      if (half->status.ok()) {
        EXPECT_EQ(found, source_) << "it says that all is well: " << outcome.text();
        continue;
      }
      const ErrorCode code = half->status.code();
      EXPECT_TRUE(code == ErrorCode::kConnectionLost || code == ErrorCode::kTimeout ||
                  code == ErrorCode::kProtocolError || code == ErrorCode::kChecksumMismatch)
          << outcome.text();
    }
  }

  // True if anything was damaged.
  bool run_with(const StreamDamage& damage) {
    ++runs_;
    make_target();
    SessionHarness harness(IoEngine::kPosix);
    harness.stream_damage = damage;
    harness.parameters.timeout = std::chrono::milliseconds(400);
    const LocalOutcome outcome =
        harness.replicate({directory_.path("source")}, directory_.path(target()));
    const auto found = list_target();
    expect_nothing_torn(found);
    expect_truth(outcome, found);
    if (!outcome.was_damaged) {
      EXPECT_TRUE(outcome.is_clean()) << outcome.text();
      return false;
    }
    SessionHarness sound(IoEngine::kPosix);
    const LocalOutcome next =
        sound.replicate({directory_.path("source")}, directory_.path(target()));
    EXPECT_TRUE(next.is_clean()) << next.text();
    EXPECT_EQ(list_target(), source_);
    return true;
  }

  void damage_each_in_turn(StreamDamage damage) {
    constexpr std::uint64_t kManyMore = 100;  // than any run of this tree has
    for (damage.nth = 1;; ++damage.nth) {
      SCOPED_TRACE("kind " + std::to_string(int(damage.kind)) + ", number " +
                   std::to_string(damage.nth));
      if (!run_with(damage)) break;
      ASSERT_LT(damage.nth, kManyMore);
    }
    EXPECT_GT(damage.nth, 5u);
  }

  const TemporaryDirectory directory_;
  std::map<std::string, ListedEntry> source_;
  int runs_ = 0;
};

TEST_F(StreamFaults, ADataStreamThatBreaksIsNeverASilentDifference) {
  damage_each_in_turn({.kind = Kind::kReset});
}

TEST_F(StreamFaults, ADataStreamThatStallsIsNeverASilentDifference) {
  damage_each_in_turn({.kind = Kind::kStall});
}

TEST_F(StreamFaults, AFrameThatIsNotWhatWasSentIsNeverASilentDifference) {
  for (const Kind kind : {Kind::kFlip, Kind::kFlipHeader, Kind::kCut, Kind::kForged}) {
    for (const bool lasting : {false, true}) {
      damage_each_in_turn({.kind = kind, .lasting = lasting});
    }
  }
}

TEST_F(StreamFaults, AControlStreamThatBreaksIsNeverASilentDifference) {
  damage_each_in_turn({.kind = Kind::kReset, .of_control = true});
  damage_each_in_turn({.kind = Kind::kForged, .of_control = true});
}

TEST_F(StreamFaults, AControlStreamThatStallsIsNeverASilentDifference) {
  damage_each_in_turn({.kind = Kind::kStall, .of_control = true});
}

}  // namespace
}  // namespace fgsync::transfer
