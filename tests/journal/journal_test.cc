// Writing a journal and reading it again, whole and damaged.
#include <gtest/gtest.h>

#include "base/limits.h"
#include "journal/journal_reader.h"
#include "journal/journal_writer.h"
#include "journal/record_samples.h"
#include "storage/storage_fixture.h"

namespace fgsync::journal {
namespace {

class JournalTest : public testing::StorageFixture {
 protected:
  std::unique_ptr<JournalWriter> create() {
    auto writer = JournalWriter::create(*files, root, sample_header());
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    return writer.ok() ? std::move(*writer) : nullptr;
  }
  // A file and two of its chunks.
  void write_sample() {
    const auto writer = create();
    ASSERT_TRUE(writer->append(std::vector<Record>{sample_begin()}).ok());
    ASSERT_TRUE(writer->append(std::vector<Record>{sample_records()[1]}).ok());
    ASSERT_TRUE(writer->sync().ok());
  }
  LoadedJournal load_whole() {
    auto loaded = load(*files, root);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return loaded.ok() ? std::move(*loaded) : LoadedJournal();
  }
  std::string contents() const { return directory.read(kJournalName); }
};

TEST_F(JournalTest, WhatIsWrittenIsRead) {
  write_sample();
  LoadedJournal loaded = load_whole();
  EXPECT_EQ(loaded.header.transfer, sample_header().transfer);
  EXPECT_EQ(loaded.bytes_cut, 0u);
  EXPECT_EQ(loaded.good_bytes, contents().size());
  EXPECT_EQ(loaded.written.seconds, directory.lstat(kJournalName).st_mtim.tv_sec);
  const auto file = loaded.state.take(sample_begin().path);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->held, (std::vector<bool>{false, false, false, true, true}));
}

TEST_F(JournalTest, AnotherRunGoesOnWhereTheLastOneEnded) {
  write_sample();
  {
    const LoadedJournal loaded = load_whole();
    auto writer = JournalWriter::go_on(*files, root, loaded);
    ASSERT_TRUE(writer.ok());
    wire::Checksum checksum;
    ASSERT_TRUE((*writer)->append(std::vector<Record>{Chunks{7, 0, {checksum}}}).ok());
  }
  LoadedJournal loaded = load_whole();
  EXPECT_EQ(loaded.bytes_cut, 0u);
  EXPECT_TRUE(loaded.state.take(sample_begin().path)->held[0]);
}

TEST_F(JournalTest, ATornTailIsCutAndWrittenOver) {
  write_sample();
  const std::string whole = contents();
  for (std::size_t length = kHeaderBytes; length < whole.size(); ++length) {
    directory.write(kJournalName, whole.substr(0, length));
    LoadedJournal loaded = load_whole();
    EXPECT_EQ(loaded.good_bytes + loaded.bytes_cut, length);
    EXPECT_LE(loaded.good_bytes, length);
    auto writer = JournalWriter::go_on(*files, root, loaded);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->append(std::vector<Record>{Done{99}}).ok());
    EXPECT_EQ(load_whole().bytes_cut, 0u) << length;
  }
}

TEST_F(JournalTest, DamageInTheMiddleCostsWhatFollows) {
  write_sample();
  const std::string whole = contents();
  for (std::size_t i = kHeaderBytes; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = char(damaged[i] ^ 0x10);
    directory.write(kJournalName, damaged);
    const LoadedJournal loaded = load_whole();
    EXPECT_GT(loaded.bytes_cut, 0u) << i;
  }
  std::string zeroed = whole;
  std::fill(zeroed.begin() + kHeaderBytes, zeroed.end(), '\0');
  directory.write(kJournalName, zeroed);
  EXPECT_EQ(load_whole().good_bytes, kHeaderBytes);
}

TEST_F(JournalTest, WhatIsNoJournalIsSaidToBeNone) {
  EXPECT_EQ(load(*files, root).status().code(), ErrorCode::kNotFound);
  for (const std::string& nonsense :
       {std::string(), std::string("fgsync-j"), std::string(1000, '\0'), std::string(1000, 'x')}) {
    directory.write(kJournalName, nonsense);
    EXPECT_EQ(load(*files, root).status().code(), ErrorCode::kIoError) << nonsense.size();
    EXPECT_EQ(load_header(*files, root).status().code(), ErrorCode::kIoError);
  }
}

TEST_F(JournalTest, ADirectoryOrASymlinkInItsPlaceIsRefused) {
  directory.make_directory(kJournalName);
  EXPECT_FALSE(load(*files, root).ok());
  ASSERT_EQ(::rmdir(directory.path(kJournalName).c_str()), 0);
  write_sample();
  ASSERT_EQ(::rename(directory.path(kJournalName).c_str(), directory.path("real").c_str()), 0);
  directory.make_symlink("real", kJournalName);
  EXPECT_FALSE(load(*files, root).ok());
}

TEST_F(JournalTest, ANewJournalTakesTheOldOnesPlace) {
  directory.write(kJournalName, std::string(100'000, 'x'));
  write_sample();
  EXPECT_EQ(load_whole().bytes_cut, 0u);
}

// Records larger than the reader's window, and many of them: a journal of a long run.
TEST_F(JournalTest, ManyAndLargeRecordsAreReadWhole) {
  {
    const auto writer = create();
    Begin large = sample_begin();
    large.version.chunk_bytes = limits::kChunkBytesMin;
    large.version.size = std::uint64_t{1} << 40;
    ASSERT_TRUE(writer->append(std::vector<Record>{large}).ok());
    const std::vector<wire::Checksum> most(limits::kHeldChunksMax);
    for (std::uint64_t i = 0; i < 20; ++i) {
      ASSERT_TRUE(
          writer->append(std::vector<Record>{Chunks{7, i * limits::kHeldChunksMax, most}}).ok());
    }
    for (std::uint64_t i = 0; i < 10'000; ++i) {
      Begin begin = sample_begin();
      begin.number = 100 + i;
      begin.path = "file" + std::to_string(i);
      ASSERT_TRUE(writer->append(std::vector<Record>{begin, Done{100 + i}}).ok());
    }
  }
  LoadedJournal loaded = load_whole();
  EXPECT_EQ(loaded.bytes_cut, 0u);
  EXPECT_EQ(loaded.state.next_number(), 10'100u);
  EXPECT_EQ(loaded.state.take(sample_begin().path)->held.size(), 20 * limits::kHeldChunksMax);
  EXPECT_TRUE(loaded.state.empty());
}

}  // namespace
}  // namespace fgsync::journal
