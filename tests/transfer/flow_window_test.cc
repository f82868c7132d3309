#include "transfer/flow_window.h"

#include <gtest/gtest.h>

#include "support/manual_io.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

io::Task<void> pass(FlowWindow* window, io::Io* io, int* passed) {
  co_await window->wait_open(*io);
  ++*passed;
}

class Window : public ::testing::Test {
 protected:
  void spawn() {
    group_.spawn(io_, pass(&window_, &io_, &passed_));
    io_.run_ready();
  }

  ManualIo io_;
  io::TaskGroup group_;
  FlowWindow window_{10};
  int passed_ = 0;
};

TEST_F(Window, IsOpenBelowTheLimitAndShutAtIt) {
  window_.add(9);
  spawn();
  EXPECT_EQ(passed_, 1);
  window_.add(1);
  spawn();
  EXPECT_EQ(passed_, 1);
  window_.remove(1);
  io_.run_ready();
  EXPECT_EQ(passed_, 2);
}

TEST_F(Window, StaysShutWhileTooManyAreUnderWay) {
  window_.add(30);
  spawn();
  spawn();
  window_.remove(20);
  io_.run_ready();
  EXPECT_EQ(passed_, 0);
  window_.remove(1);
  io_.run_ready();
  EXPECT_EQ(passed_, 2);
}

TEST_F(Window, ClosingLetsEverybodyPassNowAndLater) {
  window_.add(10);
  spawn();
  spawn();
  EXPECT_EQ(passed_, 0);
  window_.close();
  io_.run_ready();
  EXPECT_EQ(passed_, 2);
  spawn();
  EXPECT_EQ(passed_, 3);
}

}  // namespace
}  // namespace fgsync::transfer
