// What the JSON reports of the programs have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fgsync/status.h"

namespace fgsync::tools {

using Json = nlohmann::ordered_json;

// Text that is not UTF-8 (RFC 8259, section 8.1, allows nothing else) stands as {"bytes_base64":
// ..., "escaped": ...}.
Json json_text(const std::string& text);
Json json_error(const std::string& path, ErrorCode code, const std::string& message);
// One line with its end.
std::string json_line(const Json& object);

// "source_changed".
const char* error_code_name(ErrorCode code);

// RFC 4648, section 4.
std::string base64(std::string_view bytes);

}  // namespace fgsync::tools
