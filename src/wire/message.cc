#include "wire/message.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "wire/message_codec.h"

namespace fgsync::wire {
namespace {

constexpr std::size_t kMessageTypes = std::variant_size_v<Message>;

// By position in Message, for messages to people.
constexpr std::array<std::string_view, kMessageTypes> kMessageNames = {
    "hello",    "setup",        "setup reply",  "source offer", "target accept",
    "manifest", "manifest end", "plan",         "file end",     "settled entries",
    "summary",  "errors",       "notes",        "heartbeat",    "abort",
    "data end", "held chunks",  "stream ended", "differences",  "listed paths"};
static_assert(std::is_same_v<std::variant_alternative_t<19, Message>, ListedPaths>);

// Reads the body of the alternative at `index`.
template <std::size_t... kIndexes>
Message read_alternative(ByteReader& reader, std::size_t index,
                         std::index_sequence<kIndexes...> /*all*/) {
  using Read = Message (*)(ByteReader&);
  static constexpr Read kReaders[] = {[](ByteReader& bytes) -> Message {
    return read_body<std::variant_alternative_t<kIndexes, Message>>(bytes);
  }...};
  return kReaders[index](reader);
}

std::string version_range(const Hello& hello) {
  return std::to_string(hello.version_min) + ".." + std::to_string(hello.version_max);
}

}  // namespace

Result<std::uint16_t> negotiate_version(const Hello& ours, const Hello& theirs) {
  const std::uint16_t lowest = std::max(ours.version_min, theirs.version_min);
  const std::uint16_t highest = std::min(ours.version_max, theirs.version_max);
  if (lowest <= highest) return highest;
  return Status(ErrorCode::kVersionMismatch, "no protocol version in common: this side speaks " +
                                                 version_range(ours) + ", the other side (" +
                                                 theirs.software + ") " + version_range(theirs));
}

std::vector<std::byte> encode(const Message& message) {
  ByteWriter writer;
  writer.u8(std::uint8_t(message.index() + 1));
  std::visit([&writer](const auto& body) { write_body(writer, body); }, message);
  return writer.take();
}

Result<Message> decode_message(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  reader.require(bytes.size() <= limits::kControlMessageBytesMax, "too long");
  const std::uint64_t type = reader.ranged(reader.u8(), 1, kMessageTypes, "unknown type");
  if (!reader.ok()) return reader.finish("message");
  const std::size_t index = type - 1;
  Message message = read_alternative(reader, index, std::make_index_sequence<kMessageTypes>());
  FGSYNC_RETURN_IF_ERROR(reader.finish(kMessageNames[index]));
  return message;
}

bool is_valid_name(const std::string& name) {
  if (name.empty() || name.size() > limits::kNameBytesMax) return false;
  if (name == "." || name == ".." || name == ".fgsync") return false;
  return name.find('/') == std::string::npos && !has_nul(name);
}

}  // namespace fgsync::wire
