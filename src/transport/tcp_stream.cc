#include "transport/tcp_stream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mark.h"
#include "io/sync.h"

namespace fgsync::transport {
namespace {

constexpr std::size_t kPrefixBytes = 4;
constexpr std::size_t kHeadBytes = kPrefixBytes + kFrameHeaderBytes;
using Head = std::array<std::byte, kHeadBytes>;

// A sealed payload goes in pieces that stay in the second-level cache (256 KiB to 2 MiB a core)
// between the cipher and the socket's copy.
constexpr std::size_t kSealedPieceBytes = 256 * limits::kKiB;
// Without a cipher a piece only bounds how long nothing is counted as progress: 1 MiB a second is
// slow.
constexpr std::size_t kPlainPieceBytes = 1 * limits::kMiB;

Head make_head(const FrameHeaderBytes& header, std::size_t payload_bytes) {
  Head head;
  for (std::size_t i = 0; i < kPrefixBytes; ++i) head[i] = std::byte(payload_bytes >> (8 * i));
  std::copy(header.begin(), header.end(), head.begin() + kPrefixBytes);
  return head;
}

std::size_t payload_bytes_of(const Head& head) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kPrefixBytes; ++i) bytes |= std::size_t(head[i]) << (8 * i);
  return bytes;
}

class TcpStream final : public Stream {
 public:
  TcpStream(io::Io& io, TcpStreamParts parts, BufferPool& pool, StageMeter& meter)
      : io_(io),
        socket_(std::move(parts.socket)),
        sealer_(std::move(parts.sealer)),
        opener_(std::move(parts.opener)),
        piece_bytes_(sealer_ ? kSealedPieceBytes : kPlainPieceBytes),
        tag_bytes_(opener_ ? kTagBytes : 0),
        pool_(pool),
        meter_(meter) {
    FGSYNC_ASSERT(bool(sealer_) == bool(opener_));
  }

  io::Task<Status> send(FrameHeaderBytes header, Buffer payload) override {
    auto turn = co_await sending_.lock(io_);
    Status status = usable();
    if (status.ok()) {
      Status sent = co_await send_frame(header, payload.bytes());
      status = settle(std::move(sent));
    }
    payload.release();
    co_return status;
  }

  io::Task<Result<ReceivedFrame>> receive() override {
    FGSYNC_ASSERT(!receiving_);
    FGSYNC_CO_RETURN_IF_ERROR(usable());
    receiving_ = true;
    ReceivedFrame frame;
    Status received = co_await receive_frame(frame);
    receiving_ = false;
    FGSYNC_CO_RETURN_IF_ERROR(settle(std::move(received)));
    co_return std::move(frame);
  }

  void shutdown() override {
    shut_down_.store(true, std::memory_order_release);
    socket_.shutdown();
  }

  std::uint64_t wire_bytes() const override { return wire_bytes_.load(std::memory_order_relaxed); }

 private:
  Status usable() const {
    if (shut_down_.load(std::memory_order_acquire)) {
      return Status(ErrorCode::kConnectionLost, "the stream was shut down");
    }
    return failure_;
  }

  // The outcome of a frame. The first failure is the reason that every later call gives; it also
  // ends the other direction, because a stream that lost a frame is of no use.
  Status settle(Status outcome) {
    if (outcome.ok()) return outcome;
    if (Status earlier = usable(); !earlier.ok()) return earlier;
    mark("stream_broken");
    failure_ = outcome;
    socket_.shutdown();
    return outcome;
  }

  io::Task<Status> send_frame(const FrameHeaderBytes& header, std::span<std::byte> payload) {
    if (payload.size() > UINT32_MAX) {
      co_return Status(ErrorCode::kInvalidArgument, "a frame's payload is too large");
    }
    const Head head = make_head(header, payload.size());
    std::array<std::byte, kTagBytes> tag_room;
    std::span<const std::byte> first = head;
    if (sealer_) FGSYNC_CO_RETURN_IF_ERROR(sealer_->begin_seal(head));
    std::size_t done = 0;
    do {
      const auto piece = payload.subspan(done, std::min(piece_bytes_, payload.size() - done));
      done += piece.size();
      const bool last = done == payload.size();
      std::span<const std::byte> tag;
      if (sealer_) FGSYNC_CO_RETURN_IF_ERROR(seal_piece(piece, last, tag_room));
      if (sealer_ && last) tag = tag_room;
      Status sent = co_await send_piece(first, piece, tag, !last);
      FGSYNC_CO_RETURN_IF_ERROR(std::move(sent));
      first = {};
    } while (done < payload.size());
    co_return Status();
  }

  Status seal_piece(std::span<std::byte> piece, bool last, std::span<std::byte, kTagBytes> tag) {
    const StageTimer timer(meter_, Stage::kEncrypt, piece.size());
    FGSYNC_RETURN_IF_ERROR(sealer_->seal(piece));
    return last ? sealer_->finish_seal(tag) : Status();
  }

  io::Task<Status> send_piece(std::span<const std::byte> head, std::span<const std::byte> piece,
                              std::span<const std::byte> tag, bool more_follows) {
    const std::size_t bytes = head.size() + piece.size() + tag.size();
    StageTimer timer(meter_, Stage::kSend, 0);
    Status sent = co_await io::send_all(io_, socket_, head, piece, tag, more_follows);
    if (sent.ok()) count(timer, bytes);
    co_return sent;
  }

  io::Task<Status> receive_frame(ReceivedFrame& frame) {
    Head head;
    Status received = co_await receive_head(head);
    FGSYNC_CO_RETURN_IF_ERROR(std::move(received));
    const std::size_t payload_bytes = payload_bytes_of(head);
    // The tag is received behind the payload, in the same call, so it has to fit the slot too.
    if (payload_bytes > pool_.slot_bytes() - tag_bytes_) {
      co_return Status(ErrorCode::kProtocolError,
                       "a frame of " + std::to_string(payload_bytes) + " bytes does not fit");
    }
    std::copy(head.begin() + kPrefixBytes, head.end(), frame.header.begin());
    std::array<std::byte, kTagBytes> tag_room;
    std::span<std::byte> room(tag_room.data(), tag_bytes_);
    if (payload_bytes > 0) {
      frame.payload = co_await io::AcquireBuffer(pool_, io_);
      frame.payload.resize(payload_bytes);
      room = frame.payload.whole().first(payload_bytes + tag_bytes_);
    }
    if (opener_) FGSYNC_CO_RETURN_IF_ERROR(opener_->begin_open(head));
    Status body = co_await receive_body(room, payload_bytes);
    FGSYNC_CO_RETURN_IF_ERROR(std::move(body));
    if (opener_) {
      const auto tag = room.last<kTagBytes>();
      FGSYNC_CO_RETURN_IF_ERROR(opener_->finish_open(tag));
    }
    co_return Status();
  }

  // Tells the peer's end between two frames from one inside a frame.
  io::Task<Status> receive_head(Head& head) {
    StageTimer timer(meter_, Stage::kReceive, 0);
    Result<std::size_t> begun = co_await io::receive_some(io_, socket_, head);
    FGSYNC_CO_RETURN_IF_ERROR(begun.status());
    if (*begun == 0) {
      co_return Status(ErrorCode::kConnectionLost, "the peer closed the stream");
    }
    if (*begun < head.size()) {
      const auto rest = std::span(head).subspan(*begun);
      Status received = co_await io::receive_exactly(io_, socket_, rest);
      FGSYNC_CO_RETURN_IF_ERROR(received.with_context("inside a frame"));
    }
    count(timer, head.size());
    co_return Status();
  }

  // Fills `room`, payload and tag, and opens each piece as it comes.
  io::Task<Status> receive_body(std::span<std::byte> room, std::size_t payload_bytes) {
    std::size_t done = 0;
    while (done < room.size()) {
      std::size_t bytes = std::min(piece_bytes_, payload_bytes - done);
      const auto piece = room.subspan(done, bytes);
      if (done + bytes == payload_bytes) bytes = room.size() - done;
      Status received = co_await receive_piece(room.subspan(done, bytes));
      FGSYNC_CO_RETURN_IF_ERROR(std::move(received));
      done += bytes;
      if (opener_) {
        const StageTimer timer(meter_, Stage::kDecrypt, piece.size());
        FGSYNC_CO_RETURN_IF_ERROR(opener_->open(piece));
      }
    }
    co_return Status();
  }

  io::Task<Status> receive_piece(std::span<std::byte> room) {
    StageTimer timer(meter_, Stage::kReceive, 0);
    Status received = co_await io::receive_exactly(io_, socket_, room);
    if (!received.ok()) co_return received.with_context("inside a frame");
    count(timer, room.size());
    co_return received;
  }

  void count(StageTimer& timer, std::size_t bytes) {
    timer.set_bytes(bytes);
    wire_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  io::Io& io_;
  const io::Socket socket_;
  const std::unique_ptr<FrameCipher> sealer_;
  const std::unique_ptr<FrameCipher> opener_;
  const std::size_t piece_bytes_;
  const std::size_t tag_bytes_;
  BufferPool& pool_;
  StageMeter& meter_;
  io::AsyncMutex
      sending_;  // held over a whole frame: one frame at a time, in the order of the nonces
  bool receiving_ = false;
  Status failure_;  // why every later call fails
  std::atomic<bool> shut_down_{false};
  std::atomic<std::uint64_t> wire_bytes_{0};
};

}  // namespace

std::unique_ptr<Stream> make_tcp_stream(io::Io& io, TcpStreamParts parts, BufferPool& pool,
                                        StageMeter& meter) {
  return std::make_unique<TcpStream>(io, std::move(parts), pool, meter);
}

}  // namespace fgsync::transport
