#include "support/scripted_peer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fgsync::testing {
namespace {

io::Task<void> send_message(transport::ControlStream* control, std::vector<std::byte> bytes) {
  (void)co_await control->send(std::move(bytes));
}

io::Task<void> send_payload(io::Io* io, transport::Stream* stream, BufferPool* pool,
                            wire::FrameHeader header, std::vector<std::byte> payload) {
  Buffer buffer;
  if (!payload.empty()) {
    buffer = co_await io::AcquireBuffer(*pool, *io);
    buffer.resize(payload.size());
    std::copy(payload.begin(), payload.end(), buffer.data());
  }
  const transport::FrameHeaderBytes bytes = wire::encode(header);
  (void)co_await stream->send(bytes, std::move(buffer));
}

}  // namespace

void ScriptedPeer::say_bytes(std::vector<std::byte> bytes) {
  sending_.spawn(io_, send_message(control_.get(), std::move(bytes)));
}

void ScriptedPeer::send_frame(std::size_t stream, const wire::FrameHeader& header,
                              std::vector<std::byte> payload) {
  sending_.spawn(io_,
                 send_payload(&io_, streams_[stream].get(), &pool_, header, std::move(payload)));
}

void ScriptedPeer::send_chunk(std::size_t stream, std::uint64_t id, std::uint64_t offset,
                              const std::string& contents, bool right_checksum) {
  std::vector<std::byte> payload = bytes_of(contents);
  wire::Checksum checksum = checksum_of_text(contents);
  if (!right_checksum) checksum.bytes[3] ^= std::byte{1};
  const wire::Checksum bound = wire::bind_checksum(checksum, id, offset);
  payload.insert(payload.end(), bound.bytes.begin(), bound.bytes.end());
  send_frame(stream, {.type = wire::FrameType::kChunk, .entry = id, .offset = offset},
             std::move(payload));
}

void ScriptedPeer::send_pack(std::size_t stream, const std::vector<PackedFile>& files) {
  std::vector<std::byte> payload;
  for (const PackedFile& file : files) {
    const std::vector<std::byte> bytes = bytes_of(file.contents);
    wire::PackedEntry entry;
    entry.entry = file.id;
    entry.status = file.status;
    entry.bytes = bytes;
    if (file.status == wire::PackedStatus::kComplete) {
      entry.checksum = checksum_of_text(file.contents);
      if (!file.right_checksum) entry.checksum.bytes[0] ^= std::byte{1};
    }
    const std::size_t at = payload.size();
    payload.resize(at + wire::kPackedHeaderBytes);
    wire::encode_packed_header(entry, std::span(payload).subspan(at));
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  send_frame(stream, {.type = wire::FrameType::kPack, .count = std::uint32_t(files.size())},
             std::move(payload));
}

void ScriptedPeer::end_streams() {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    send_frame(i, {.type = wire::FrameType::kStreamEnd}, {});
  }
}

void ScriptedPeer::hang_up() {
  control_->shutdown();
  for (const auto& stream : streams_) stream->shutdown();
}

io::Task<std::optional<wire::Message>> ScriptedPeer::hear() {
  while (true) {
    Result<std::vector<std::byte>> bytes = co_await control_->receive();
    if (!bytes.ok()) co_return std::nullopt;
    Result<wire::Message> message = wire::decode_message(*bytes);
    EXPECT_TRUE(message.ok()) << message.status().message();
    if (!message.ok()) co_return std::nullopt;
    if (std::holds_alternative<wire::Heartbeat>(*message)) continue;
    if (std::holds_alternative<wire::StreamEnded>(*message)) continue;
    if (const auto* abort = std::get_if<wire::Abort>(&*message)) abort_ = *abort;
    co_return std::move(*message);
  }
}

io::Task<void> ScriptedPeer::hear_out() {
  while (true) {
    std::optional<wire::Message> message = co_await hear();
    if (!message) co_return;
  }
}

io::Task<void> ScriptedPeer::drop_frames(std::size_t stream) {
  for (std::uint64_t frames = 1;; ++frames) {
    Result<transport::ReceivedFrame> frame = co_await streams_[stream]->receive();
    if (!frame.ok()) co_return;
    Result<wire::FrameHeader> header = wire::decode_frame_header(frame->header);
    if (!header.ok() || header->type != wire::FrameType::kStreamEnd) continue;
    say(wire::StreamEnded{std::uint16_t(stream), 0, frames});
  }
}

io::Task<void> ScriptedPeer::finish() {
  co_await sending_.join(io_);
  hang_up();
}

namespace {

wire::ManifestEntry entry_of(std::uint64_t id, std::uint64_t parent, std::string name,
                             wire::EntryType type) {
  wire::ManifestEntry entry;
  entry.id = id;
  entry.parent = parent;
  entry.name = std::move(name);
  entry.type = type;
  entry.mode = type == wire::EntryType::kDirectory ? 0755 : 0644;
  entry.mtime_seconds = 1'700'000'000;
  entry.mtime_nanoseconds = 123'456'789;
  return entry;
}

}  // namespace

wire::ManifestEntry file_entry(std::uint64_t id, std::uint64_t parent, std::string name,
                               std::uint64_t size) {
  wire::ManifestEntry entry = entry_of(id, parent, std::move(name), wire::EntryType::kRegular);
  entry.size = size;
  return entry;
}

wire::ManifestEntry directory_entry(std::uint64_t id, std::uint64_t parent, std::string name) {
  return entry_of(id, parent, std::move(name), wire::EntryType::kDirectory);
}

wire::ManifestEntry symlink_entry(std::uint64_t id, std::uint64_t parent, std::string name,
                                  std::string target) {
  wire::ManifestEntry entry = entry_of(id, parent, std::move(name), wire::EntryType::kSymlink);
  entry.mode = 0777;
  entry.symlink_target = std::move(target);
  return entry;
}

wire::ManifestBatch batch_of(std::initializer_list<wire::ManifestEntry> entries) {
  wire::ManifestBatch batch;
  batch.entries = entries;
  return batch;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

wire::Checksum checksum_of_text(const std::string& text) {
  return wire::checksum_of(std::as_bytes(std::span(text.data(), text.size())));
}

std::string contents_of(std::size_t size, std::uint32_t seed) {
  std::string contents(size, '\0');
  std::uint32_t state = seed * 2654435761u + 1;
  for (char& character : contents) {
    state = state * 1664525u + 1013904223u;
    character = char(state >> 24);
  }
  return contents;
}

}  // namespace fgsync::testing
