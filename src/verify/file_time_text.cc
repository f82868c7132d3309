#include "verify/file_time_text.h"

#include <algorithm>
#include <chrono>

namespace fgsync::verify {
namespace {

std::string digits(std::int64_t value, std::size_t width) {
  std::string text = std::to_string(value);
  return std::string(width - std::min(width, text.size()), '0') + text;
}

}  // namespace

std::string time_text(const io::FileTime& time) {
  namespace chrono = std::chrono;
  // Years beyond those of the calendar's own type.
  constexpr std::int64_t kSecondsMax = 900'000'000'000;
  if (time.seconds < -kSecondsMax || time.seconds > kSecondsMax) {
    return std::to_string(time.seconds) + "." + digits(time.nanoseconds, 9) + " s";
  }
  const chrono::sys_seconds moment{chrono::seconds{time.seconds}};
  const auto day = chrono::floor<chrono::days>(moment);
  const chrono::year_month_day date{day};
  const chrono::hh_mm_ss<chrono::seconds> clock{moment - day};
  return digits(int(date.year()), 4) + "-" + digits(unsigned(date.month()), 2) + "-" +
         digits(unsigned(date.day()), 2) + "T" + digits(clock.hours().count(), 2) + ":" +
         digits(clock.minutes().count(), 2) + ":" + digits(clock.seconds().count(), 2) + "." +
         digits(time.nanoseconds, 9) + "Z";
}

}  // namespace fgsync::verify
