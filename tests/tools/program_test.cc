// The program as its users run it, where no transfer is needed to see the answer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "support/temporary_directory.h"

namespace fgsync::tools {
namespace {

using Words = std::vector<std::string>;

class Program : public ::testing::Test {
 protected:
  // With only HOME, PATH and `variables` in the environment.
  pid_t start(Words words, Words variables = {}) {
    words.insert(words.begin(), FGSYNC_PROGRAM);
    variables.push_back("HOME=" + directory_.path("home"));
    variables.push_back("PATH=/usr/bin:/bin");
    // Sanitizers say where they write their findings.
    for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
      const char* const value = ::getenv(name);
      if (value != nullptr) variables.push_back(std::string(name) + "=" + value);
    }
    const std::vector<char*> argv = pointers_to(words);
    const std::vector<char*> environment = pointers_to(variables);
    const std::string out = directory_.path("out");
    const std::string err = directory_.path("err");
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      for (int fd : closed_) ::close(fd);
      // A test run in the background inherits SIGINT ignored, and the program would respect that.
      for (int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
      ::execve(FGSYNC_PROGRAM, argv.data(), environment.data());
      ::_exit(127);
    }
    return child;
  }

  // The exit status, or -signal.
  static int wait_for(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(Words words, Words variables = {}) {
    return wait_for(start(std::move(words), std::move(variables)));
  }

  static std::vector<char*> pointers_to(Words& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  std::string out() { return directory_.read("out"); }
  std::string err() { return directory_.read("err"); }
  void configure(const std::string& text) {
    for (const char* folder : {"home", "home/.config", "home/.config/fgsync"}) {
      directory_.make_directory(folder);
    }
    directory_.write("home/.config/fgsync/config", text);
  }

  testing::TemporaryDirectory directory_;
  std::vector<int> closed_;  // in the program, from its start
};

TEST_F(Program, HelpGoesToStandardOutput) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_TRUE(out().starts_with("Usage: fgsync "));
  EXPECT_EQ(err(), "");
}

TEST_F(Program, VersionComesFirstAndCapabilitiesFollow) {
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_TRUE(out().starts_with("fgsync 0.1.0\n"));
  EXPECT_GT(out().size(), std::string("fgsync 0.1.0\n").size());
}

TEST_F(Program, MissingLocationsAreAShortUsageError) {
  for (const Words& words : std::initializer_list<Words>{{}, {"-h"}, {"a"}, {"-n", "a"}}) {
    EXPECT_EQ(run(words), 1);
    EXPECT_EQ(out(), "");
    EXPECT_NE(err().find("usage: fgsync"), std::string::npos);
    EXPECT_LT(err().size(), 200u);
  }
}

TEST_F(Program, WhatIsNotOfferedEnds4BeforeAnythingIsTouched) {
  directory_.make_directory("source");
  directory_.write("source/file", "contents");
  const std::string from = directory_.path("source");
  const std::string to = directory_.path("target");
  for (const char* option : {"--delete", "-H", "-aHAX", "--transport=rdma"}) {
    EXPECT_EQ(run({option, from, to}), 4) << option;
    EXPECT_FALSE(directory_.exists("target"));
    EXPECT_NE(err().find(": not offered by this version\n"), std::string::npos) << option;
  }
  EXPECT_EQ(run({"--delete", from, to}), 4);
  EXPECT_EQ(err(), "fgsync: --delete: not offered by this version\n");
  EXPECT_EQ(run({from, "fgsync://127.0.0.1/x"}), 4);
}

TEST_F(Program, LocationsThatMakeNoSenseAreUsageErrors) {
  EXPECT_EQ(run({"::1:/x", "d"}), 1);
  EXPECT_NE(err().find("brackets"), std::string::npos);
  EXPECT_EQ(run({"[::1:/x", "d"}), 1);
  EXPECT_EQ(run({"a:b", "c:d"}), 1);
  EXPECT_NE(err().find("./"), std::string::npos);
}

TEST_F(Program, LaterPlacesOfSettingsWin) {
  configure("streams = from-file\n");
  EXPECT_EQ(run({"a", "b"}), 1);
  EXPECT_NE(err().find("config:1: streams = from-file"), std::string::npos) << err();
  EXPECT_EQ(run({"a", "b"}, {"FGSYNC_STREAMS=from-variable"}), 1);
  EXPECT_NE(err().find("FGSYNC_STREAMS=from-variable"), std::string::npos) << err();
  EXPECT_EQ(run({"--streams=from-option", "a", "b"}, {"FGSYNC_STREAMS=from-variable"}), 1);
  EXPECT_NE(err().find("--streams=from-option"), std::string::npos) << err();
}

TEST_F(Program, AnUnknownSettingNamesFileAndKey) {
  configure("frobnicate = 1\n");
  EXPECT_EQ(run({"a", "b"}), 1);
  EXPECT_NE(err().find(".config/fgsync/config:1: frobnicate: "), std::string::npos) << err();
  // What does not need the configuration works all the same.
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_EQ(run({"--version"}), 0);
}

TEST_F(Program, ServeStandsAlone) { EXPECT_EQ(run({"--serve", "a", "b"}), 1); }

TEST_F(Program, StartsWithoutAnyOpenDescriptor) {
  closed_ = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_EQ(run({"--no-such-option", "a", "b"}), 1);
}

TEST_F(Program, ASignalEndsARunWith20) {
  directory_.make_directory("source");
  directory_.make_fifo("started");
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string shell = "sh -c 'echo >" + directory_.path("started") + "; exec cat'";
    const pid_t child = start({"-e", shell, directory_.path("source"), "nowhere:x"});
    EXPECT_EQ(directory_.read("started"), "\n");  // returns when the remote shell runs
    ASSERT_EQ(::kill(child, signal), 0);
    EXPECT_EQ(wait_for(child), 20) << err();
  }
}

TEST_F(Program, NoControlByteOfAnArgumentReachesTheTerminal) {
  EXPECT_EQ(run({"--no\x1b[2Jsuch", "a", "b"}), 1);
  EXPECT_EQ(err().find('\x1b'), std::string::npos);
  EXPECT_EQ(run({"\x1b[2J:/x", "b\n:/y"}), 1);
  EXPECT_EQ(err().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace fgsync::tools
