// A file's time for people.
#pragma once

#include <string>

#include "io/file_system.h"

namespace fgsync::verify {

// "2025-11-30T15:28:00.123456789Z".
std::string time_text(const io::FileTime& time);

}  // namespace fgsync::verify
