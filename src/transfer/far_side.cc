#include "transfer/far_side.h"

#include <algorithm>
#include <cstdio>

#include "transfer/source_mapping.h"

namespace fgsync::transfer {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kExitPatience{5};
constexpr std::chrono::milliseconds kExitPatienceAfterFailure{500};
constexpr int kShellCommandNotFound = 127;
constexpr int kShellCommandNotRunnable = 126;
constexpr int kRemoteShellFailure = 255;

std::vector<std::string> command_line(const TransferOptions& options, const Location& location) {
  std::vector<std::string> argv = options.remote_shell;
  // How long reaching the host may take; asking for a password may take longer. ssh takes the first
  // value it is given, so one in --rsh stays.
  if (last_component(argv.front()) == "ssh") {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.connect_timeout);
    argv.push_back("-oConnectTimeout=" + std::to_string(seconds.count()));
  }
  if (options.family == AddressFamily::kIpv4) argv.push_back("-4");
  if (options.family == AddressFamily::kIpv6) argv.push_back("-6");
  argv.push_back(location.user.empty() ? location.host : location.user + "@" + location.host);
  argv.push_back(options.remote_fgsync);
  argv.push_back("--serve");
  return argv;
}

// Noise of a remote shell as one line of plain ASCII.
std::string printable(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f && c != '\\') {
      shown += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", unsigned(static_cast<unsigned char>(c)));
      shown += escape;
    }
  }
  return shown;
}

ErrorCode code_of_exit_status(int exit_status) {
  for (int code = 1; code <= int(kLastErrorCode); ++code) {
    if (exit_status_of(ErrorCode(code)) == exit_status) return ErrorCode(code);
  }
  return ErrorCode::kConnectionFailed;
}

}  // namespace

Status FarSide::ended_early(const TransferOptions& options, const Location& location,
                            const std::string& noise, int exit_status) {
  if (exit_status == kRemoteShellFailure) {
    return Status(ErrorCode::kRemoteShellFailed,
                  location.host + ": " + options.remote_shell.front() + " failed (status 255)");
  }
  if (exit_status == kShellCommandNotFound || exit_status == kShellCommandNotRunnable) {
    return Status(ErrorCode::kUnsupported, location.host + ": " + options.remote_fgsync +
                                               " cannot be started there; --remote-fgsync=PATH "
                                               "names it");
  }
  std::string message = location.host + ": the far side ended before it was ready (status " +
                        std::to_string(exit_status) + ")";
  if (!noise.empty()) message += "; the remote shell prints text: \"" + printable(noise) + "\"";
  return Status(ErrorCode::kConnectionFailed, message);
}

Result<std::unique_ptr<FarSide>> FarSide::start(const TransferOptions& options,
                                                const Location& location,
                                                const wire::StartRequest& request,
                                                std::chrono::milliseconds patience,
                                                io::Environment& environment, CancelToken& cancel) {
  Result<io::ChildProcess> child = io::ChildProcess::start(command_line(options, location));
  if (!child.ok()) {
    return Status(ErrorCode::kRemoteShellFailed, child.status().message());
  }
  std::unique_ptr<FarSide> far_side(new FarSide(std::move(*child)));
  // A shell that fails at once does not take the request; its exit status says why.
  (void)far_side->child_.write_input(wire::encode(request));

  const io::TimePoint deadline = environment.now() + patience;
  wire::StartAnswerScanner scanner;
  while (true) {
    if (environment.now() >= deadline) {
      return Status(ErrorCode::kConnectTimeout,
                    location.host + ": the far side has not answered in time");
    }
    auto output = far_side->child_.read_output(kLook);
    if (cancel.requested()) break;
    if (!output.ok()) return output.status().with_context(location.host);
    if (!output->has_value()) {
      const auto exit_status = far_side->child_.wait_for_exit(kExitPatience);
      return ended_early(options, location, scanner.noise_start(), exit_status.value_or(0));
    }
    if ((*output)->empty()) continue;
    auto found = scanner.feed(**output);
    if (!found.ok()) {
      return Status(found.status().code(), location.host + ": " + found.status().message() +
                                               "; the remote shell prints text: \"" +
                                               printable(scanner.noise_start()) + "\"");
    }
    if (!found->has_value()) continue;
    if (const auto& refusal = (*found)->refusal) {
      return Status(code_of_exit_status(refusal->exit_code),
                    location.host + ": " + refusal->message);
    }
    far_side->answer_ = *(*found)->answer;
    return far_side;
  }
  return Status(ErrorCode::kCancelled, "interrupted");
}

void FarSide::drain() {
  // Closed output is no news: the connections say whether the session lives.
  // Bounded: whoever prints for ever is read on at the next look.
  for (int piece = 0; piece < 16; ++piece) {
    auto output = child_.read_output(std::chrono::milliseconds(0));
    if (!output.ok() || !output->has_value() || (*output)->empty()) return;
  }
}

void FarSide::finish(bool succeeded) {
  child_.close_input();
  (void)child_.wait_for_exit(succeeded ? kExitPatience : kExitPatienceAfterFailure);
}

}  // namespace fgsync::transfer
