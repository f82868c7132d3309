#include "transfer/remote_run.h"

#include <algorithm>
#include <cstdio>

#include "base/mark.h"
#include "transfer/report_builder.h"
#include "transfer/watchdog.h"
#include "transport/connection.h"

namespace fgsync::transfer {
namespace {

constexpr std::chrono::milliseconds kLook{100};
// An attempt that begins when the time is nearly over gets this long all the same.
constexpr std::chrono::seconds kAttemptMin{1};

// What a link does to a run, rather than what either side has against it. The way there counts too:
// while the link is down it is the remote shell that fails, or nobody answers.
bool is_a_links_doing(ErrorCode code) {
  return code == ErrorCode::kConnectionLost || code == ErrorCode::kConnectionFailed ||
         code == ErrorCode::kConnectTimeout || code == ErrorCode::kRemoteShellFailed;
}

std::string seconds_text(io::Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

RemoteRun::RemoteRun(io::Runtime& runtime, Plan plan, FarHost& far_host, RunListener& listener,
                     CancelToken& cancel)
    : runtime_(runtime),
      plan_(std::move(plan)),
      far_host_(far_host),
      listener_(listener),
      cancel_(cancel),
      started_(runtime.environment().now()),
      backoff_(runtime.environment()) {}

io::Task<void> RemoteRun::run(TransferReport* report) {
  for (bool more = true; more;) {
    Outcome outcome;
    co_await make_session(&outcome);
    co_await far_host_.finish(outcome.report.status.ok());
    more = co_await wait_to_try_again(&outcome);
    if (outcome.stood || !has_stood()) {
      add_session(*report, std::move(outcome.report), found_);
      if (outcome.stood) remember(outcome.found, *report);
    } else {
      report->status = outcome.report.status;
    }
    progress_.next_session();
  }
  report->notes.insert(report->notes.end(), notes_.begin(), notes_.end());
}

// Once what was there at the start is known for sure, it stays so.
void RemoteRun::remember(FoundAtStart found, const TransferReport& run) {
  if (found_ && found_->is_complete) return;
  if (found_) found = {found.is_complete, run.files.unchanged, run.bytes.unchanged, found_->held};
  found_ = found;
}

// ---- One session

io::Task<void> RemoteRun::make_session(Outcome* outcome) {
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(time_left());
  Result<FarAddress> far = co_await far_host_.start(patience);
  if (!far.ok()) {
    outcome->report.status = far.status();
    co_return;
  }
  const io::TimePoint deadline = runtime_.environment().now() + time_left();
  auto connected = co_await transport::connect_control(runtime_.control(), far->peer, far->local,
                                                       far->key, far->session, deadline);
  if (!connected.ok()) {
    outcome->report.status = connected.status();
    if (!far->advice.empty()) note(far->advice);
    co_return;
  }
  const SessionKeys keys{connected->secret, far->session};
  Session session(runtime_, std::move(connected->stream), plan_.host, cancel_);
  co_await with_session(&session, &*far, &keys, deadline, outcome);
}

io::Task<void> RemoteRun::with_session(Session* session, const FarAddress* far,
                                       const SessionKeys* keys, io::TimePoint deadline,
                                       Outcome* outcome) {
  io::Io& io = runtime_.control();
  if (plan_.wants_changes) session->want_changes();
  Role role;
  Watchdog watch(
      *session,
      [&] {
        far_host_.drain();
        listener_.on_tick(*session, progress_.update(role.progress()));
        return Status();
      },
      [&] { return role.is_patient(); });
  io::TaskGroup watching;
  watching.spawn(io, watch.run());
  co_await take_role(session, &role, far, keys, deadline);
  watch.stop();
  co_await watching.join(io);
  conclude(*session, role, *outcome);
}

io::Task<void> RemoteRun::take_role(Session* session, Role* role, const FarAddress* far,
                                    const SessionKeys* keys, io::TimePoint deadline) {
  {
    io::DeadlineGuard guard(session->control_io(), deadline, [session] {
      session->fail(Status(ErrorCode::kConnectTimeout,
                           session->peer() + ": the session was not agreed on in time"));
    });
    Status opened = co_await open(session);
    if (!opened.ok()) {
      co_await refuse(*session, opened);
      co_return;
    }
  }
  const OutgoingConnections::Route route{far->peer, far->local, plan_.connect_timeout,
                                         plan_.retry_for};
  const std::unique_ptr<DataConnections> connections = decorated(
      plan_.decorate, *session, std::make_unique<OutgoingConnections>(*session, *keys, route));
  if (plan_.setup.initiator == wire::Role::kSender) {
    session->listed_paths = plan_.listed_paths;
    std::vector<std::string> sources = plan_.sources;
    co_await run_sender(session, role, std::move(sources), connections.get());
  } else {
    if (plan_.setup.selection.lists_paths) {
      Status told = co_await tell_listed_paths(*session, &plan_.listed_paths);
      if (!told.ok()) {
        co_await refuse(*session, told);
        co_return;
      }
    }
    std::string target = plan_.target;
    co_await run_receiver(session, role, std::move(target),
                          make_session_name(session->environment()), connections.get());
  }
}

io::Task<Status> RemoteRun::open(Session* session) {
  Status greeted = co_await exchange_hello(*session);
  if (!greeted.ok()) co_return greeted;
  wire::Setup setup = plan_.setup;
  Result<wire::SetupReply> reply = co_await propose_setup(*session, std::move(setup));
  if (!reply.ok()) co_return reply.status();
  if (reply->streams < plan_.setup.streams) {
    note("streams: " + std::to_string(reply->streams) + ": " + session->peer() +
         " cannot serve more");
  }
  if (plan_.names_far_engine && reply->io_engine != runtime_.engine_name()) {
    note("io engine of " + session->peer() + ": " + reply->io_engine);
  }
  co_return Status();
}

void RemoteRun::conclude(Session& session, Role& role, Outcome& outcome) {
  const ProgressSnapshot own = role.progress();
  listener_.on_tick(session, progress_.update(own));
  outcome.stood = role.sender != nullptr || role.receiver != nullptr;
  fill_report(outcome.report, session, role);
  outcome.found = {own.total_known, outcome.report.files.unchanged, outcome.report.bytes.unchanged,
                   role.held_bytes()};
  outcome.report.mapping = mapping_of(role, plan_.source_prefix, plan_.target_prefix);
  outcome.advanced = outcome.report.files.sent > 0;
  if (!own.total_known) return;
  outcome.advanced |= missing_ && own.bytes_total < *missing_;
  missing_ = own.bytes_total;
}

// ---- From one to the next

io::Task<bool> RemoteRun::wait_to_try_again(Outcome* outcome) {
  const Status& status = outcome->report.status;
  // The far side of the session before may not have noticed yet, and hold the lock.
  const bool own_lock = has_stood() && status.code() == ErrorCode::kLocked;
  const bool worth_it = (has_stood() || outcome->stood) && !plan_.setup.dry_run &&
                        (is_a_links_doing(status.code()) || own_lock) &&
                        plan_.retry_for.count() > 0;
  if (!worth_it) co_return false;
  io::Io& io = runtime_.control();
  const io::TimePoint now = io.environment().now();
  if (outcome->advanced) {
    lost_since_.reset();
    backoff_.reset();
  }
  if (!lost_since_) lost_since_ = now;
  if (outcome->stood) {
    note("the connection was lost after " + seconds_text(now - started_) + " (" + status.message() +
         "); connecting again for up to " + seconds_text(plan_.retry_for));
  }
  const io::TimePoint next = now + backoff_.next();
  if (next >= *lost_since_ + plan_.retry_for) {
    mark("run_not_recovered");
    outcome->report.status = not_recovered(status);
    co_return false;
  }
  while (io.environment().now() < next) {
    if (cancel_.requested()) {
      outcome->report.status = Status(ErrorCode::kCancelled, "interrupted");
      co_return false;
    }
    co_await io::sleep_until(io, std::min(next, io.environment().now() + kLook));
  }
  mark("run_tried_again");
  co_return true;
}

Status RemoteRun::not_recovered(const Status& last) const {
  return Status(ErrorCode::kConnectionLost,
                plan_.host + ": the connection was lost and not made again within " +
                    seconds_text(plan_.retry_for) + ": " + last.message());
}

// For the next step towards a session.
io::Duration RemoteRun::time_left() const {
  if (!lost_since_) return plan_.connect_timeout;
  const io::Duration left = *lost_since_ + plan_.retry_for - runtime_.control().environment().now();
  return std::min<io::Duration>(plan_.connect_timeout, std::max<io::Duration>(left, kAttemptMin));
}

void RemoteRun::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) != notes_.end()) return;
  notes_.push_back(text);
  listener_.on_note(text);
}

}  // namespace fgsync::transfer
