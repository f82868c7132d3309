#include "transfer/error_log.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/limits.h"

namespace fgsync::transfer {
namespace {

TEST(ErrorLog, CountsWhatTheSourceDidApartFromTheRest) {
  ErrorLog log;
  log.add("a", Status(ErrorCode::kSourceChanged, "vanished"));
  log.add("b", Status(ErrorCode::kIoError, "bad block"));
  log.add(ErrorEntry{"c", ErrorCode::kSourceChanged, "changed"});
  EXPECT_EQ(log.total(), 3u);
  EXPECT_EQ(log.changed_count(), 2u);
  EXPECT_EQ(log.failed_count(), 1u);
  const std::vector<ErrorEntry> errors = log.errors();
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[1].path, "b");
  EXPECT_EQ(errors[1].code, ErrorCode::kIoError);
  EXPECT_EQ(errors[1].message, "bad block");
}

TEST(ErrorLog, CountsBeyondWhatItKeeps) {
  ErrorLog log;
  for (std::size_t i = 0; i < limits::kErrorsKeptMax + 7; ++i) {
    log.add(std::to_string(i), Status(ErrorCode::kSourceChanged, "vanished"));
  }
  EXPECT_EQ(log.errors().size(), limits::kErrorsKeptMax);
  EXPECT_EQ(log.total(), limits::kErrorsKeptMax + 7);
  EXPECT_EQ(log.changed_count(), limits::kErrorsKeptMax + 7);
}

TEST(ErrorLog, SaysEachThingOnceAndNoMoreThanAMessageHolds) {
  ErrorLog log;
  log.note("one");
  log.note("two");
  log.note("one");
  EXPECT_EQ(log.notes(), (std::vector<std::string>{"one", "two"}));
  for (int i = 0; i < 1000; ++i) log.note(std::to_string(i));
  EXPECT_EQ(log.notes().size(), limits::kNoteBatchEntries);
}

TEST(ErrorLog, TakesErrorsFromSeveralThreads) {
  ErrorLog log;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 500; ++i) {
        log.add("path", Status(ErrorCode::kIoError, "why"));
        log.note(std::to_string(i % 3));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.total(), 2000u);
  EXPECT_EQ(log.notes().size(), 3u);
}

}  // namespace
}  // namespace fgsync::transfer
