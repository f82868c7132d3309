#include "transfer/chunk_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/limits.h"
#include "support/manual_io.h"
#include "support/test_runtime.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

constexpr std::uint32_t kChunk = 64 * 1024;
const SourceTree kNoTree;  // nothing here opens a file

std::shared_ptr<OutgoingFile> file_of(std::uint64_t id, std::uint64_t size) {
  return std::make_shared<OutgoingFile>(id, kNoTree, 0, "name", storage::SourceIdentity{size, {}},
                                        kChunk);
}

using Lanes = ChunkScheduler::Lanes;

// A lane: takes work until there is none.
io::Task<void> take_all(ChunkScheduler* scheduler, Lanes* lanes, io::Io* io,
                        std::vector<WorkItem>* taken, bool* ended) {
  while (true) {
    std::optional<WorkItem> item = co_await scheduler->next(*lanes, *io);
    if (!item) break;
    taken->push_back(std::move(*item));
  }
  *ended = true;
}

io::Task<void> take_one(ChunkScheduler* scheduler, Lanes* lanes, io::Io* io,
                        std::vector<WorkItem>* taken, int* ended) {
  std::optional<WorkItem> item = co_await scheduler->next(*lanes, *io);
  if (item) {
    taken->push_back(std::move(*item));
  } else {
    ++*ended;
  }
}

class Scheduler : public ::testing::Test {
 protected:
  void add(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> files) {
    std::vector<std::shared_ptr<OutgoingFile>> wanted;
    for (const auto& [id, size] : files) wanted.push_back(file_of(id, size));
    scheduler_.add(std::move(wanted));
  }
  std::vector<WorkItem> drain() {
    std::vector<WorkItem> taken;
    bool ended = false;
    group_.spawn(io_, take_all(&scheduler_, &lanes_, &io_, &taken, &ended));
    scheduler_.finish();
    io_.run_ready();
    EXPECT_TRUE(ended);
    return taken;
  }

  // Takes one, which must be there.
  WorkItem take(Lanes& lanes) {
    std::vector<WorkItem> taken;
    int ended = 0;
    group_.spawn(io_, take_one(&scheduler_, &lanes, &io_, &taken, &ended));
    io_.run_ready();
    EXPECT_EQ(taken.size(), 1u);
    return taken.empty() ? WorkItem() : std::move(taken[0]);
  }
  bool is_drained() { return scheduler_.drained().is_set(); }

  ManualIo io_;
  io::TaskGroup group_;
  ChunkScheduler scheduler_{kChunk, kChunk};
  Lanes lanes_;
};

TEST_F(Scheduler, ChunksCoverEachFileOnce) {
  add({{1, 2 * kChunk}, {2, 5 * kChunk + 1}, {3, kChunk + 1}});
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> lengths;
  for (const WorkItem& item : drain()) {
    EXPECT_TRUE(lengths.try_emplace({item.file->id(), item.offset}, item.length).second);
  }
  const std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> expected = {
      {{1, 0}, kChunk},          {{1, kChunk}, kChunk},     {{2, 0}, kChunk},
      {{2, kChunk}, kChunk},     {{2, 2 * kChunk}, kChunk}, {{2, 3 * kChunk}, kChunk},
      {{2, 4 * kChunk}, kChunk}, {{2, 5 * kChunk}, 1},      {{3, 0}, kChunk},
      {{3, kChunk}, 1}};
  EXPECT_EQ(lengths, expected);
}

TEST_F(Scheduler, FilesAreBegunLargestFirstAndFewAtATime) {
  std::vector<std::shared_ptr<OutgoingFile>> files;
  for (std::uint64_t id = 2; id <= 20; ++id) files.push_back(file_of(id, id * kChunk));
  scheduler_.add(std::move(files));
  std::vector<std::uint64_t> begun;
  std::map<std::uint64_t, std::uint64_t> under_way;  // offset of the next chunk
  std::size_t most = 0;
  for (const WorkItem& item : drain()) {
    const std::uint64_t id = item.file->id();
    if (item.offset == 0) begun.push_back(id);
    EXPECT_EQ(under_way[id], item.offset) << "within a file, from its beginning to its end";
    under_way[id] += item.length;
    most = std::max(most, under_way.size());
    if (under_way[id] == item.file->size()) under_way.erase(id);
  }
  EXPECT_TRUE(under_way.empty());
  EXPECT_LE(most, 4u);
  EXPECT_EQ(begun.size(), 19u);
  EXPECT_TRUE(std::is_sorted(begun.rbegin(), begun.rend()));
}

TEST_F(Scheduler, AFileThatFitsAChunkIsPackedAndOneByteMoreIsNot) {
  add({{1, kChunk}, {2, kChunk + 1}, {3, 0}});
  const std::vector<WorkItem> taken = drain();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].file->id(), 2u);
  EXPECT_EQ(taken[1].file->id(), 2u);
  EXPECT_EQ(taken[2].file, nullptr);
  ASSERT_EQ(taken[2].pack.size(), 2u);
  EXPECT_EQ(taken[2].pack[0]->id(), 1u);
  EXPECT_EQ(taken[2].pack[1]->id(), 3u);
}

TEST_F(Scheduler, PacksAreFilledToTheirLimitsAndNeverPastAFrame) {
  std::vector<std::shared_ptr<OutgoingFile>> files;
  for (std::uint64_t id = 1; id <= 2500; ++id) files.push_back(file_of(id, 1));
  scheduler_.add(std::move(files));
  std::vector<WorkItem> taken = drain();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].pack.size(), limits::kPackEntriesMax);
  EXPECT_EQ(taken[1].pack.size(), limits::kPackEntriesMax);
  EXPECT_EQ(taken[2].pack.size(), 2500u - 2 * limits::kPackEntriesMax);
}

TEST_F(Scheduler, APackEndsWithTheFileThatReachesTheTarget) {
  std::vector<std::shared_ptr<OutgoingFile>> files;
  for (std::uint64_t id = 1; id <= 40; ++id) files.push_back(file_of(id, kChunk));
  scheduler_.add(std::move(files));
  const std::vector<WorkItem> taken = drain();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].pack.size(), limits::kPackBytesTarget / kChunk);
  EXPECT_EQ(taken[1].pack.size(), limits::kPackBytesTarget / kChunk);
}

TEST_F(Scheduler, LanesThatWaitGetAPieceEachInTheOrderTheyCame) {
  std::vector<WorkItem> taken[3];
  int ended = 0;
  for (auto& list : taken) group_.spawn(io_, take_one(&scheduler_, &lanes_, &io_, &list, &ended));
  io_.run_ready();
  add({{1, 2 * kChunk}});
  io_.run_ready();
  ASSERT_EQ(taken[0].size(), 1u);
  ASSERT_EQ(taken[1].size(), 1u);
  EXPECT_EQ(taken[0][0].offset, 0u);
  EXPECT_EQ(taken[1][0].offset, kChunk);
  EXPECT_TRUE(taken[2].empty());
  EXPECT_EQ(ended, 0);
  add({{2, 10}});
  io_.run_ready();
  ASSERT_EQ(taken[2].size(), 1u);
  EXPECT_EQ(taken[2][0].pack.size(), 1u);
}

TEST_F(Scheduler, TheEndWakesEveryLaneThatWaits) {
  std::vector<WorkItem> taken;
  int ended = 0;
  for (int i = 0; i < 5; ++i)
    group_.spawn(io_, take_one(&scheduler_, &lanes_, &io_, &taken, &ended));
  io_.run_ready();
  EXPECT_EQ(ended, 0);
  scheduler_.finish();
  io_.run_ready();
  EXPECT_EQ(ended, 5);
  EXPECT_TRUE(taken.empty());
}

TEST_F(Scheduler, ClosingDropsWhatIsQueued) {
  add({{1, 9 * kChunk}, {2, 10}});
  std::vector<WorkItem> taken;
  int ended = 0;
  group_.spawn(io_, take_one(&scheduler_, &lanes_, &io_, &taken, &ended));
  io_.run_ready();
  EXPECT_EQ(taken.size(), 1u);
  scheduler_.close();
  group_.spawn(io_, take_one(&scheduler_, &lanes_, &io_, &taken, &ended));
  io_.run_ready();
  EXPECT_EQ(taken.size(), 1u);
  EXPECT_EQ(ended, 1);
}

TEST_F(Scheduler, WhatDidNotArriveGoesBeforeEverythingElseInItsOrder) {
  add({{1, 3 * kChunk}, {2, 10}});
  Lanes lost;
  std::vector<WorkItem> taken;
  for (int i = 0; i < 2; ++i) taken.push_back(take(lost));
  taken[1].again = true;
  scheduler_.release(lost);
  scheduler_.take_back(lost, std::move(taken));
  const WorkItem first = take(lanes_);
  EXPECT_EQ(first.offset, 0u);
  EXPECT_FALSE(first.again);
  const WorkItem second = take(lanes_);
  EXPECT_EQ(second.offset, kChunk);
  EXPECT_TRUE(second.again);
  EXPECT_EQ(take(lanes_).offset, 2 * kChunk);
  EXPECT_EQ(take(lanes_).pack.size(), 1u);
}

TEST_F(Scheduler, APackThatDidNotArriveStaysAPack) {
  add({{1, 10}, {2, 10}, {3, 10}});
  Lanes lost;
  std::vector<WorkItem> taken;
  taken.push_back(take(lost));
  scheduler_.take_back(lost, std::move(taken));
  EXPECT_EQ(take(lanes_).pack.size(), 3u);
}

TEST_F(Scheduler, WhatDidNotArriveWakesLanesThatWait) {
  add({{1, 2 * kChunk}});
  Lanes lost;
  std::vector<WorkItem> taken;
  for (int i = 0; i < 2; ++i) taken.push_back(take(lost));
  std::vector<WorkItem> elsewhere;
  int ended = 0;
  group_.spawn(io_, take_one(&scheduler_, &lanes_, &io_, &elsewhere, &ended));
  io_.run_ready();
  EXPECT_TRUE(elsewhere.empty());
  scheduler_.take_back(lost, std::move(taken));
  io_.run_ready();
  ASSERT_EQ(elsewhere.size(), 1u);
  EXPECT_EQ(elsewhere[0].offset, 0u);
}

TEST_F(Scheduler, ReleasedLanesGetNothingUntilTheyAreAdmittedAgain) {
  std::vector<WorkItem> taken;
  int ended = 0;
  Lanes others;
  group_.spawn(io_, take_one(&scheduler_, &lanes_, &io_, &taken, &ended));
  group_.spawn(io_, take_one(&scheduler_, &others, &io_, &taken, &ended));
  io_.run_ready();
  scheduler_.release(lanes_);
  io_.run_ready();
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(scheduler_.is_released(lanes_));
  EXPECT_FALSE(scheduler_.is_released(others));
  add({{1, 2 * kChunk}});
  io_.run_ready();
  EXPECT_EQ(taken.size(), 1u);
  group_.spawn(io_, take_one(&scheduler_, &lanes_, &io_, &taken, &ended));
  io_.run_ready();
  EXPECT_EQ(ended, 2);
  scheduler_.admit(lanes_);
  EXPECT_EQ(take(lanes_).offset, kChunk);
}

TEST_F(Scheduler, IsDrainedWhenAllIsTakenAndSettledAndNoMoreWillCome) {
  add({{1, 2 * kChunk}});
  std::vector<WorkItem> taken;
  for (int i = 0; i < 2; ++i) taken.push_back(take(lanes_));
  scheduler_.settle(lanes_, 1);
  EXPECT_FALSE(is_drained());
  scheduler_.finish();
  EXPECT_FALSE(is_drained());
  // The other one comes back, and goes again.
  taken.pop_back();
  scheduler_.take_back(lanes_, std::move(taken));
  EXPECT_FALSE(is_drained());
  (void)take(lanes_);
  EXPECT_FALSE(is_drained());
  scheduler_.settle(lanes_, 1);
  EXPECT_TRUE(is_drained());
}

TEST_F(Scheduler, LanesWaitForWhatALostConnectionMayGiveBack) {
  add({{1, 2 * kChunk}});
  Lanes lost;
  std::vector<WorkItem> taken;
  for (int i = 0; i < 2; ++i) taken.push_back(take(lost));
  scheduler_.finish();
  scheduler_.release(lost);
  std::vector<WorkItem> elsewhere;
  bool ended = false;
  group_.spawn(io_, take_all(&scheduler_, &lanes_, &io_, &elsewhere, &ended));
  io_.run_ready();
  EXPECT_FALSE(ended);
  scheduler_.settle(lost, 1);
  taken.erase(taken.begin());
  io_.run_ready();
  EXPECT_FALSE(ended);
  scheduler_.take_back(lost, std::move(taken));
  io_.run_ready();
  EXPECT_TRUE(ended);
  ASSERT_EQ(elsewhere.size(), 1u);
  EXPECT_EQ(elsewhere[0].offset, kChunk);
}

TEST_F(Scheduler, NothingToDoIsDrainedAtItsEnd) {
  EXPECT_FALSE(is_drained());
  scheduler_.finish();
  EXPECT_TRUE(is_drained());
}

TEST_F(Scheduler, ClosingEndsTheWaitForWhatIsNotSettled) {
  add({{1, 2 * kChunk}});
  (void)take(lanes_);
  scheduler_.close();
  EXPECT_TRUE(is_drained());
}

// A receiver that never says what has come must not fill the sender's memory.
TEST_F(Scheduler, LanesWithTooMuchThatIsNotSettledWait) {
  add({{1, (limits::kUnsettledFramesMax + 2) * kChunk}});
  for (std::size_t i = 0; i < limits::kUnsettledFramesMax; ++i) (void)take(lanes_);
  std::vector<WorkItem> taken;
  int ended = 0;
  group_.spawn(io_, take_one(&scheduler_, &lanes_, &io_, &taken, &ended));
  io_.run_ready();
  EXPECT_TRUE(taken.empty());
  Lanes others;
  (void)take(others);
  scheduler_.settle(lanes_, 1);
  io_.run_ready();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].offset, (limits::kUnsettledFramesMax + 1) * kChunk);
}

io::Task<void> add_slowly(ChunkScheduler* scheduler, io::Io* io) {
  for (std::uint64_t id = 1; id <= 400; ++id) {
    std::vector<std::shared_ptr<OutgoingFile>> files;
    files.push_back(file_of(id, id % 3 == 0 ? 3 * kChunk : 100));
    scheduler->add(std::move(files));
    co_await io::resume_on(*io);
  }
  scheduler->finish();
}

struct Lane {
  Lanes lanes;
  std::vector<WorkItem> taken;
  bool ended = false;
};

io::Task<void> share(TestRuntime* runtime, ChunkScheduler* scheduler, std::vector<Lane>* lanes) {
  io::TaskGroup group;
  for (std::size_t i = 0; i < lanes->size(); ++i) {
    io::Io& io = runtime->worker(i % runtime->worker_count());
    Lane& lane = (*lanes)[i];
    group.spawn(io, take_all(scheduler, &lane.lanes, &io, &lane.taken, &lane.ended));
  }
  group.spawn(runtime->control(), add_slowly(scheduler, &runtime->control()));
  co_await group.join(runtime->control());
}

TEST(SchedulerAcrossWorkers, EveryPieceIsTakenExactlyOnce) {
  const auto runtime = TestRuntime::create(IoEngine::kPosix);
  ChunkScheduler scheduler(kChunk, kChunk);
  std::vector<Lane> lanes(6);
  runtime->run(share(runtime.get(), &scheduler, &lanes));
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> seen;
  for (const Lane& lane : lanes) {
    EXPECT_TRUE(lane.ended);
    for (const WorkItem& item : lane.taken) {
      if (item.file) ++seen[{item.file->id(), item.offset}];
      for (const auto& file : item.pack) ++seen[{file->id(), 0}];
    }
  }
  EXPECT_EQ(seen.size(), 400u - 133u + 3u * 133u);
  for (const auto& [piece, count] : seen) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace fgsync::transfer
