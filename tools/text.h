// How bytes, figures and times are written for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fgsync::tools {

// A file's name for a terminal, a log or a list: one line, and no byte of the name can steer the
// terminal. Escaped as \xHH, byte by byte: control bytes, DEL, C1 controls (as UTF-8 and raw),
// invalid UTF-8, line and paragraph separators (U+2028, U+2029), bidirectional overrides and
// isolates (U+202A to U+202E, U+2066 to U+2069), and the backslash. So it is reversible: replacing
// each \xHH by its byte gives the name back.
std::string escape_name(std::string_view name);

// The same for a message, where a backslash stays: it may hold names that are escaped already.
std::string escape_message(std::string_view message);

// UTF-8 as RFC 3629 has it: shortest form, no surrogates, up to U+10FFFF.
bool is_utf8(std::string_view text);

// "0 B", "999 B", "1.2 KB", "38 GB": powers of 1000, as --chunk-size reads them; two digits or
// more.
std::string human_bytes(std::uint64_t bytes);
std::string human_rate(double bytes_per_second);
// "0.4 s", "3.1 s", "47 s", "2m05s", "1h02m".
std::string human_duration(double seconds);

// "1 file", "2 files".
std::string counted(std::uint64_t count, const char* one, const char* many);

// "2025-11-30T15:28:00.123Z".
std::string iso8601(std::chrono::system_clock::time_point time);

// One line that a shell reads back as the same words.
std::string quote_words(const std::vector<std::string>& words);

}  // namespace fgsync::tools
