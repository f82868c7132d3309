#include "transfer/run_progress.h"

#include <gtest/gtest.h>

namespace fgsync::transfer {
namespace {

ProgressSnapshot of(std::uint64_t done, std::uint64_t total, bool known, std::uint64_t files = 0) {
  ProgressSnapshot snapshot;
  snapshot.bytes_done = done;
  snapshot.bytes_total = total;
  snapshot.total_known = known;
  snapshot.files_done = files;
  snapshot.files_total = 10;
  return snapshot;
}

TEST(RunProgress, OfOneSessionIsThatSessions) {
  RunProgress progress;
  const ProgressSnapshot shown = progress.update(of(3, 7, false, 2));
  EXPECT_EQ(shown.bytes_done, 3u);
  EXPECT_EQ(shown.bytes_total, 7u);
  EXPECT_FALSE(shown.total_known);
  EXPECT_EQ(shown.files_done, 2u);
}

TEST(RunProgress, StandsStillWhileTheNextSessionLooksWhatIsThere) {
  RunProgress progress;
  (void)progress.update(of(500, 1000, true, 4));
  progress.next_session();
  for (const ProgressSnapshot& session : {of(0, 0, false), of(10, 300, false, 1)}) {
    const ProgressSnapshot shown = progress.update(session);
    EXPECT_EQ(shown.bytes_done, 500u);
    EXPECT_EQ(shown.bytes_total, 1000u);
    EXPECT_TRUE(shown.total_known);
    EXPECT_EQ(shown.files_done, 4u);
    EXPECT_EQ(shown.files_total, 10u);
  }
}

TEST(RunProgress, GoesOnWhenMoreIsThereThanBefore) {
  RunProgress progress;
  (void)progress.update(of(500, 1000, true));
  progress.next_session();
  // 300 of the 500 have to go again.
  EXPECT_EQ(progress.update(of(0, 800, true)).bytes_done, 500u);
  EXPECT_EQ(progress.update(of(300, 800, true)).bytes_done, 500u);
  const ProgressSnapshot shown = progress.update(of(400, 800, true));
  EXPECT_EQ(shown.bytes_done, 600u);
  EXPECT_EQ(shown.bytes_total, 1000u);
  EXPECT_EQ(progress.update(of(800, 800, true)).bytes_done, 1000u);
}

TEST(RunProgress, AddsUpWhenTheTotalWasNotKnownBefore) {
  RunProgress progress;
  (void)progress.update(of(500, 600, false));
  progress.next_session();
  EXPECT_FALSE(progress.update(of(0, 100, false)).total_known);
  ProgressSnapshot shown = progress.update(of(100, 700, true));
  EXPECT_TRUE(shown.total_known);
  EXPECT_EQ(shown.bytes_done, 600u);
  EXPECT_EQ(shown.bytes_total, 1200u);
  shown = progress.update(of(700, 700, true));
  EXPECT_EQ(shown.bytes_done, 1200u);
}

TEST(RunProgress, NeverRunsBackwardsOrPastItsEndWhateverComes) {
  RunProgress progress;
  ProgressSnapshot before;
  std::uint32_t state = 7;
  const auto any = [&state](std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  for (int session = 0; session < 50; ++session) {
    const std::uint64_t total = any(1000);
    for (std::uint64_t done = 0; done <= total; done += 1 + any(200)) {
      const ProgressSnapshot shown =
          progress.update(of(done, total, done > 100, std::min<std::uint64_t>(done, 10)));
      EXPECT_GE(shown.bytes_done, before.bytes_done);
      EXPECT_GE(shown.bytes_total, before.bytes_total);
      EXPECT_GE(shown.files_done, before.files_done);
      EXPECT_TRUE(shown.total_known || !before.total_known);
      EXPECT_LE(shown.bytes_done, shown.bytes_total);
      before = shown;
    }
    progress.next_session();
  }
}

}  // namespace
}  // namespace fgsync::transfer
