#include "verify/file_time_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace fgsync::verify {
namespace {

// date --utc --date=@SECONDS +%FT%T
TEST(FileTimeText, IsTheTimeInUtcToTheNanosecond) {
  EXPECT_EQ(time_text({0, 0}), "1970-01-01T00:00:00.000000000Z");
  EXPECT_EQ(time_text({1'700'000'000, 987'654'321}), "2023-11-14T22:13:20.987654321Z");
  EXPECT_EQ(time_text({-1, 1}), "1969-12-31T23:59:59.000000001Z");
  EXPECT_EQ(time_text({951'782'400, 0}), "2000-02-29T00:00:00.000000000Z");
  EXPECT_EQ(time_text({4'500'000'000, 5}), "2112-08-07T08:00:00.000000005Z");
}

TEST(FileTimeText, OneBeyondTheCalendarIsANumber) {
  EXPECT_EQ(time_text({std::numeric_limits<std::int64_t>::max(), 7}),
            "9223372036854775807.000000007 s");
  EXPECT_EQ(time_text({std::numeric_limits<std::int64_t>::min(), 0}),
            "-9223372036854775808.000000000 s");
}

}  // namespace
}  // namespace fgsync::verify
