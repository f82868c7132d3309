// What counts as a stall, on a clock that the test moves.
#include "transfer/watchdog.h"

#include <gtest/gtest.h>

#include "support/manual_session.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kTimeout = 2s;
// The watchdog looks ten times a second.
constexpr std::chrono::milliseconds kLook = 100ms;

// What counts as progress.
constexpr std::uint64_t kEnough = 64 * 1024;

// What each side gets done between two looks, whether the peer says something, this side listens
// on.
struct Behaviour {
  std::uint64_t works = 0;
  bool peer_speaks = true;
  std::uint64_t peer_works = 0;
  bool listens_on = true;
  bool patient = false;
  std::chrono::milliseconds timeout = kTimeout;
};

class Watched {
 public:
  explicit Watched(const Behaviour& behaviour)
      : behaviour_(behaviour), manual_(behaviour.listens_on) {
    session().parameters.timeout = behaviour.timeout;
    watching_.spawn(manual_.io(), watchdog_.run());
  }
  ~Watched() {
    watchdog_.stop();
    manual_.run_for(0ms);
  }

  Session& session() { return manual_.session; }
  void say(const wire::Message& message) { manual_.say(message); }
  // Lets time pass, in which both sides behave as they do.
  ErrorCode after(std::chrono::milliseconds time) {
    for (auto passed = 0ms; passed < time; passed += kLook) {
      session().meter().add(Stage::kRead, io::Duration::zero(), behaviour_.works);
      peer_progress_ += behaviour_.peer_works;
      if (behaviour_.peer_speaks) manual_.say(wire::Heartbeat{peer_progress_, {}});
      manual_.run_for(kLook);
    }
    return session().status().code();
  }
  std::uint64_t told_progress() {
    const auto heartbeat = manual_.heard_last<wire::Heartbeat>();
    return heartbeat ? heartbeat->progress : 0;
  }

 private:
  const Behaviour behaviour_;
  std::uint64_t peer_progress_ = 0;
  ManualSession manual_;
  Watchdog watchdog_{manual_.session, [] { return Status(); },
                     [this] { return behaviour_.patient; }};
  io::TaskGroup watching_;
};

TEST(Watchdog, APeerThatSaysNothingIsATimeoutHoweverBusyThisSideIs) {
  Watched watched({.works = kEnough, .peer_speaks = false});
  EXPECT_EQ(watched.after(kTimeout - kLook), ErrorCode::kOk);
  EXPECT_EQ(watched.after(2 * kLook), ErrorCode::kTimeout);
  EXPECT_EQ(watched.session().status().message(), "timeout: no progress with peer for 2 s");
}

TEST(Watchdog, HeartbeatsWithoutProgressOnEitherSideAreATimeout) {
  Watched watched({});
  EXPECT_EQ(watched.after(kTimeout - kLook), ErrorCode::kOk);
  EXPECT_EQ(watched.after(2 * kLook), ErrorCode::kTimeout);
}

TEST(Watchdog, ProgressOfThePeerIsProgress) {
  Watched watched({.peer_works = kEnough});
  EXPECT_EQ(watched.after(10 * kTimeout), ErrorCode::kOk);
}

TEST(Watchdog, ProgressOfThisSideIsProgressWhileThePeerIsHeard) {
  Watched watched({.works = kEnough});
  EXPECT_EQ(watched.after(10 * kTimeout), ErrorCode::kOk);
  EXPECT_GT(watched.told_progress(), 190u);  // 200 looks, told every half second
}

TEST(Watchdog, APeerThatIsNotListenedToIsNotSilent) {
  Watched watched({.works = kEnough, .peer_speaks = false, .listens_on = false});
  watched.say(wire::DataEnd{});
  EXPECT_EQ(watched.after(10 * kTimeout), ErrorCode::kOk);
}

TEST(Watchdog, WaitingThatWasAskedForIsToldAsProgress) {
  Watched watched({.patient = true});
  EXPECT_EQ(watched.after(10 * kTimeout), ErrorCode::kOk);
  EXPECT_GT(watched.told_progress(), 190u);
}

TEST(Watchdog, DripFeedingIsNoProgress) {
  constexpr std::uint64_t kJustEnough = kEnough / 20 + 1;  // 20 looks to a timeout
  constexpr std::uint64_t kTooLittle = kEnough / 22;
  EXPECT_EQ(Watched({.works = kJustEnough}).after(10 * kTimeout), ErrorCode::kOk);
  EXPECT_EQ(Watched({.works = kTooLittle}).after(kTimeout + kLook), ErrorCode::kTimeout);
  EXPECT_EQ(Watched({.peer_works = kJustEnough}).after(10 * kTimeout), ErrorCode::kOk);
  EXPECT_EQ(Watched({.peer_works = kTooLittle}).after(kTimeout + kLook), ErrorCode::kTimeout);
}

TEST(Watchdog, AnEntryStandsForAPage) {
  Watched watched({});
  EXPECT_EQ(watched.after(kTimeout / 2), ErrorCode::kOk);
  watched.session().add_progress(15);
  EXPECT_EQ(watched.after(kTimeout / 4), ErrorCode::kOk);
  watched.session().add_progress(1);
  EXPECT_EQ(watched.after(kTimeout - kLook), ErrorCode::kOk);
  EXPECT_EQ(watched.after(2 * kLook), ErrorCode::kTimeout);
}

TEST(Watchdog, WhatComesOnceInASessionIsProgress) {
  Watched watched({});
  EXPECT_EQ(watched.after(kTimeout / 2), ErrorCode::kOk);
  watched.say(wire::ManifestEnd{});
  EXPECT_EQ(watched.after(kTimeout - kLook), ErrorCode::kOk);
  watched.say(wire::SettledBatch{});  // what can come for ever is not
  EXPECT_EQ(watched.after(2 * kLook), ErrorCode::kTimeout);
}

TEST(Watchdog, APeerThatClaimsMoreThanItDoesIsBelievedForADay) {
  Watched watched({.peer_works = kEnough});
  EXPECT_EQ(watched.after(24h - kLook), ErrorCode::kOk);
  EXPECT_EQ(watched.after(2 * kLook), ErrorCode::kTimeout);
  Watched working({.works = 1000, .peer_works = kEnough});
  EXPECT_EQ(working.after(25h), ErrorCode::kOk);
}

TEST(Watchdog, AClaimThatRunsBackwardsIsNoProgress) {
  Watched watched({.peer_works = std::uint64_t(-1)});
  EXPECT_EQ(watched.after(kTimeout + kLook), ErrorCode::kTimeout);
}

TEST(Watchdog, WithoutATimeoutNothingTakesTooLong) {
  Watched watched({.peer_speaks = false, .timeout = 0ms});
  EXPECT_EQ(watched.after(1h), ErrorCode::kOk);
}

TEST(Watchdog, AFlushMayTakeTenMinutesAndNoLonger) {
  Watched watched({});
  const Session::Flushing flushing(watched.session());
  EXPECT_EQ(watched.after(10min), ErrorCode::kOk);
  EXPECT_EQ(watched.after(kTimeout + kLook), ErrorCode::kTimeout);
}

}  // namespace
}  // namespace fgsync::transfer
