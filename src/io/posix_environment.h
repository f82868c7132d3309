// The real outside: the kernel's clocks, randomness, files and sockets.
#pragma once

#include <memory>

#include "io/io.h"

namespace fgsync::io {

std::unique_ptr<Environment> make_posix_environment();

}  // namespace fgsync::io
