// A tree against its receipt, on real files with both engines. What differs is made by hand.
#include "fgsync/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "io/posix_environment.h"
#include "receipt/receipt_writer.h"
#include "storage/storage_fixture.h"
#include "support/test_runtime.h"

namespace fgsync {
namespace {

constexpr std::uint32_t kChunkBytes = 64 * 1024;

class Listener final : public VerifyObserver {
 public:
  void on_progress(const ProgressSnapshot& snapshot) override { last = snapshot; }
  void on_note(const std::string& note) override { notes.push_back(note); }
  void on_difference(const Difference& difference) override {
    differences.emplace(difference.path,
                        std::string(difference_name(difference.kind)) + ": " + difference.detail);
  }
  void on_extra(const std::string& path) override { extra.insert(path); }

  ProgressSnapshot last;
  std::vector<std::string> notes;
  std::multimap<std::string, std::string> differences;
  std::set<std::string> extra;
};

class VerifyTree : public testing::StorageFixture, public ::testing::WithParamInterface<IoEngine> {
 protected:
  void SetUp() override {
    if (!testing::TestRuntime::create(GetParam())) GTEST_SKIP() << io::uring_unavailable_reason();
  }

  // A file with contents of its own, and its record.
  receipt::FileRecord publish(const std::string& path, std::size_t size) {
    std::string contents(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
      contents[i] = char((i * 2654435761u + path.size() * 7919) >> 13);
    }
    directory.write(path, contents);
    std::vector<wire::Checksum> chunks;
    for (std::size_t at = 0; at == 0 || at < size; at += kChunkBytes) {
      chunks.push_back(wire::checksum_of(testing::as_bytes(contents.substr(at, kChunkBytes))));
    }
    const struct stat status = directory.lstat(path);
    return {.path = path,
            .size = size,
            .mtime = {status.st_mtim.tv_sec, std::uint32_t(status.st_mtim.tv_nsec)},
            .chunk_bytes = kChunkBytes,
            .digest = wire::file_digest(chunks)};
  }
  // As one run after the other; only the last may not have ended well.
  void write_receipt(const std::vector<std::vector<receipt::Record>>& runs, bool settled = true) {
    storage::DirectoryTree target(*files, open_root(), 4);
    for (const auto& records : runs) {
      receipt::ReceiptWriter writer(*environment_, target, true, [](const std::string&) {});
      writer.append(records);
      if (settled || &records != &runs.back()) writer.settle();
    }
  }
  void publish_all() {
    directory.make_directory("d");
    directory.make_directory("d/below");
    write_receipt(
        {{publish("empty", 0), publish("small", 100), publish("d/packed", 200'000),
          publish("d/large", 5 * kChunkBytes + 17), publish("d/below/larger", 40 * kChunkBytes)}});
  }
  VerifyReport verify(const std::string& path = {}) {
    VerifyOptions options;
    options.tree = path.empty() ? directory.path() : path;
    options.report_extra = true;
    options.io_engine = GetParam();
    listener = Listener();
    return verify_tree(options, listener, cancel);
  }
  // The modification time as it was, so that nothing but the contents tells.
  void flip(const std::string& path, std::size_t at) {
    const struct stat before = directory.lstat(path);
    std::string contents = directory.read(path);
    contents[at] = char(contents[at] ^ 1);
    directory.write(path, contents);
    set_time(path, before.st_mtim);
  }
  void set_time(const std::string& path, timespec time) {
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, directory.path(path).c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  using Differences = std::multimap<std::string, std::string>;

  const std::unique_ptr<io::Environment> environment_ = io::make_posix_environment();
  Listener listener;
  CancelToken cancel;
};

INSTANTIATE_TEST_SUITE_P(Engines, VerifyTree, ::testing::Values(IoEngine::kPosix, IoEngine::kUring),
                         testing::engine_of);

TEST_P(VerifyTree, WhatIsAsTheReceiptSaysIsVerified) {
  publish_all();
  const VerifyReport report = verify();
  EXPECT_EQ(report.exit_code, 0) << report.status.message();
  EXPECT_EQ(report.files_verified, 5u);
  EXPECT_EQ(report.bytes_read, 100u + 200'000 + 45u * kChunkBytes + 17);
  EXPECT_EQ(report.files_extra, 0u);
  EXPECT_EQ(report.differences_total, 0u);
  EXPECT_TRUE(listener.notes.empty());
  EXPECT_EQ(report.io_engine, GetParam() == IoEngine::kUring ? "uring" : "posix");
}

TEST_P(VerifyTree, OneOtherByteAnywhereIsFound) {
  publish_all();
  for (const auto& [path, at] : std::map<std::string, std::vector<std::size_t>>{
           {"small", {0, 99}},
           {"d/packed", {0, kChunkBytes, 199'999}},
           {"d/large", {0, kChunkBytes - 1, 3 * kChunkBytes, 5 * kChunkBytes + 16}},
           {"d/below/larger", {20 * kChunkBytes + 5}}}) {
    for (const std::size_t place : at) {
      flip(path, place);
      const VerifyReport report = verify();
      EXPECT_EQ(report.exit_code, 40);
      EXPECT_EQ(listener.differences, (Differences{{path, "contents: "}})) << place;
      EXPECT_EQ(report.files_verified, 4u);
      EXPECT_EQ(report.files_different, 1u);
      flip(path, place);
    }
  }
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_P(VerifyTree, EachKindOfDifferenceIsNamed) {
  publish_all();
  ASSERT_EQ(::unlink(directory.path("small").c_str()), 0);
  ASSERT_EQ(::truncate(directory.path("d/packed").c_str(), 7), 0);
  ASSERT_EQ(::unlink(directory.path("empty").c_str()), 0);
  directory.make_symlink("small", "empty");
  set_time("d/large", {1'700'000'000, 5});
  const struct stat status = directory.lstat("d/below/larger");
  flip("d/below/larger", 9);
  set_time("d/below/larger", {status.st_mtim.tv_sec + 1, status.st_mtim.tv_nsec});
  const VerifyReport report = verify();
  EXPECT_EQ(report.exit_code, 40);
  EXPECT_EQ(report.files_different, 5u);
  EXPECT_EQ(report.differences_total, 6u);
  EXPECT_EQ(report.differences.size(), 6u);
  ASSERT_EQ(listener.differences.count("d/below/larger"), 2u);
  listener.differences.erase("d/below/larger");
  EXPECT_EQ(listener.differences.find("d/large")->second.substr(0, 50),
            "time: 2023-11-14T22:13:20.000000005Z instead of 20");
  listener.differences.erase("d/large");
  EXPECT_EQ(listener.differences, (Differences{{"small", "missing: "},
                                               {"d/packed", "size: 7 bytes instead of 200000"},
                                               {"empty", "type: a symlink instead of a file"}}));
}

TEST_P(VerifyTree, EverythingBelowALostDirectoryIsMissing) {
  publish_all();
  ASSERT_EQ(::rename(directory.path("d").c_str(), directory.path("elsewhere").c_str()), 0);
  EXPECT_EQ(verify().exit_code, 40);
  EXPECT_EQ(listener.differences, (Differences{{"d/packed", "missing: "},
                                               {"d/large", "missing: "},
                                               {"d/below/larger", "missing: "}}));
  EXPECT_EQ(listener.extra.size(), 3u);
}

TEST_P(VerifyTree, FilesThatTheReceiptDoesNotKnowAreNoDifference) {
  publish_all();
  directory.write("other", "x");
  directory.write("d/other", "x");
  directory.make_symlink("nowhere", "link");
  directory.make_directory("empty-directory");
  const VerifyReport report = verify();
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.files_extra, 2u);
  EXPECT_EQ(listener.extra, (std::set<std::string>{"other", "d/other"}));
}

TEST_P(VerifyTree, OneFileIsCheckedByItself) {
  publish_all();
  flip("small", 5);
  EXPECT_EQ(verify(directory.path("d/large")).exit_code, 3);  // no receipt in d
  EXPECT_EQ(verify(directory.path("empty")).exit_code, 0);
  EXPECT_EQ(verify(directory.path("small")).exit_code, 40);
  EXPECT_EQ(listener.differences, (Differences{{"small", "contents: "}}));
  directory.write("other", "x");
  const VerifyReport other = verify(directory.path("other"));
  EXPECT_EQ(other.files_extra, 1u);
  EXPECT_EQ(verify(directory.path("missing")).exit_code, 3);
}

TEST_P(VerifyTree, NamesOfAnyBytesAreFound) {
  std::vector<receipt::Record> records;
  const std::vector<std::string> names = {"new\nline", "\xff\xfe", " ",
                                          "-rf",       "\x1b[31m", std::string(255, 'x')};
  for (const std::string& name : names) {
    records.emplace_back(publish(name, 10));
    flip(name, 1);
  }
  write_receipt({records});
  EXPECT_EQ(verify().exit_code, 40);
  EXPECT_EQ(listener.differences.size(), names.size());
  for (const std::string& name : names) EXPECT_EQ(listener.differences.count(name), 1u);
}

TEST_P(VerifyTree, TheLastRecordOfAPathCounts) {
  const receipt::FileRecord old = publish("file", 10);
  const receipt::FileRecord now = publish("file", 11);
  write_receipt({{old}, {now}});
  EXPECT_EQ(verify().exit_code, 0);
  write_receipt({{old}});
  EXPECT_EQ(verify().exit_code, 40);
}

TEST_P(VerifyTree, WhatAKilledRunHasLeftIsNoDifference) {
  const receipt::FileRecord kept = publish("kept", 10);
  const receipt::FileRecord published = publish("published", 20);
  receipt::FileRecord not_yet = kept;
  not_yet.size = 33;
  receipt::FileRecord never = published;
  never.path = "never published";
  write_receipt({{kept}, {published, not_yet, never}}, /*settled=*/false);
  const VerifyReport report = verify();
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.files_verified, 2u);
  EXPECT_EQ(listener.notes.size(), 1u);
  flip("published", 0);
  EXPECT_EQ(verify().exit_code, 40);
}

TEST_P(VerifyTree, WhatCannotBeCheckedAtAllIs3) {
  EXPECT_EQ(verify(directory.path("missing")).exit_code, 3);
  EXPECT_EQ(verify().exit_code, 3);  // no state directory
  directory.make_directory(".fgsync");
  const VerifyReport none = verify();
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_NE(none.status.message().find("no receipt"), std::string::npos);
  directory.write(".fgsync/receipt", "");
  EXPECT_EQ(verify().exit_code, 3);
  directory.write(".fgsync/receipt", std::string(100, 'x'));
  EXPECT_EQ(verify().exit_code, 3);
  ASSERT_EQ(::unlink(directory.path(".fgsync/receipt").c_str()), 0);
  directory.make_fifo(".fgsync/receipt");
  EXPECT_EQ(verify().exit_code, 3);
}

TEST_P(VerifyTree, AReceiptOfANewerVersionIs4) {
  publish_all();
  std::string newer = directory.read(".fgsync/receipt");
  newer[8] = 2;
  directory.write(".fgsync/receipt", newer);
  EXPECT_EQ(verify().exit_code, 4);
}

TEST_P(VerifyTree, ADamagedReceiptIsNeverASuccess) {
  publish_all();
  const std::string whole = directory.read(".fgsync/receipt");
  for (const std::size_t at : {std::size_t{70}, whole.size() / 2}) {
    std::string damaged = whole;
    damaged[at] = char(damaged[at] ^ 4);
    directory.write(".fgsync/receipt", damaged);
    const VerifyReport report = verify();
    EXPECT_EQ(report.exit_code, 3) << at;
    EXPECT_NE(report.status.message().find("damaged"), std::string::npos);
    EXPECT_GT(report.files_extra, 0u);
  }
  // What is found all the same counts more.
  ASSERT_EQ(::unlink(directory.path("empty").c_str()), 0);
  std::string damaged = whole;
  damaged[whole.size() / 2] = char(damaged[whole.size() / 2] ^ 4);
  directory.write(".fgsync/receipt", damaged);
  EXPECT_EQ(verify().exit_code, 40);
}

TEST_P(VerifyTree, AFileThatCannotBeReadIsNamedAndIs23) {
  publish_all();
  ASSERT_EQ(::chmod(directory.path("small").c_str(), 0), 0);
  ASSERT_EQ(::chmod(directory.path("d/below").c_str(), 0), 0);
  for (const char* path :
       {"", ".fgsync", ".fgsync/receipt", "empty", "small", "d/packed", "d/large"}) {
    ASSERT_EQ(::lchown(directory.path(path).c_str(), testing::UnprivilegedScope::kNobody, 0), 0);
  }
  const testing::UnprivilegedScope user;
  const VerifyReport report = verify();
  EXPECT_EQ(report.exit_code, 23) << report.status.message();
  EXPECT_EQ(report.files_verified, 3u);
  std::set<std::string> failed;
  for (const ErrorEntry& error : report.errors) failed.insert(error.path);
  EXPECT_EQ(failed, (std::set<std::string>{"small", "d/below", "d/below/larger"}));
  EXPECT_EQ(report.differences_total, 0u);
}

TEST_P(VerifyTree, ACancelEndsIt) {
  publish_all();
  flip("small", 1);
  cancel.request();
  EXPECT_EQ(verify().exit_code, 20);
}

TEST_P(VerifyTree, NothingIsWritten) {
  publish_all();
  const auto state = [this] {
    std::string text;
    for (const char* path : {"", ".fgsync", ".fgsync/receipt", "small", "d", "d/large"}) {
      const struct stat status = directory.lstat(path);
      text += std::to_string(status.st_mtim.tv_nsec) + " " +
              std::to_string(status.st_ctim.tv_nsec) + " " + std::to_string(status.st_ino) + "\n";
    }
    return text;
  };
  const std::string before = state();
  EXPECT_EQ(verify().exit_code, 0);
  EXPECT_EQ(state(), before);
}

}  // namespace
}  // namespace fgsync
