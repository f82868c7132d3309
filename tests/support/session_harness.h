// Runs sessions over memory streams on a real runtime: both halves of one, or one half against a
// scripted peer. Every run has a deadline, so that what hangs fails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/breakable_connections.h"
#include "support/scripted_peer.h"
#include "support/stream_damage.h"
#include "support/test_runtime.h"
#include "transfer/roles.h"

namespace fgsync::testing {

struct HalfOutcome {
  Status status;
  std::vector<ErrorEntry> errors;
  std::vector<std::string> notes;
  std::vector<std::string> paths;
  std::vector<Difference> differences;
};

struct LocalOutcome {
  HalfOutcome sender;
  HalfOutcome receiver;
  FileFigures files;
  ByteFigures bytes;
  std::string sender_digest;
  std::string receiver_digest;
  bool was_damaged = false;  // by stream_damage
  std::uint64_t connections_broken = 0;
  std::uint64_t connections_made_again = 0;
  // Both halves ended well and no path failed: what the exit status 0 stands for.
  bool is_clean() const {
    return sender.status.ok() && receiver.status.ok() && sender.errors.empty() &&
           receiver.errors.empty();
  }
  std::string text() const;  // for failure messages
};

// What the peer does. A function, never a capturing lambda.
using Script = io::Task<void> (*)(ScriptedPeer*);

// One run each.
class SessionHarness {
 public:
  explicit SessionHarness(IoEngine engine) : runtime_(TestRuntime::create(engine)) {
    parameters.chunk_bytes = 64 * 1024;
    parameters.streams = 2;
  }

  transfer::SessionParameters parameters;
  // For replicate(): what happens on the way.
  StreamDamage stream_damage;
  // For replicate(): what happens to its data connections, if anything.
  std::optional<Breakage> breakage;
  FaultyFileSystem& files() { return runtime_->files(); }
  TestRuntime& runtime() { return *runtime_; }
  CancelToken& cancel() { return cancel_; }

  // Both halves.
  LocalOutcome replicate(std::vector<std::string> sources, std::string target);
  // ReceiveSession (CompareReceiver where that is the parameters' wish), on a target that stands
  // and takes the contents of one directory or, if `expected` is not empty, the one file or
  // directory of that name.
  HalfOutcome receive_from(Script script, const std::string& target,
                           const std::string& expected = {},
                           wire::EntryType type = wire::EntryType::kRegular);
  // SendSession or CompareSender, of one source directory whose contents stand in the target.
  HalfOutcome send_to(Script script, const std::string& source);
  // After receive_from or send_to: why the other side was told that the session ended.
  const std::optional<wire::Abort>& told_abort() const { return abort_; }

 private:
  io::Task<void> run_both(std::vector<std::string> sources, std::string target,
                          LocalOutcome* outcome);
  io::Task<void> run_receiver_half(Script script, transfer::ResolvedTarget target,
                                   HalfOutcome* outcome);
  io::Task<void> run_sender_half(Script script, std::string source, HalfOutcome* outcome);
  template <typename Half>
  io::Task<void> run_against(Script script, transfer::Session* session, Half* half,
                             ScriptedPeer* peer, bool drops_frames);

  const std::unique_ptr<TestRuntime> runtime_;
  CancelToken cancel_;
  std::optional<wire::Abort> abort_;
};

}  // namespace fgsync::testing
