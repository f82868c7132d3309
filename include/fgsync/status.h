// Status and Result<T>: how every operation in fgsync reports failure.
//
// Three kinds of trouble are kept apart. A programmer's mistake aborts (FGSYNC_ASSERT). Trouble of
// operation (disk, network, peer, user) and untrusted input come back as a Status; nothing in the
// libraries throws. A Status is never stored beside a second copy of itself: it is returned once,
// gains context where the knowledge is, and is printed once, at the top.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fgsync {

enum class ErrorCode : std::uint8_t {
  kOk = 0,
  kInvalidArgument,    // usage: the request itself makes no sense
  kNotFound,           // a path that should be there is not
  kPermissionDenied,   // the operating system refused
  kNoSpace,            // ENOSPC, EDQUOT: the target as a whole is full
  kIoError,            // any other failed file operation
  kSourceChanged,      // a source file changed or vanished while it was being read
  kChecksumMismatch,   // bytes arrived (or were read back) different from what was sent
  kProtocolError,      // the peer sent something that the protocol does not allow
  kVersionMismatch,    // no protocol version in common
  kUnauthenticated,    // the peer could not prove that it is the peer
  kUnusable,           // source or target cannot be used as asked: missing, wrong kind, into itself
  kRefused,            // policy: a public address
  kConnectionFailed,   // the connection could not be made
  kConnectionLost,     // the connection broke
  kConnectTimeout,     // the connection was not made in time
  kTimeout,            // no progress for too long
  kCancelled,          // SIGINT, SIGTERM or SIGHUP
  kUnsupported,        // this build or side cannot do it
  kRemoteShellFailed,  // ssh itself failed
  kLocked,             // another run holds the lock
};
inline constexpr ErrorCode kLastErrorCode = ErrorCode::kLocked;

// The outcome of an operation. The successful case is one null pointer and allocates nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message, int system_errno = 0)
      : state_(std::make_unique<State>(State{code, system_errno, std::move(message)})) {}
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) { *this = other; }
  Status& operator=(const Status& other) {
    if (this != &other) state_ = other.state_ ? std::make_unique<State>(*other.state_) : nullptr;
    return *this;
  }
  ~Status() = default;

  // `doing` says what was being done ("opening"); the errno's text is appended. The code is chosen
  // from the errno: ENOENT kNotFound, EACCES/EPERM kPermissionDenied, ENOSPC/EDQUOT kNoSpace,
  // everything else kIoError.
  static Status from_errno(int system_errno, std::string_view doing);

  bool ok() const { return state_ == nullptr; }
  ErrorCode code() const { return state_ ? state_->code : ErrorCode::kOk; }
  // The errno behind it, or 0.
  int system_errno() const { return state_ ? state_->system_errno : 0; }
  const std::string& message() const;
  // The same failure with "context: " in front of its message; an OK status stays OK.
  Status with_context(std::string_view context) const;

 private:
  struct State {
    ErrorCode code;
    int system_errno;
    std::string message;
  };
  std::unique_ptr<State> state_;
};

// A value, or the Status that says why there is none. A Result is never built from an OK Status.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace fgsync

// The one control-flow macro, in its two spellings: in a function and in a coroutine.
#define FGSYNC_RETURN_IF_ERROR(expression)                                        \
  do {                                                                            \
    if (auto status_from_expression = (expression); !status_from_expression.ok()) \
      return status_from_expression;                                              \
  } while (false)

#define FGSYNC_CO_RETURN_IF_ERROR(expression)                                     \
  do {                                                                            \
    if (auto status_from_expression = (expression); !status_from_expression.ok()) \
      co_return status_from_expression;                                           \
  } while (false)
