#include "base/assert.h"
#include "base/limits.h"
#include "wire/line_fields.h"
#include "wire/start_line.h"

namespace fgsync::wire {
namespace {

constexpr std::string_view kOpening = "fgsync-start";
constexpr std::uint64_t kU16Max = 0xffff;

// In the order of their enumerations.
constexpr std::array<std::string_view, 3> kIoEngines = {"auto", "uring", "posix"};
constexpr std::array<std::string_view, 3> kFamilies = {"any", "ipv4", "ipv6"};

}  // namespace

std::string encode(const StartRequest& request) {
  FGSYNC_ASSERT(request.facing.size() <= limits::kLabelBytesMax);
  std::string line(kOpening);
  append_field(line, "version-min", request.version_min);
  append_field(line, "version-max", request.version_max);
  append_field(line, "io-engine", kIoEngines[std::size_t(request.io_engine)]);
  append_field(line, "streams", request.streams);
  append_field(line, "port-low", request.ports.low);
  append_field(line, "port-high", request.ports.high);
  append_field(line, "public", request.allow_public ? 1u : 0u);
  append_field(line, "family", kFamilies[std::size_t(request.family)]);
  append_field(line, "facing", request.facing);
  line += '\n';
  return line;
}

Result<StartRequest> decode_start_request(const std::string& line) {
  std::string_view rest(line);
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  if (line.size() > limits::kStartRequestBytesMax || !rest.starts_with(kOpening)) {
    return Status(ErrorCode::kProtocolError, "not a start request");
  }
  LineFields fields(rest.substr(kOpening.size()));
  StartRequest request;
  request.version_min = std::uint16_t(fields.number("version-min", 1, kU16Max));
  request.version_max = std::uint16_t(fields.number("version-max", request.version_min, kU16Max));
  request.io_engine = IoEngine(fields.word("io-engine", kIoEngines));
  request.streams = std::uint16_t(fields.number("streams", 1, limits::kStreamsMax));
  request.ports.low = std::uint16_t(fields.number("port-low", 0, kU16Max));
  request.ports.high = std::uint16_t(fields.number("port-high", request.ports.low, kU16Max));
  // Port 0 means "any", and is no part of a range.
  if (request.ports.low == 0 && request.ports.high != 0) fields.fail("port-low");
  request.allow_public = fields.number("public", 0, 1) == 1;
  request.family = AddressFamily(fields.word("family", kFamilies));
  request.facing = fields.label("facing");
  FGSYNC_RETURN_IF_ERROR(fields.status("start request"));
  return request;
}

}  // namespace fgsync::wire
