// RAND_set_rand_method is deprecated since 3.0 in favour of a provider, which is 150 lines for the
// same; it works in every release of 3.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "openssl_random.h"

#include <openssl/rand.h>

#include "random.h"

namespace fgsync::sim {
namespace {

Random& generator() {
  static Random random(0);
  return random;
}

int fill(unsigned char* bytes, int count) {
  generator().fill({reinterpret_cast<std::byte*>(bytes), std::size_t(count)});
  return 1;
}

int is_seeded() { return 1; }

}  // namespace

void seed_openssl_random(std::uint64_t seed) {
  static const RAND_METHOD method = {nullptr, &fill, nullptr, nullptr, &fill, &is_seeded};
  generator() = Random(seed ^ 0x6f70656e73736c);
  RAND_set_rand_method(&method);
}

}  // namespace fgsync::sim
