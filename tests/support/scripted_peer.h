// The other end of a session, played by a test: says what it wants, when it wants, and hears what
// comes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/sync.h"
#include "memory/buffer_pool.h"
#include "transport/stream.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace fgsync::testing {

struct PackedFile {
  std::uint64_t id = 0;
  std::string contents;
  wire::PackedStatus status = wire::PackedStatus::kComplete;
  bool right_checksum = true;
};

// Over memory streams, on the control worker.
class ScriptedPeer {
 public:
  ScriptedPeer(io::Io& io, std::unique_ptr<transport::ControlStream> control, BufferPool& pool)
      : io_(io), control_(std::move(control)), pool_(pool) {}
  void add_stream(std::unique_ptr<transport::Stream> stream) {
    streams_.push_back(std::move(stream));
  }

  io::Io& io() { return io_; }
  // Never wait; what is said goes out in this order.
  void say(const wire::Message& message) { say_bytes(wire::encode(message)); }
  void say_bytes(std::vector<std::byte> bytes);
  void send_frame(std::size_t stream, const wire::FrameHeader& header,
                  std::vector<std::byte> payload);
  void send_chunk(std::size_t stream, std::uint64_t id, std::uint64_t offset,
                  const std::string& contents, bool right_checksum = true);
  void send_pack(std::size_t stream, const std::vector<PackedFile>& files);
  void end_streams();
  void hang_up();
  void hang_up_stream(std::size_t stream) { streams_[stream]->shutdown(); }

  // The next message but heartbeats and ends of streams; nullopt at the end.
  io::Task<std::optional<wire::Message>> hear();
  // The next T; what comes before it is dropped.
  template <typename T>
  io::Task<std::optional<T>> hear_next() {
    while (true) {
      std::optional<wire::Message> message = co_await hear();
      if (!message) co_return std::nullopt;
      if (auto* wanted = std::get_if<T>(&*message)) co_return std::move(*wanted);
    }
  }
  // Until the other side has closed. What it gave as its reason, if it did.
  io::Task<void> hear_out();
  const std::optional<wire::Abort>& heard_abort() const { return abort_; }
  // Takes frames off a stream and drops them, to its end, and says that they have come.
  io::Task<void> drop_frames(std::size_t stream);
  // Before it goes away.
  io::Task<void> finish();

 private:
  io::Io& io_;
  const std::unique_ptr<transport::ControlStream> control_;
  BufferPool& pool_;
  std::vector<std::unique_ptr<transport::Stream>> streams_;
  io::TaskGroup sending_;
  std::optional<wire::Abort> abort_;
};

// A regular file, directory or symlink as a sender would announce it.
wire::ManifestEntry file_entry(std::uint64_t id, std::uint64_t parent, std::string name,
                               std::uint64_t size);
wire::ManifestEntry directory_entry(std::uint64_t id, std::uint64_t parent, std::string name);
wire::ManifestEntry symlink_entry(std::uint64_t id, std::uint64_t parent, std::string name,
                                  std::string target);
wire::ManifestBatch batch_of(std::initializer_list<wire::ManifestEntry> entries);

std::vector<std::byte> bytes_of(const std::string& text);
wire::Checksum checksum_of_text(const std::string& text);
// Reproducible contents that differ from place to place and from seed to seed.
std::string contents_of(std::size_t size, std::uint32_t seed);

}  // namespace fgsync::testing
