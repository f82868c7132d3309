#include "transfer/session.h"

#include <algorithm>
#include <cerrno>

#include "base/limits.h"
#include "base/mark.h"

namespace fgsync::transfer {
namespace {

// How long a side waits for the other to take its last message and close.
constexpr std::chrono::seconds kLingerTime{2};

constexpr std::size_t kErrorsPerBatch =
    64;  // 64 errors of at most 2 * 4 KiB + overhead fit a message
static_assert(kErrorsPerBatch * (2 * limits::kErrorTextBytesMax + 64) <
              limits::kControlMessageBytesMax);

bool is_of_a_kind_that_repeats(const wire::Message& message) {
  return std::holds_alternative<wire::ManifestBatch>(message) ||
         std::holds_alternative<wire::PlanBatch>(message) ||
         std::holds_alternative<wire::HeldChunks>(message) ||
         std::holds_alternative<wire::FileEnd>(message) ||
         std::holds_alternative<wire::SettledBatch>(message) ||
         std::holds_alternative<wire::DifferenceBatch>(message) ||
         std::holds_alternative<wire::ErrorBatch>(message) ||
         std::holds_alternative<wire::NoteBatch>(message) ||
         std::holds_alternative<wire::StreamEnded>(message);
}

EntryKind kind_of(wire::EntryType type) {
  switch (type) {
    case wire::EntryType::kRegular:
      return EntryKind::kFile;
    case wire::EntryType::kDirectory:
      return EntryKind::kDirectory;
    case wire::EntryType::kSymlink:
      return EntryKind::kSymlink;
  }
  return EntryKind::kFile;  // there is no other type
}

}  // namespace

std::uint64_t SessionParameters::packed_file_bytes_max() const {
  return std::min<std::uint64_t>(limits::kPackedFileBytesMax, chunk_bytes);
}

Result<std::unique_ptr<BufferPool>> make_buffer_pool(const SessionParameters& parameters) {
  const std::size_t slot_bytes =
      std::max<std::size_t>(parameters.chunk_bytes, limits::kPackFrameBytesMax) +
      limits::kSlotSpareBytes;
  const std::size_t wanted = std::size_t{2} * parameters.streams + 2;
  return BufferPool::create(slot_bytes, std::min(wanted, limits::kPoolBytesMax / slot_bytes));
}

Session::Session(io::Runtime& runtime, std::unique_ptr<transport::ControlStream> control,
                 std::string peer, CancelToken& cancel)
    : runtime_(runtime),
      control_(std::move(control)),
      peer_(std::move(peer)),
      cancel_(cancel),
      meter_(runtime.environment()) {}

void Session::stream_lost(const Status& status) {
  if (status.code() != ErrorCode::kConnectionLost) return fail(status);
  const io::TimePoint now = environment().now();
  std::lock_guard lock(mutex_);
  if (!lost_stream_.ok()) return;
  lost_stream_ = status;
  lost_stream_since_ = now;
}

void Session::settle_lost_stream(bool at_once) {
  Status lost;
  {
    std::lock_guard lock(mutex_);
    if (lost_stream_.ok()) return;
    if (!at_once && environment().now() - lost_stream_since_ < kReasonPatience) return;
    lost = lost_stream_;
  }
  mark("session_lost_stream");
  fail(lost);
}

void Session::fail(const Status& status) {
  if (completed_.load(std::memory_order_acquire)) return;
  // An interrupt reaches the remote shell and the far side as well; whatever breaks then broke
  // because of it.
  const Status reason = cancel_.requested() ? Status(ErrorCode::kCancelled, "interrupted") : status;
  {
    std::lock_guard lock(mutex_);
    if (!status_.ok()) return;
    status_ = reason;
    failed_.store(true, std::memory_order_release);
  }
  if (tells_errors_) push_errors(*this);
  if (!peer_aborted_.load()) push(wire::Abort{ErrorEntry{"", reason.code(), reason.message()}});
  outbox_.close();
  for (const auto& stream : streams) stream->shutdown();
  for (const auto& wake : wakes_) wake();
}

bool Session::path_failed(const std::string& path, const Status& status) {
  const bool read_only = status.system_errno() == EROFS;
  const bool whole =
      status.code() == ErrorCode::kNoSpace || status.code() == ErrorCode::kUnusable || read_only ||
      (status.code() == ErrorCode::kUnsupported && parameters.direct_io == DirectIo::kAlways);
  if (!whole) {
    errors_.add(path, status);
    return true;
  }
  fail(Status(read_only ? ErrorCode::kUnusable : status.code(), path + ": " + status.message(),
              status.system_errno()));
  return false;
}

void Session::tell(const std::string& note) {
  errors_.note(note);
  push(wire::NoteBatch{{note}});
}

Status Session::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

void Session::announce_change(const std::string& path, const wire::ManifestEntry& entry,
                              EntryDifferences differences, bool is_replicated) {
  if (!wants_changes_ || (!is_replicated && differences.bits == 0)) return;
  EntryChange change{.path = path.empty() ? "." : path,
                     .kind = kind_of(entry.type),
                     .symlink_target = entry.symlink_target,
                     .differences = differences,
                     .is_replicated = is_replicated};
  if (change.kind == EntryKind::kDirectory) change.path += '/';
  std::lock_guard lock(mutex_);
  changes_.push_back(std::move(change));
}

std::vector<EntryChange> Session::take_changes() {
  std::lock_guard lock(mutex_);
  return std::exchange(changes_, {});
}

void Session::announce_difference(Difference difference) {
  if (!wants_changes_) return;
  std::lock_guard lock(mutex_);
  differences_.push_back(std::move(difference));
}

std::vector<Difference> Session::take_differences() {
  std::lock_guard lock(mutex_);
  return std::exchange(differences_, {});
}

wire::Heartbeat Session::heartbeat() const {
  wire::Heartbeat heartbeat{progress(), {}};
  if (tell_frames_) heartbeat.frames = tell_frames_();
  return heartbeat;
}

Status Session::take_heartbeat(const wire::Heartbeat& heartbeat) {
  set_peer_progress(heartbeat.progress);
  if (hear_frames_) return hear_frames_(heartbeat.frames);
  if (heartbeat.frames.empty()) return Status();
  return Status(ErrorCode::kProtocolError, "a count of frames that were not sent");
}

SideFigures Session::figures() {
  SideFigures figures;
  for (std::size_t i = 0; i < kStageCount; ++i) figures.stages[i] = meter_.figures(Stage(i));
  figures.cpu_seconds = environment().cpu_seconds();
  figures.cores = std::uint32_t(environment().usable_cores());
  figures.peak_memory_bytes = environment().peak_memory_bytes();
  return figures;
}

io::Task<void> write_control(Session& session) {
  io::Io& io = session.control_io();
  while (true) {
    std::optional<wire::Message> message = co_await session.outbox_.pop(io);
    if (!message) break;
    std::vector<std::byte> bytes = wire::encode(*message);
    Status sent = co_await session.control().send(std::move(bytes));
    if (!sent.ok()) {
      mark("session_control_unsendable");
      session.fail(sent.with_context(session.peer()));
      break;
    }
  }
  if (session.failed()) {
    // The peer gets a moment to read why and to close; then the reader here must not wait any
    // longer.
    (void)co_await io::sleep_until(io,
                                   session.environment().now() + std::chrono::milliseconds(200));
    session.control().shutdown();
  }
}

io::Task<Result<wire::Message>> receive_message(Session& session) {
  while (true) {
    session.listening_since_ = session.environment().now();
    Result<std::vector<std::byte>> bytes = co_await session.control().receive();
    session.listening_since_.reset();
    if (!bytes.ok()) {
      session.fail(bytes.status().with_context(session.peer()));
      co_return session.status();
    }
    Result<wire::Message> message = wire::decode_message(*bytes);
    if (!message.ok()) {
      session.fail(message.status().with_context(session.peer()));
      co_return session.status();
    }
    if (const auto* heartbeat = std::get_if<wire::Heartbeat>(&*message)) {
      Status taken = session.take_heartbeat(*heartbeat);
      if (taken.ok()) continue;
      session.fail(taken.with_context(session.peer()));
      co_return session.status();
    }
    // No peer can say anything else as often as it likes without anything getting done.
    if (!is_of_a_kind_that_repeats(*message)) session.add_step();
    if (const auto* abort = std::get_if<wire::Abort>(&*message)) {
      mark("session_aborted_by_peer");
      session.peer_aborted_.store(true);
      const ErrorCode code =
          abort->error.code == ErrorCode::kOk ? ErrorCode::kProtocolError : abort->error.code;
      session.fail(Status(code, abort->error.message).with_context(session.peer()));
      co_return session.status();
    }
    co_return message;
  }
}

io::Task<void> linger(Session& session) {
  io::Io& io = session.control_io();
  io::DeadlineGuard deadline(io, session.environment().now() + kLingerTime,
                             [&session] { session.control().shutdown(); });
  while (true) {
    Result<std::vector<std::byte>> bytes = co_await session.control().receive();
    if (!bytes.ok()) break;
  }
}

void push_errors(Session& session) {
  const std::vector<ErrorEntry> errors = session.errors().errors();
  for (std::size_t start = 0; start < errors.size(); start += kErrorsPerBatch) {
    const std::size_t end = std::min(errors.size(), start + kErrorsPerBatch);
    session.push(wire::ErrorBatch{
        {errors.begin() + std::ptrdiff_t(start), errors.begin() + std::ptrdiff_t(end)}});
  }
}

void push_notes(Session& session) {
  std::vector<std::string> notes = session.errors().notes();
  if (!notes.empty()) session.push(wire::NoteBatch{std::move(notes)});
}

}  // namespace fgsync::transfer
