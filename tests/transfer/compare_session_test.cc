// Sessions that compare: both halves in one process, on a real runtime and real files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

constexpr std::size_t kChunk = 64 * 1024;

class CompareSession : public OnEachEngine {
 protected:
  void SetUp() override {
    OnEachEngine::SetUp();
    directory_.make_directory("source");
    directory_.make_directory("target");
  }

  void write_both(const std::string& name, const std::string& contents) {
    directory_.write("source/" + name, contents);
    directory_.write("target/" + name, contents);
  }

  LocalOutcome compare(const std::string& source = "source", const std::string& target = "target",
                       std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    harness_ = std::make_unique<SessionHarness>(GetParam());
    if (prepare_) prepare_(*harness_);
    harness_->parameters.dry_run = harness_->parameters.compare = true;
    harness_->parameters.timeout = timeout;
    return harness_->replicate({directory_.path(source)}, directory_.path(target));
  }

  // "kind path detail", in order, after both halves have said the same.
  static std::vector<std::string> found(const LocalOutcome& outcome) {
    const auto lines = [](const HalfOutcome& half) {
      std::vector<std::string> texts;
      for (const Difference& difference : half.differences) {
        std::string text = std::string(difference_name(difference.kind)) + " " + difference.path;
        if (!difference.detail.empty()) text += " " + difference.detail;
        texts.push_back(std::move(text));
      }
      std::ranges::sort(texts);
      return texts;
    };
    EXPECT_EQ(lines(outcome.sender), lines(outcome.receiver));
    return lines(outcome.receiver);
  }

  const TemporaryDirectory directory_;
  std::function<void(SessionHarness&)> prepare_;
  std::unique_ptr<SessionHarness> harness_;
};

TEST_P(CompareSession, TreesWithTheSameContentsAreTheSame) {
  std::uint64_t bytes = 0;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kChunk, kChunk + 1, 5 * kChunk + 7}) {
    write_both(std::to_string(size), contents_of(size, 3));
    bytes += size;
  }
  for (const std::string tree : {"source/", "target/"}) {
    directory_.make_directory(tree + "d");
    directory_.make_directory(tree + "d/empty");
    directory_.make_symlink("nowhere", tree + "link");
  }
  write_both("d/name with \n and \xff", "odd");
  // Neither modes nor times are contents.
  ::chmod(directory_.path("target/1").c_str(), 0600);
  const LocalOutcome outcome = compare();
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_TRUE(found(outcome).empty());
  EXPECT_EQ(outcome.files.total, 6u);
  EXPECT_EQ(outcome.files.unchanged, 6u);
  EXPECT_EQ(outcome.bytes.unchanged, bytes + 3);
}

TEST_P(CompareSession, EachDifferenceIsNamed) {
  write_both("same", "same");
  directory_.write("source/small", "small");
  directory_.write("target/small", "smell");
  std::string large = contents_of(5 * kChunk + 7, 1);
  directory_.write("source/large", large);
  large[3 * kChunk] ^= 1;
  directory_.write("target/large", large);
  directory_.write("source/long", "0123");
  directory_.write("target/long", "01");
  directory_.write("source/gone", "gone");
  directory_.write("target/more", "more");
  directory_.make_symlink("a", "source/link");
  directory_.make_symlink("b", "target/link");
  directory_.write("source/file", "file");
  directory_.make_symlink("file", "target/file");
  const LocalOutcome outcome = compare();
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(found(outcome), (std::vector<std::string>{
                                "contents large", "contents small", "extra more", "missing gone",
                                "size long 2 bytes instead of 4", "symlink link to b instead of a",
                                "type file a symlink instead of a file"}));
  EXPECT_EQ(outcome.files.unchanged, 1u);
}

TEST_P(CompareSession, ADirectoryIsOneDifference) {
  for (const std::string path : {"source/missing", "source/other", "target/extra", "target/was"}) {
    directory_.make_directory(path);
    directory_.make_directory(path + "/below");
    directory_.write(path + "/below/file", "x");
  }
  directory_.write("target/other", "a file");
  directory_.write("source/was", "a file");
  const LocalOutcome outcome = compare();
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(found(outcome), (std::vector<std::string>{"extra extra a directory", "missing missing",
                                                      "type other a file instead of a directory",
                                                      "type was a directory instead of a file"}));
}

TEST_P(CompareSession, NothingIsWritten) {
  write_both("a", "a");
  directory_.write("source/b", contents_of(3 * kChunk, 1));
  directory_.write("target/b", contents_of(3 * kChunk, 2));
  directory_.make_symlink("x", "source/link");
  directory_.make_directory("source/d");
  const auto before = list_tree(directory_.path());
  EXPECT_EQ(found(compare()).size(), 3u);
  EXPECT_EQ(list_tree(directory_.path()), before);
  for (const FileOperation operation :
       {FileOperation::kWrite, FileOperation::kTruncate, FileOperation::kMakeDirectory,
        FileOperation::kMakeDirectoryPath, FileOperation::kMakeSymlink, FileOperation::kRename,
        FileOperation::kUnlink, FileOperation::kSetMode, FileOperation::kSetMtime,
        FileOperation::kTryLock}) {
    EXPECT_EQ(harness_->files().count(operation), 0u) << int(operation);
  }
}

TEST_P(CompareSession, AFileAloneIsComparedAlone) {
  directory_.write("source/file", "one");
  directory_.write("target/name", "two");
  directory_.write("target/other", "not compared");
  EXPECT_EQ(found(compare("source/file", "target/name")),
            std::vector<std::string>{"contents name"});
  EXPECT_EQ(found(compare("source/file", "target/absent")),
            std::vector<std::string>{"missing absent"});
}

TEST_P(CompareSession, ATargetThatIsNotThereIsNoDifference) {
  directory_.write("source/file", "one");
  const LocalOutcome outcome = compare("source", "absent");
  EXPECT_EQ(outcome.receiver.status.code(), ErrorCode::kUnusable);
  EXPECT_TRUE(found(outcome).empty());
}

TEST_P(CompareSession, ManyEntriesAreComparedWhateverTheWindow) {
  constexpr int kMany = 3000;
  for (int i = 0; i < kMany; ++i) write_both(std::to_string(i), std::to_string(i * 7));
  directory_.write("target/1234", "0000");
  const LocalOutcome outcome = compare();
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(found(outcome), std::vector<std::string>{"contents 1234"});
  EXPECT_EQ(outcome.files.unchanged, std::uint64_t{kMany - 1});
}

// A file that one side cannot read is an error there, and no difference.
TEST_P(CompareSession, WhatCannotBeReadIsAnErrorAndNoDifference) {
  write_both("file", "contents");
  write_both("other", "contents");
  for (const std::uint64_t nth : {1u, 2u}) {
    prepare_ = [nth](SessionHarness& harness) {
      harness.files().only_about("file");
      harness.files().fail(FileOperation::kOpenFile, nth, EIO);
    };
    const LocalOutcome outcome = compare();
    EXPECT_TRUE(outcome.sender.status.ok() && outcome.receiver.status.ok()) << outcome.text();
    EXPECT_EQ(outcome.sender.errors.size() + outcome.receiver.errors.size(), 1u) << outcome.text();
    EXPECT_TRUE(found(outcome).empty());
    EXPECT_EQ(outcome.files.unchanged, 1u);
  }
}

// Each file operation fails once, the first, the second and so on: never is anything called the
// same that is not, and what is not compared is told.
TEST_P(CompareSession, TroubleIsNeverTakenForSameness) {
  write_both("a", "a");
  write_both("b", contents_of(3 * kChunk, 1));
  directory_.make_directory("source/d");
  directory_.make_directory("target/d");
  write_both("d/c", "c");
  directory_.write("source/d/x", "x");
  directory_.write("target/d/x", "y");
  for (const FileOperation operation :
       {FileOperation::kOpenPath, FileOperation::kOpenDirectory, FileOperation::kOpenFile,
        FileOperation::kList, FileOperation::kStat, FileOperation::kStatAt, FileOperation::kRead}) {
    for (std::uint64_t nth = 1;; ++nth) {
      prepare_ = [operation, nth](SessionHarness& harness) {
        harness.files().fail(operation, nth, EIO);
      };
      const LocalOutcome outcome = compare();
      const std::vector<std::string> differences = found(outcome);
      if (harness_->files().failures() == 0) {
        EXPECT_EQ(differences, std::vector<std::string>{"contents d/x"});
        break;
      }
      EXPECT_TRUE(!outcome.is_clean() || differences == std::vector<std::string>{"contents d/x"})
          << int(operation) << " " << nth << ": " << outcome.text();
    }
  }
}

// The Nth message is the last, or the connection's end: an end that says that all is well has said
// everything.
TEST_P(CompareSession, AConnectionThatBreaksIsNeverTakenForSameness) {
  write_both("a", "a");
  directory_.write("source/b", "b");
  directory_.write("target/b", "c");
  directory_.write("target/more", "x");
  using Kind = StreamDamage::Kind;
  for (const Kind kind : {Kind::kReset, Kind::kForged, Kind::kStall}) {
    for (std::uint64_t nth = 1;; ++nth) {
      prepare_ = [kind, nth](SessionHarness& harness) {
        harness.stream_damage = {.kind = kind, .of_control = true, .nth = nth, .lasting = false};
      };
      const LocalOutcome outcome = compare("source", "target", std::chrono::milliseconds(400));
      for (const HalfOutcome* half : {&outcome.sender, &outcome.receiver}) {
        if (!half->status.ok()) continue;
        EXPECT_EQ(half->differences.size(), 2u) << int(kind) << " " << nth;
      }
      if (!outcome.was_damaged) {
        EXPECT_TRUE(outcome.is_clean()) << outcome.text();
        EXPECT_GT(nth, 8u);
        break;
      }
      ASSERT_LT(nth, 100u);
    }
  }
}

TEST_P(CompareSession, ASourceThatCannotBeListedMakesNothingExtra) {
  directory_.make_directory("source/d");
  directory_.make_directory("target/d");
  write_both("d/file", "x");
  directory_.write("target/more", "x");
  prepare_ = [](SessionHarness& harness) { harness.files().fail(FileOperation::kList, 2, EACCES); };
  const LocalOutcome outcome = compare();
  EXPECT_TRUE(found(outcome).empty());
  EXPECT_EQ(outcome.sender.errors.size(), 1u) << outcome.text();
  EXPECT_EQ(outcome.receiver.notes,
            std::vector<std::string>{
                "part of the source could not be listed: what only the target has was not looked "
                "for"});
}

// As by a run with --publish=tree: what has been compared is not what stands there.
TEST_P(CompareSession, ATargetThatIsSwitchedMeanwhileIsSaidToBe) {
  write_both("file", "x");
  directory_.make_directory("next");
  bool switched = false;
  prepare_ = [&](SessionHarness& harness) {
    harness.files().on_operation([&](const RecordedOperation& operation) {
      if (operation.operation != FileOperation::kList || std::exchange(switched, true)) return;
      ASSERT_EQ(::rename(directory_.path("target").c_str(), directory_.path("old").c_str()), 0);
      ASSERT_EQ(::rename(directory_.path("next").c_str(), directory_.path("target").c_str()), 0);
    });
  };
  const LocalOutcome outcome = compare();
  EXPECT_TRUE(switched);
  ASSERT_EQ(outcome.receiver.errors.size(), 1u) << outcome.text();
  EXPECT_EQ(outcome.receiver.errors[0].path, directory_.path("target"));
  EXPECT_EQ(outcome.receiver.errors[0].code, ErrorCode::kSourceChanged);
  EXPECT_EQ(outcome.receiver.errors[0].message, "comparing: it was replaced meanwhile, as a whole");
}

TEST_P(CompareSession, ASpecialFileIsAnErrorOnEitherSide) {
  ASSERT_EQ(::mkfifo(directory_.path("source/fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(directory_.path("target/fifo").c_str(), 0600), 0);
  const LocalOutcome outcome = compare();
  EXPECT_TRUE(found(outcome).empty());
  ASSERT_EQ(outcome.sender.errors.size(), 1u);
  ASSERT_EQ(outcome.receiver.errors.size(), 1u);
  EXPECT_EQ(outcome.receiver.errors[0].message,
            "comparing: a FIFO is not compared by this version");
}

FGSYNC_TEST_ON_EACH_ENGINE(CompareSession);

}  // namespace
}  // namespace fgsync::transfer
