// The entry point: a runtime for the check, and what it amounts to.
#include "fgsync/verify.h"
#include "io/runtime.h"
#include "transfer/resources.h"
#include "verify/tree_check.h"

namespace fgsync {
namespace {

constexpr int kDifferent = 40;
constexpr int kSomeUnreadable = 23;

}  // namespace

int exit_status_of(const VerifyReport& report) {
  if (report.status.code() == ErrorCode::kCancelled) return exit_status_of(report.status.code());
  if (report.differences_total > 0) return kDifferent;
  if (!report.status.ok()) return exit_status_of(report.status.code());
  if (report.errors_total == 0) return 0;
  for (const ErrorEntry& error : report.errors) {
    if (error.code != ErrorCode::kSourceChanged) return kSomeUnreadable;
  }
  return exit_status_of(ErrorCode::kSourceChanged);
}

VerifyReport verify_tree(const VerifyOptions& options, VerifyObserver& observer,
                         CancelToken& cancel) {
  const std::size_t cores = io::usable_cores();
  const std::uint16_t lanes = transfer::automatic_streams(cores);
  VerifyReport report;
  auto runtime = io::create_runtime(transfer::runtime_options(options.io_engine, lanes, cores));
  if (!runtime.ok()) {
    report.status = runtime.status();
    report.exit_code = exit_status_of(report);
    return report;
  }
  io::Environment& environment = (*runtime)->environment();
  const io::TimePoint start = environment.now();
  const auto started = environment.wall_clock();
  verify::TreeCheck check(**runtime, options, lanes, observer, cancel);
  (*runtime)->run(check.run());
  report = check.report();
  report.started = started;
  report.seconds = std::chrono::duration<double>(environment.now() - start).count();
  report.io_engine = (*runtime)->engine_name();
  report.exit_code = exit_status_of(report);
  return report;
}

}  // namespace fgsync
