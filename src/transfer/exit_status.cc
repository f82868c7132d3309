// Exit statuses and the fixed names that scripts rely on.
#include <array>

#include "fgsync/report.h"
#include "fgsync/transfer.h"

namespace fgsync {
namespace {

// Statuses that can apply together, the weightiest first: damage, then a run cut short, then single
// files. 40: what is there is wrong; 11, 12: the run could not go on; 10, 30: it may go on later.
constexpr std::array kPrecedence = {40, 12, 11, 10, 30, 23, 25, 24};

// 0 for a status outside the order: one that ended the session before files mattered, or by the
// user's wish.
std::size_t rank_of(int exit_status) {
  for (std::size_t i = 0; i < kPrecedence.size(); ++i) {
    if (kPrecedence[i] == exit_status) return i + 1;
  }
  return 0;
}

// What the paths that failed one by one amount to.
int exit_status_of_entries(const TransferReport& report) {
  // The figures count for errors too many to be kept; those that are kept say it more exactly.
  const bool all_kept = report.errors_total <= report.errors.size();
  bool source_changed = report.files.vanished > 0;
  bool failed = !all_kept && report.files.failed > 0;
  for (const ErrorEntry& entry : report.errors) {
    if (entry.code == ErrorCode::kChecksumMismatch) return 40;  // read back, and not what arrived
    if (entry.code == ErrorCode::kSourceChanged) {
      source_changed = true;
    } else {
      failed = true;
    }
  }
  if (failed) return 23;
  return source_changed ? 24 : 0;
}

}  // namespace

int exit_status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return 0;
    case ErrorCode::kInvalidArgument:
      return 1;
    case ErrorCode::kVersionMismatch:
      return 2;
    case ErrorCode::kNotFound:
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kUnusable:
      return 3;
    case ErrorCode::kUnsupported:
      return 4;
    case ErrorCode::kUnauthenticated:
    case ErrorCode::kRefused:
      return 5;
    case ErrorCode::kConnectionFailed:
    case ErrorCode::kConnectionLost:
      return 10;
    case ErrorCode::kNoSpace:
    case ErrorCode::kIoError:
      return 11;
    case ErrorCode::kChecksumMismatch:  // as the status of a session: frames arrived damaged
    case ErrorCode::kProtocolError:
      return 12;
    case ErrorCode::kCancelled:
      return 20;
    case ErrorCode::kSourceChanged:
      return 24;
    case ErrorCode::kTimeout:
      return 30;
    case ErrorCode::kConnectTimeout:
      return 35;
    case ErrorCode::kRemoteShellFailed:
      return 255;
    case ErrorCode::kLocked:
      return 41;
  }
  return 12;  // a code that no side of this version makes
}

int exit_status_of(const TransferReport& report) {
  const int session = exit_status_of(report.status.code());
  const int entries = exit_status_of_entries(report);
  if (session == 0) return entries;
  if (entries == 0) return session;
  return rank_of(session) <= rank_of(entries) ? session : entries;
}

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::kRead:
      return "read";
    case Stage::kHash:
      return "hash";
    case Stage::kEncrypt:
      return "encrypt";
    case Stage::kSend:
      return "send";
    case Stage::kReceive:
      return "receive";
    case Stage::kDecrypt:
      return "decrypt";
    case Stage::kVerify:
      return "verify";
    case Stage::kWrite:
      return "write";
    case Stage::kSync:
      return "sync";
  }
  return "unknown";
}

const char* difference_name(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::kMissing:
      return "missing";
    case DifferenceKind::kExtra:
      return "extra";
    case DifferenceKind::kType:
      return "type";
    case DifferenceKind::kSymlink:
      return "symlink";
    case DifferenceKind::kSize:
      return "size";
    case DifferenceKind::kContents:
      return "contents";
    case DifferenceKind::kTime:
      return "time";
  }
  return "unknown";
}

const char* version_string() { return FGSYNC_VERSION; }

}  // namespace fgsync
