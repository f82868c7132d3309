// The values that options take, as pure functions from text. Each fails with kInvalidArgument and
// the form that was expected; the option's name is added by the caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fgsync/options.h"
#include "fgsync/status.h"

namespace fgsync::tools {

// Decimal digits alone.
Result<std::uint64_t> parse_count(std::string_view text);

// SIZE in bytes: "4096", "64K", "1.5G" (K M G T, also KiB...: 1024), "10MB" (KB MB GB TB: 1000).
Result<std::uint64_t> parse_size(std::string_view text);

// RATE in bytes per second: a SIZE, or bits as "10Gbit" (Kbit Mbit Gbit Tbit: 1000); "/s" may
// follow.
Result<std::uint64_t> parse_rate(std::string_view text);

// DURATION: "30" or "30s", "5m", "2h", "1d", "500ms".
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// "N" or "LO-HI", 1 to 65535.
Result<PortRange> parse_ports(std::string_view text);

// true yes on 1, false no off 0.
Result<bool> parse_switch(std::string_view text);

// Splits at blanks; quotes ('...' and "...") and backslashes hold words together, as in a shell.
Result<std::vector<std::string>> split_words(std::string_view text);

Result<IoEngine> parse_io_engine(std::string_view text);
Result<DirectIo> parse_direct_io(std::string_view text);
Result<Transport> parse_transport(std::string_view text);
Result<Cipher> parse_cipher(std::string_view text);
// Whether the whole tree is published at once.
Result<bool> parse_publish(std::string_view text);
Result<Durability> parse_durability(std::string_view text);
// Whether what was written is read back.
Result<bool> parse_verify(std::string_view text);

}  // namespace fgsync::tools
