#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace fgsync {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "fgsync: %s:%d: assertion failed: %s\n", file, line, expression);
  std::abort();
}

}  // namespace fgsync
