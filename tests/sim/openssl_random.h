// OpenSSL's own randomness from the seed: with it the TLS handshakes, and with them every byte on
// the simulated network, are the same each time. The other way, control streams without TLS, would
// leave the session listener and the TLS stream out of the simulation, where resets and deadlines
// meet most of the states that there are.
#pragma once

#include <cstdint>

namespace fgsync::sim {

void seed_openssl_random(std::uint64_t seed);

}  // namespace fgsync::sim
