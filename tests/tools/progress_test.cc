#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "console.h"
#include "progress_meter.h"
#include "progress_printer.h"

namespace fgsync::tools {
namespace {

ProgressSnapshot snapshot_at(double seconds, std::uint64_t done, std::uint64_t total, bool known) {
  ProgressSnapshot snapshot;
  snapshot.seconds = seconds;
  snapshot.total_known = known;
  snapshot.bytes_done = done;
  snapshot.bytes_total = total;
  snapshot.files_done = done > 0 ? 1 : 0;
  snapshot.files_total = 3;
  snapshot.streams = 4;
  return snapshot;
}

// What a console wrote into a pipe; small enough for the pipe's buffer.
class PipedConsole {
 public:
  PipedConsole() {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    console_.emplace(ends_[1]);
  }
  ~PipedConsole() {
    close_writer();
    ::close(ends_[0]);
  }
  Console& console() { return *console_; }

  std::string written() {
    close_writer();
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got; (got = ::read(ends_[0], buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

  std::array<int, 2> ends_{};
  std::optional<Console> console_;
};

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(ProgressMeter, HasNoPercentBeforeTheTotalIsKnown) {
  ProgressMeter meter;
  const ProgressView view = meter.update(snapshot_at(1, 50, 100, false));
  EXPECT_FALSE(view.percent.has_value());
  EXPECT_FALSE(view.seconds_left.has_value());
}

TEST(ProgressMeter, PercentNeverRunsBackwards) {
  ProgressMeter meter;
  EXPECT_EQ(meter.update(snapshot_at(1, 50, 100, true)).percent, 50);
  EXPECT_EQ(meter.update(snapshot_at(2, 60, 200, true)).percent, 50);
  EXPECT_EQ(meter.update(snapshot_at(3, 40, 200, true)).percent, 50);
  EXPECT_EQ(meter.update(snapshot_at(4, 120, 200, true)).percent, 60);
}

TEST(ProgressMeter, HundredIsForTheEndAlone) {
  ProgressMeter meter;
  ProgressSnapshot almost = snapshot_at(1, 999'999, 1'000'000, true);
  EXPECT_EQ(meter.update(almost).percent, 99);
  almost.bytes_done = almost.bytes_total;  // a file is still being published
  EXPECT_EQ(meter.update(almost).percent, 99);
  almost.files_done = almost.files_total;
  EXPECT_EQ(meter.update(almost).percent, 100);
}

TEST(ProgressMeter, CountsFilesWhereNoByteHasToMove) {
  ProgressMeter meter;
  ProgressSnapshot empty = snapshot_at(1, 0, 0, true);
  empty.files_done = 1;
  empty.files_total = 4;
  EXPECT_EQ(meter.update(empty).percent, 25);
}

TEST(ProgressMeter, RateIsThatOfTheLastSeconds) {
  ProgressMeter meter;
  ProgressView view;
  for (int i = 0; i <= 100; ++i) {
    // 1000 B/s for 5 s, then 100 B/s.
    const double seconds = i / 10.0;
    const double bytes = seconds <= 5 ? seconds * 1000 : 5000 + (seconds - 5) * 100;
    view = meter.update(snapshot_at(seconds, static_cast<std::uint64_t>(bytes), 10'000, true));
  }
  EXPECT_NEAR(view.rate_bytes_per_second, 100, 25);
  ASSERT_TRUE(view.seconds_left.has_value());
  EXPECT_NEAR(*view.seconds_left, 45, 12);
}

TEST(ProgressLines, TellEverythingThatFits) {
  ProgressMeter meter;
  const ProgressView view = meter.update(snapshot_at(2, 1'600'000'000, 3'800'000'000, true));
  EXPECT_EQ(progress_lines(view, false, 100),
            (std::vector<std::string>{
                "42%  1.6 GB of 3.8 GB  800 MB/s  ETA 2.8 s  1/3 files  4 streams"}));
  EXPECT_EQ(progress_lines(view, true, 100).size(), 2u);
  for (std::size_t width = 0; width < 90; ++width) {
    for (const std::string& line : progress_lines(view, true, width)) {
      EXPECT_LT(line.size(), std::max<std::size_t>(width, 1));
    }
  }
}

TEST(ProgressLines, AGrowingTotalIsNotShownAsOne) {
  ProgressMeter meter;
  const ProgressView view = meter.update(snapshot_at(1, 1000, 5000, false));
  EXPECT_EQ(progress_lines(view, false, 80).front(), "1.0 KB  1.0 KB/s  1/3+ files  4 streams");
}

TEST(ProgressPrinter, SaysNothingWithoutATerminalUnlessAsked) {
  PipedConsole pipe;
  ProgressPrinter printer(pipe.console(), OutputOptions{});
  for (int i = 0; i < 100; ++i) printer.update(snapshot_at(i, 1, 2, true));
  printer.finish();
  EXPECT_EQ(pipe.written(), "");
}

TEST(ProgressPrinter, PrintsALineEveryTenSecondsWhenAskedWithoutATerminal) {
  PipedConsole pipe;
  OutputOptions output;
  output.progress = ProgressMode::kAlways;
  ProgressPrinter printer(pipe.console(), output);
  for (int i = 0; i < 350; ++i) printer.update(snapshot_at(i / 10.0, 1, 2, true));
  printer.finish();
  const std::string text = pipe.written();
  EXPECT_EQ(lines_in(text), 3u);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST(ProgressPrinter, JsonIsOneObjectALineAndTellsTheEnd) {
  PipedConsole pipe;
  OutputOptions output;
  output.progress = ProgressMode::kJson;
  ProgressPrinter printer(pipe.console(), output);
  for (int i = 0; i <= 25; ++i) {
    printer.update(snapshot_at(i / 10.0, static_cast<std::uint64_t>(i), 25, i > 10));
  }
  printer.finish();
  std::istringstream lines(pipe.written());
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(objects.size(), 4u);
  EXPECT_TRUE(objects.front()["percent"].is_null());
  EXPECT_EQ(objects.back()["bytes_done"], 25);
  EXPECT_EQ(objects.back()["total_known"], true);
}

// A pseudo-terminal's master side, and a console on the other.
class ProgressOnTerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::setenv("TERM", "xterm", 1), 0);
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(master_, 0);
    ASSERT_EQ(::grantpt(master_), 0);
    ASSERT_EQ(::unlockpt(master_), 0);
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    ASSERT_GE(slave_, 0);
  }
  void TearDown() override {
    ::close(slave_);
    ::close(master_);
  }
  // What was written so far. The kernel hands it over in pieces; a last byte of ours marks the end.
  std::string shown() {
    EXPECT_EQ(::write(slave_, "|", 1), 1);
    std::string text;
    std::array<char, 4096> buffer;
    while (!text.ends_with('|')) {
      const ssize_t got = ::read(master_, buffer.data(), buffer.size());
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    text.resize(text.size() - std::min<std::size_t>(text.size(), 1));
    return text;
  }

  int master_ = -1;
  int slave_ = -1;
};

TEST_F(ProgressOnTerminal, IsRedrawnAtMostTenTimesASecondAndTakenAwayAtTheEnd) {
  Console console(slave_);
  ASSERT_TRUE(console.is_terminal());
  ProgressPrinter printer(console, OutputOptions{});
  for (int i = 0; i < 1000; ++i) printer.update(snapshot_at(i / 1000.0, 1, 2, true));
  printer.finish();
  const std::string text = shown();
  std::size_t drawn = 0;
  for (std::size_t at = text.find("50%"); at != std::string::npos; at = text.find("50%", at + 1)) {
    ++drawn;
  }
  EXPECT_GE(drawn, 9u);
  EXPECT_LE(drawn, 10u);
  EXPECT_TRUE(text.ends_with("\r\x1b[J"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST_F(ProgressOnTerminal, MessagesStandAboveIt) {
  Console console(slave_);
  console.show_progress({"one", "two"});
  console.print("message");
  // The terminal writes a line end as CR LF.
  EXPECT_EQ(shown(), "one\r\ntwo\r\x1b[1A\x1b[Jmessage\r\n");
}

TEST_F(ProgressOnTerminal, QuietMeansNone) {
  Console console(slave_);
  OutputOptions output;
  output.quiet = true;
  ProgressPrinter printer(console, output);
  printer.update(snapshot_at(1, 1, 2, true));
  printer.finish();
  console.print("end");
  EXPECT_EQ(shown(), "end\r\n");
}

}  // namespace
}  // namespace fgsync::tools
