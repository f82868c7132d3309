#include "transfer/backoff.h"

#include <gtest/gtest.h>

#include "support/manual_io.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using namespace std::chrono_literals;

TEST(Backoff, DoublesUpToFiveSeconds) {
  ManualEnvironment least;
  Backoff backoff(least);
  for (const auto expected : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    EXPECT_EQ(backoff.next(), expected);
  }
  backoff.reset();
  EXPECT_EQ(backoff.next(), 100ms);
}

TEST(Backoff, ChanceTakesUpToAHalf) {
  ManualEnvironment most;
  most.chance = std::byte{255};
  Backoff backoff(most);
  const io::Duration shortest = backoff.next();
  EXPECT_GE(shortest, 50ms);
  EXPECT_LT(shortest, 51ms);
}

}  // namespace
}  // namespace fgsync::transfer
