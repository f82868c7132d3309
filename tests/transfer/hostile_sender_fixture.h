// What the tests of a receiver against hostile senders share: how far an honest sender has come
// when it begins to break the rules, and what must hold whatever it does.
#pragma once

#include <gtest/gtest.h>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::testing {

using io::Task;

inline constexpr std::size_t kChunk = 64 * 1024;
inline constexpr std::size_t kLargeBytes = 2 * kChunk + 1000;
inline constexpr std::uint64_t kSmall = 1;
inline constexpr std::uint64_t kLarge = 2;

inline std::string small_contents() { return contents_of(3000, 1); }
inline std::string large_contents() { return contents_of(kLargeBytes, 2); }

inline wire::FileEnd large_end() {
  std::vector<wire::Checksum> chunks;
  const std::string contents = large_contents();
  for (std::size_t at = 0; at < contents.size(); at += kChunk) {
    chunks.push_back(checksum_of_text(contents.substr(at, kChunk)));
  }
  wire::FileEnd end;
  end.entry = kLarge;
  end.complete = true;
  end.digest = wire::file_digest(chunks);
  return end;
}

inline void send_large_chunk(ScriptedPeer* peer, std::size_t index) {
  peer->send_chunk(index % 2, kLarge, index * kChunk,
                   large_contents().substr(index * kChunk, kChunk));
}

// Announces a small and a large file and waits for the plan.
inline Task<void> announce(ScriptedPeer* peer) {
  peer->say(batch_of({file_entry(kSmall, 0, "small", small_contents().size()),
                      file_entry(kLarge, 0, "large", kLargeBytes)}));
  (void)co_await peer->hear_next<wire::PlanBatch>();
}

// How far an honest sender has come.
enum class Phase {
  kNothing,
  kAnnounced,
  kPlanned,
  kManifestEnded,
  kPackSent,
  kChunkSent,
  kChunksSent,
  kFileEnded,
  kStreamsEnded,
  kDataEnded,
  kSummaryHeard,
  kDone,
};

inline Task<void> play_until(ScriptedPeer* peer, Phase phase) {
  if (phase == Phase::kNothing) co_return;
  peer->say(batch_of({file_entry(kSmall, 0, "small", small_contents().size()),
                      file_entry(kLarge, 0, "large", kLargeBytes)}));
  if (phase == Phase::kAnnounced) co_return;
  (void)co_await peer->hear_next<wire::PlanBatch>();
  if (phase == Phase::kPlanned) co_return;
  peer->say(wire::ManifestEnd{.entries = 2});
  if (phase == Phase::kManifestEnded) co_return;
  peer->send_pack(0, {{kSmall, small_contents()}});
  if (phase == Phase::kPackSent) co_return;
  send_large_chunk(peer, 0);
  if (phase == Phase::kChunkSent) co_return;
  send_large_chunk(peer, 1);
  send_large_chunk(peer, 2);
  if (phase == Phase::kChunksSent) co_return;
  peer->say(large_end());
  if (phase == Phase::kFileEnded) co_return;
  peer->end_streams();
  if (phase == Phase::kStreamsEnded) co_return;
  peer->say(wire::DataEnd{});
  if (phase == Phase::kDataEnded) co_return;
  (void)co_await peer->hear_next<wire::Summary>();
  if (phase == Phase::kSummaryHeard) co_return;
  peer->say(wire::Summary{});
}

class HostileSender : public OnEachEngine {
 protected:
  void SetUp() override {
    OnEachEngine::SetUp();
    directory_.make_directory("outside");
    directory_.write("outside/kept", "kept");
  }

  HalfOutcome receive(Script script, const std::string& expected = {},
                      wire::EntryType type = wire::EntryType::kRegular) {
    // Each run finds an empty target.
    const std::string name = "target" + std::to_string(++runs_);
    directory_.make_directory(name);
    target_ = directory_.path(name);
    SessionHarness harness(GetParam());
    harness.parameters.timeout = timeout_;
    HalfOutcome outcome = harness.receive_from(script, target_, expected, type);
    told_ = harness.told_abort();
    return outcome;
  }

  // Nothing but whole files, and no trace of the run.
  void expect_only_whole_files() {
    for (const auto& [path, contents] : list_files(target_)) {
      const bool whole = (path == "small" && contents == small_contents()) ||
                         (path == "large" && contents == large_contents());
      EXPECT_TRUE(whole) << path << ", " << contents.size() << " bytes";
    }
    EXPECT_FALSE(list_tree(target_).contains(".fgsync"));
    const std::map<std::string, std::string> outside = {{"kept", "kept"}};
    EXPECT_EQ(list_files(directory_.path("outside")), outside);
  }

  void expect_refusal(const char* what, Script script, ErrorCode code,
                      const std::string& expected = {},
                      wire::EntryType type = wire::EntryType::kRegular) {
    SCOPED_TRACE(what);
    const HalfOutcome outcome = receive(script, expected, type);
    EXPECT_EQ(outcome.status.code(), code) << outcome.status.message();
    ASSERT_TRUE(told_.has_value());
    EXPECT_EQ(told_->error.code, code);
    expect_only_whole_files();
  }

  const TemporaryDirectory directory_;
  std::string target_;
  int runs_ = 0;
  std::chrono::milliseconds timeout_{0};
  std::optional<wire::Abort> told_;
};

}  // namespace fgsync::testing
