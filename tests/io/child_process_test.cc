#include "io/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

namespace fgsync::io {
namespace {

using namespace std::chrono_literals;

ChildProcess started(const std::vector<std::string>& argv) {
  auto child = ChildProcess::start(argv);
  EXPECT_TRUE(child.ok()) << child.status().message();
  return std::move(*child);
}

std::string all_output(ChildProcess& child) {
  std::string text;
  for (;;) {
    const auto output = child.read_output(10s);
    EXPECT_TRUE(output.ok());
    if (!output.ok() || !output->has_value()) return text;
    if ((*output)->empty()) {
      ADD_FAILURE() << "nothing came in ten seconds";
      return text;
    }
    text.append(reinterpret_cast<const char*>((*output)->data()), (*output)->size());
  }
}

TEST(ChildProcessTest, WhatIsWrittenComesBackFromCat) {
  ChildProcess child = started({"cat"});
  ASSERT_TRUE(child.write_input("first\n").ok());
  ASSERT_TRUE(child.write_input("second\n").ok());
  child.close_input();
  EXPECT_EQ(all_output(child), "first\nsecond\n");
  EXPECT_EQ(child.wait_for_exit(10s), 0);
}

TEST(ChildProcessTest, AClosedInputIsSeen) {
  ChildProcess child = started({"sh", "-c", "cat >/dev/null; echo ended"});
  child.close_input();
  EXPECT_EQ(all_output(child), "ended\n");
}

TEST(ChildProcessTest, ExitStatusIsToldAsOftenAsAsked) {
  ChildProcess child = started({"sh", "-c", "exit 7"});
  EXPECT_EQ(child.wait_for_exit(10s), 7);
  EXPECT_EQ(child.wait_for_exit(0s), 7);
}

TEST(ChildProcessTest, ASignalIs128AndItsNumber) {
  ChildProcess child = started({"sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(child.wait_for_exit(10s), 128 + SIGTERM);
}

TEST(ChildProcessTest, ARunningProgramHasNoStatusYet) {
  ChildProcess child = started({"cat"});
  EXPECT_EQ(child.wait_for_exit(0s), std::nullopt);
  const auto output = child.read_output(0s);
  ASSERT_TRUE(output.ok());
  ASSERT_TRUE(output->has_value());
  EXPECT_TRUE((*output)->empty());
}

TEST(ChildProcessTest, AMissingProgramIsNotFound) {
  const auto child = ChildProcess::start({"fgsync-no-such-program"});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(child.status().message().find("fgsync-no-such-program"), std::string::npos);
}

TEST(ChildProcessTest, AFileThatIsNoProgramIsRefused) {
  const auto child = ChildProcess::start({"/etc/passwd"});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.status().code(), ErrorCode::kPermissionDenied);
}

TEST(ChildProcessTest, WritingToAProgramThatEndedIsALostConnectionAndNoSignal) {
  ChildProcess child = started({"true"});
  ASSERT_EQ(child.wait_for_exit(10s), 0);
  const Status written = child.write_input("text");
  EXPECT_EQ(written.code(), ErrorCode::kConnectionLost);
}

TEST(ChildProcessTest, SignalsAreThoseOfAFreshProgram) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  const auto disposition = ::signal(SIGPIPE, SIG_IGN);
  ChildProcess child = started({"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  const std::string output = all_output(child);
  ::signal(SIGPIPE, disposition);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  unsigned long blocked_in_child = ~0UL;
  unsigned long ignored_in_child = ~0UL;
  ASSERT_EQ(
      std::sscanf(output.c_str(), "SigBlk: %lx SigIgn: %lx", &blocked_in_child, &ignored_in_child),
      2);
  EXPECT_EQ(blocked_in_child, 0U);
  // The two real-time signals from 32 on are the C library's own; it ignores them in a spawned
  // program.
  EXPECT_EQ(ignored_in_child & 0x7FFFFFFF, 0U);
}

TEST(ChildProcessTest, PipesOfOneProgramDoNotLeakIntoTheNext) {
  const std::vector<std::string> list = {"sh", "-c", "ls /proc/self/fd | wc -l"};
  ChildProcess alone = started(list);
  const std::string expected = all_output(alone);
  ChildProcess other = started({"cat"});
  ChildProcess beside = started(list);
  EXPECT_EQ(all_output(beside), expected);
}

TEST(ChildProcessTest, ItStaysInOurProcessGroup) {
  ChildProcess child = started({"sh", "-c", "cut -d' ' -f5 /proc/self/stat"});
  EXPECT_EQ(all_output(child), std::to_string(::getpgrp()) + "\n");
}

TEST(ChildProcessTest, OneThatIgnoresItsEndIsEndedByTheDestructor) {
  pid_t pid = -1;
  {
    ChildProcess child =
        started({"sh", "-c", "trap '' TERM; echo $$; exec >&-; while :; do sleep 1; done"});
    pid = std::stoi(all_output(child));
    ASSERT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcessTest, MuchOutputArrivesWhole) {
  ChildProcess child = started({"head", "-c", "5000000", "/dev/zero"});
  EXPECT_EQ(all_output(child).size(), 5'000'000U);
  EXPECT_EQ(child.wait_for_exit(10s), 0);
}

}  // namespace
}  // namespace fgsync::io
