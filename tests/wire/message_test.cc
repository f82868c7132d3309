#include "wire/message.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/limits.h"
#include "wire/message_samples.h"

namespace fgsync::wire {
namespace {

// The message after its trip over the wire.
template <typename Body>
Body over_the_wire(const Body& body) {
  auto decoded = decode_message(encode(body));
  EXPECT_TRUE(decoded.ok()) << decoded.status().message();
  if (!decoded.ok() || !std::holds_alternative<Body>(*decoded)) {
    ADD_FAILURE() << "another message came out";
    return Body();
  }
  return std::get<Body>(*decoded);
}

TEST(Message, TypesAreNumberedAsSpecified) {
  const auto samples = sample_messages();
  ASSERT_EQ(samples.size(), std::variant_size_v<Message>);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].index(), i);
    EXPECT_EQ(encode(samples[i]).front(), std::byte(i + 1));
  }
}

TEST(Message, EveryKindEncodesTheSameAfterTheRoundTrip) {
  for (const Message& sample : sample_messages()) {
    const auto bytes = encode(sample);
    const auto decoded = decode_message(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(encode(*decoded), bytes) << "type " << sample.index() + 1;
  }
}

TEST(Message, TruncationIsRefusedAtEveryByte) {
  for (const Message& sample : sample_messages()) {
    const auto bytes = encode(sample);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      // A copy of exactly this length, so that the sanitizer sees a byte read too many.
      const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + std::ptrdiff_t(length));
      const auto decoded = decode_message(cut);
      ASSERT_FALSE(decoded.ok()) << "type " << sample.index() + 1 << " cut at " << length;
      EXPECT_EQ(decoded.status().code(), ErrorCode::kProtocolError);
    }
  }
}

TEST(Message, TrailingBytesAreRefused) {
  for (const Message& sample : sample_messages()) {
    auto bytes = encode(sample);
    bytes.push_back(std::byte{0});
    const auto decoded = decode_message(bytes);
    ASSERT_FALSE(decoded.ok()) << "type " << sample.index() + 1;
    EXPECT_EQ(decoded.status().code(), ErrorCode::kProtocolError);
  }
}

TEST(Message, HelloSurvivesTheRoundTrip) {
  const Hello hello = over_the_wire(sample_hello());
  EXPECT_EQ(hello.version_min, 1);
  EXPECT_EQ(hello.version_max, 3);
  EXPECT_EQ(hello.features, 0x8000000000000001);
  EXPECT_EQ(hello.software, "fgsync 0.1.0");
}

TEST(Message, SetupSurvivesTheRoundTrip) {
  const wire::Setup setup = over_the_wire(sample_setup());
  EXPECT_EQ(setup.initiator, Role::kReceiver);
  EXPECT_TRUE(setup.dry_run);
  EXPECT_TRUE(setup.compare);
  EXPECT_TRUE(setup.make_parents);
  EXPECT_TRUE(setup.has_aes);
  EXPECT_TRUE(setup.read_back);
  EXPECT_FALSE(setup.resume);
  EXPECT_TRUE(setup.fail_if_locked);
  EXPECT_TRUE(setup.publish_tree);
  EXPECT_EQ(setup.durability, Durability::kFull);
  EXPECT_EQ(setup.last, (std::vector<std::string>{"*.index", "/latest"}));
  EXPECT_EQ(setup.direct_io, DirectIo::kNever);
  EXPECT_EQ(setup.cipher, Cipher::kChaCha20Poly1305);
  EXPECT_EQ(setup.streams, 64);
  EXPECT_EQ(setup.chunk_bytes, 4u << 20);
  EXPECT_EQ(setup.timeout_ms, 300'000u);
  EXPECT_EQ(setup.bandwidth_limit, 125'000'000u);
  EXPECT_EQ(setup.sources, (std::vector<std::string>{"/data/one", "relative/two/", ""}));
  EXPECT_EQ(setup.target, "");
}

TEST(Message, SetupOfASenderSurvivesTheRoundTrip) {
  wire::Setup setup;
  setup.initiator = Role::kSender;
  setup.chunk_bytes = limits::kChunkBytesMin;
  setup.target = "data/target/";
  const wire::Setup decoded = over_the_wire(setup);
  EXPECT_EQ(decoded.initiator, Role::kSender);
  EXPECT_FALSE(decoded.dry_run);
  EXPECT_FALSE(decoded.compare);
  EXPECT_FALSE(decoded.make_parents);
  EXPECT_FALSE(decoded.has_aes);
  EXPECT_FALSE(decoded.read_back);
  EXPECT_TRUE(decoded.resume);
  EXPECT_FALSE(decoded.fail_if_locked);
  EXPECT_FALSE(decoded.publish_tree);
  EXPECT_EQ(decoded.durability, Durability::kBatch);
  EXPECT_TRUE(decoded.last.empty());
  EXPECT_TRUE(decoded.sources.empty());
  EXPECT_EQ(decoded.target, "data/target/");
}

TEST(Message, SetupReplySurvivesTheRoundTrip) {
  const SetupReply reply = over_the_wire(SetupReply{16, Cipher::kNone, "posix"});
  EXPECT_EQ(reply.streams, 16);
  EXPECT_EQ(reply.cipher, Cipher::kNone);
  EXPECT_EQ(reply.io_engine, "posix");
}

TEST(Message, SourceOfferSurvivesTheRoundTrip) {
  const SourceOffer expected = sample_source_offer();
  const SourceOffer offer = over_the_wire(expected);
  ASSERT_EQ(offer.sources.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(offer.sources[i].display, expected.sources[i].display);
    EXPECT_EQ(offer.sources[i].base_name, expected.sources[i].base_name);
    EXPECT_EQ(offer.sources[i].is_directory, expected.sources[i].is_directory);
    EXPECT_EQ(offer.sources[i].contents_only, expected.sources[i].contents_only);
    EXPECT_EQ(offer.sources[i].ancestry, expected.sources[i].ancestry);
  }
}

TEST(Message, TargetAcceptSurvivesTheRoundTrip) {
  const TargetAccept accept = over_the_wire(sample_target_accept());
  EXPECT_FALSE(accept.replica_of_contents);
  EXPECT_EQ(accept.names, sample_target_accept().names);
  EXPECT_EQ(accept.displays, sample_target_accept().displays);
  const TargetAccept replica = over_the_wire(TargetAccept{true, {""}, {"/target"}});
  EXPECT_TRUE(replica.replica_of_contents);
  EXPECT_EQ(replica.names, std::vector<std::string>{""});
  EXPECT_EQ(replica.displays, std::vector<std::string>{"/target"});
}

TEST(Message, ManifestSurvivesTheRoundTrip) {
  const ManifestBatch expected = sample_manifest_batch();
  const ManifestBatch batch = over_the_wire(expected);
  ASSERT_EQ(batch.entries.size(), expected.entries.size());
  for (std::size_t i = 0; i < expected.entries.size(); ++i) {
    EXPECT_EQ(batch.entries[i].id, expected.entries[i].id);
    EXPECT_EQ(batch.entries[i].parent, expected.entries[i].parent);
    EXPECT_EQ(batch.entries[i].type, expected.entries[i].type);
    EXPECT_EQ(batch.entries[i].mode, expected.entries[i].mode);
    EXPECT_EQ(batch.entries[i].uid, expected.entries[i].uid);
    EXPECT_EQ(batch.entries[i].gid, expected.entries[i].gid);
    EXPECT_EQ(batch.entries[i].mtime_seconds, expected.entries[i].mtime_seconds);
    EXPECT_EQ(batch.entries[i].mtime_nanoseconds, expected.entries[i].mtime_nanoseconds);
    EXPECT_EQ(batch.entries[i].size, expected.entries[i].size);
    EXPECT_EQ(batch.entries[i].name, expected.entries[i].name);
    EXPECT_EQ(batch.entries[i].symlink_target, expected.entries[i].symlink_target);
  }
}

TEST(Message, AManifestEntryTakesItsFixedBytesAndItsStrings) {
  const std::size_t empty = encode(ManifestBatch{}).size();
  ManifestBatch batch = sample_manifest_batch();
  batch.entries.erase(batch.entries.begin(), batch.entries.begin() + 2);
  const ManifestEntry& link = batch.entries.front();
  EXPECT_EQ(encode(batch).size() - empty,
            kManifestEntryFixedBytes + link.name.size() + link.symlink_target.size());
}

TEST(Message, TheSmallMessagesSurviveTheRoundTrip) {
  const ManifestEnd manifest_end = over_the_wire(ManifestEnd{1'000'000, true});
  EXPECT_EQ(manifest_end.entries, 1'000'000u);
  EXPECT_TRUE(manifest_end.incomplete);
  const FileEnd file_end = over_the_wire(FileEnd{9, true, sample_checksum()});
  EXPECT_EQ(file_end.entry, 9u);
  EXPECT_TRUE(file_end.complete);
  EXPECT_EQ(file_end.digest, sample_checksum());
  const Heartbeat heartbeat = over_the_wire(Heartbeat{77, {5, 0, 9}});
  EXPECT_EQ(heartbeat.progress, 77u);
  EXPECT_EQ(heartbeat.frames, (std::vector<std::uint64_t>{5, 0, 9}));
  EXPECT_TRUE(over_the_wire(Heartbeat{77, {}}).frames.empty());
  const DifferenceBatch differences =
      over_the_wire(DifferenceBatch{{{DifferenceKind::kSymlink, "d/l\xff", "to a instead of b"}}});
  ASSERT_EQ(differences.differences.size(), 1u);
  EXPECT_EQ(differences.differences[0].kind, DifferenceKind::kSymlink);
  EXPECT_EQ(differences.differences[0].path, "d/l\xff");
  EXPECT_EQ(differences.differences[0].detail, "to a instead of b");
  const StreamEnded ended = over_the_wire(StreamEnded{63, 7, 1000});
  EXPECT_EQ(ended.stream, 63);
  EXPECT_EQ(ended.generation, 7u);
  EXPECT_EQ(ended.frames, 1000u);
  const DataEnd data_end = over_the_wire(DataEnd{.failed = 3, .changed = 1});
  EXPECT_EQ(data_end.failed, 3u);
  EXPECT_EQ(data_end.changed, 1u);
}

TEST(Message, AWithdrawnFileHasNoDigest) {
  const FileEnd file_end = over_the_wire(FileEnd{9, false, sample_checksum()});
  EXPECT_FALSE(file_end.complete);
  EXPECT_EQ(file_end.digest, Checksum());
}

TEST(Message, PlanAndSettledSurviveTheRoundTrip) {
  const PlanBatch plan = over_the_wire(PlanBatch{{{4, PlanAction::kSend, {EntryDifferences::kSize}},
                                                  {1, PlanAction::kUnchanged},
                                                  {5, PlanAction::kMade},
                                                  {6, PlanAction::kKept},
                                                  {9, PlanAction::kFailed},
                                                  {10, PlanAction::kPassedOver}}});
  ASSERT_EQ(plan.decisions.size(), 6u);
  EXPECT_EQ(plan.decisions[0].differences.bits, EntryDifferences::kSize);
  EXPECT_EQ(plan.decisions[1].id, 1u);
  EXPECT_EQ(plan.decisions[1].action, PlanAction::kUnchanged);
  EXPECT_EQ(plan.decisions[4].id, 9u);
  EXPECT_EQ(plan.decisions[4].action, PlanAction::kFailed);
  EXPECT_EQ(plan.decisions[5].action, PlanAction::kPassedOver);
  const SettledBatch settled = over_the_wire(SettledBatch{{{3, true}, {2, false}}});
  ASSERT_EQ(settled.entries.size(), 2u);
  EXPECT_EQ(settled.entries[0].id, 3u);
  EXPECT_TRUE(settled.entries[0].replicated);
  EXPECT_EQ(settled.entries[1].id, 2u);
  EXPECT_FALSE(settled.entries[1].replicated);
}

TEST(Message, SummarySurvivesTheRoundTrip) {
  const Summary expected = sample_summary();
  const Summary summary = over_the_wire(expected);
  for (std::size_t i = 0; i < kStageCount; ++i) {
    EXPECT_EQ(summary.figures.stages[i].busy_seconds, expected.figures.stages[i].busy_seconds);
    EXPECT_EQ(summary.figures.stages[i].bytes, expected.figures.stages[i].bytes);
  }
  EXPECT_EQ(summary.figures.cpu_seconds, 12.345678);
  EXPECT_EQ(summary.figures.cores, 96u);
  EXPECT_EQ(summary.figures.peak_memory_bytes, std::uint64_t{200} << 20);
  EXPECT_EQ(summary.files.total, 1u);
  EXPECT_EQ(summary.files.sent, 2u);
  EXPECT_EQ(summary.files.unchanged, 3u);
  EXPECT_EQ(summary.files.linked, 4u);
  EXPECT_EQ(summary.files.deleted, 5u);
  EXPECT_EQ(summary.files.failed, 6u);
  EXPECT_EQ(summary.files.vanished, 7u);
  EXPECT_EQ(summary.bytes.total, 11u);
  EXPECT_EQ(summary.bytes.sent, 12u);
  EXPECT_EQ(summary.bytes.resumed, 13u);
  EXPECT_EQ(summary.bytes.unchanged, 14u);
  EXPECT_EQ(summary.bytes.wire, 15u);
  EXPECT_EQ(summary.digest, sample_checksum());
  EXPECT_EQ(summary.errors_total, 17u);
}

TEST(Message, SecondsThatCannotBeAreBroughtIntoBounds) {
  constexpr double kLongest = double(std::uint64_t{1} << 50) / 1e6;
  Summary summary;
  const auto seconds_after_trip = [&summary](double seconds) {
    summary.figures.cpu_seconds = seconds;
    return over_the_wire(summary).figures.cpu_seconds;
  };
  EXPECT_EQ(seconds_after_trip(-1), 0);
  EXPECT_EQ(seconds_after_trip(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(seconds_after_trip(std::numeric_limits<double>::infinity()), kLongest);
  EXPECT_EQ(seconds_after_trip(1e300), kLongest);
  EXPECT_EQ(seconds_after_trip(kLongest), kLongest);
  EXPECT_EQ(seconds_after_trip(0.0000014), 0.000001);
}

TEST(Message, ErrorsAndNotesSurviveTheRoundTrip) {
  const ErrorEntry error{"a/b\n\xff", ErrorCode::kNoSpace, "writing: full"};
  const ErrorBatch errors = over_the_wire(ErrorBatch{{error, error}});
  ASSERT_EQ(errors.errors.size(), 2u);
  EXPECT_EQ(errors.errors[1].path, error.path);
  EXPECT_EQ(errors.errors[1].code, ErrorCode::kNoSpace);
  EXPECT_EQ(errors.errors[1].message, "writing: full");
  const NoteBatch notes = over_the_wire(NoteBatch{{"one", ""}});
  EXPECT_EQ(notes.notes, (std::vector<std::string>{"one", ""}));
  const Abort abort = over_the_wire(Abort{{"", ErrorCode::kCancelled, "interrupted"}});
  EXPECT_EQ(abort.error.path, "");
  EXPECT_EQ(abort.error.code, ErrorCode::kCancelled);
  EXPECT_EQ(abort.error.message, "interrupted");
}

TEST(Message, TextsThatAreTooLongAreCut) {
  const std::string longest(limits::kErrorTextBytesMax, 'x');
  const ErrorEntry error{longest + "y", ErrorCode::kIoError, longest + "z"};
  const Abort abort = over_the_wire(Abort{error});
  EXPECT_EQ(abort.error.path, longest);
  EXPECT_EQ(abort.error.message, longest);
  EXPECT_EQ(over_the_wire(NoteBatch{{longest + "y"}}).notes.front(), longest);
  const std::string label(limits::kLabelBytesMax, 'x');
  EXPECT_EQ(over_the_wire(Hello{1, 1, 0, label + "y"}).software, label);
  EXPECT_EQ(over_the_wire(SetupReply{1, Cipher::kNone, label + "y"}).io_engine, label);
}

TEST(Message, FullBatchesStayWithinTheMessageBound) {
  const std::string text(limits::kErrorTextBytesMax, 'x');
  const ErrorEntry error{text, ErrorCode::kIoError, text};
  const std::vector<ErrorEntry> errors(limits::kErrorBatchEntries, error);
  const std::vector<std::string> notes(limits::kNoteBatchEntries, text);
  const std::vector<PlanDecision> decisions(limits::kEntriesOutstandingMax);
  const std::vector<EntrySettled> settled(limits::kEntriesOutstandingMax);
  EXPECT_EQ(over_the_wire(ErrorBatch{errors}).errors.size(), errors.size());
  EXPECT_EQ(over_the_wire(NoteBatch{notes}).notes.size(), notes.size());
  EXPECT_EQ(over_the_wire(PlanBatch{decisions}).decisions.size(), decisions.size());
  EXPECT_EQ(over_the_wire(SettledBatch{settled}).entries.size(), settled.size());
}

TEST(Message, EmptyBatchesSurviveTheRoundTrip) {
  EXPECT_TRUE(over_the_wire(ManifestBatch{}).entries.empty());
  EXPECT_TRUE(over_the_wire(PlanBatch{}).decisions.empty());
  EXPECT_TRUE(over_the_wire(SettledBatch{}).entries.empty());
  EXPECT_TRUE(over_the_wire(ErrorBatch{}).errors.empty());
  EXPECT_TRUE(over_the_wire(NoteBatch{}).notes.empty());
}

TEST(NegotiateVersion, TakesTheHighestInBothRanges) {
  EXPECT_EQ(*negotiate_version({1, 3, 0, ""}, {2, 5, 0, ""}), 3);
  EXPECT_EQ(*negotiate_version({2, 5, 0, ""}, {1, 3, 0, ""}), 3);
  EXPECT_EQ(*negotiate_version({1, 9, 0, ""}, {4, 4, 0, ""}), 4);
}

TEST(NegotiateVersion, NamesBothRangesWhenTheyDoNotMeet) {
  const auto version = negotiate_version({1, 2, 0, "ours"}, {3, 4, 0, "theirs"});
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.status().code(), ErrorCode::kVersionMismatch);
  EXPECT_NE(version.status().message().find("1..2"), std::string::npos);
  EXPECT_NE(version.status().message().find("3..4"), std::string::npos);
  EXPECT_FALSE(negotiate_version({3, 4, 0, ""}, {1, 2, 0, ""}).ok());
}

// Computed with `xxhsum -H2` over the bytes of docs/protocol.md, packed by Python's struct as
// "<BIIIqIQ" + length, path + length, target + 16 zero bytes.
TEST(Describe, SumsTheSpecifiedBytes) {
  ManifestEntry link;
  link.id = 3;
  link.parent = 1;
  link.type = EntryType::kSymlink;
  link.mode = 0777;
  link.uid = 1000;
  link.gid = 100;
  link.mtime_seconds = -5;
  link.mtime_nanoseconds = 123456789;
  link.name = "link";
  link.symlink_target = "to";
  EXPECT_EQ(describe(link, "a/link", Checksum()).hex(), "8b4d3bc65f24fa5f0a47261819ed44ec");
  link.id = 4;
  link.parent = 2;
  EXPECT_EQ(describe(link, "a/link", Checksum()).hex(), "8b4d3bc65f24fa5f0a47261819ed44ec");
}

TEST(Describe, EveryPropertyCounts) {
  const ManifestEntry entry = sample_manifest_batch().entries[1];
  const Checksum digest = describe(entry, "p", sample_checksum());
  const auto differs = [&](auto change) {
    ManifestEntry changed = entry;
    change(changed);
    return describe(changed, "p", sample_checksum()) != digest;
  };
  EXPECT_TRUE(differs([](ManifestEntry& e) { e.type = EntryType::kDirectory; }));
  EXPECT_TRUE(differs([](ManifestEntry& e) { e.mode ^= 1; }));
  EXPECT_TRUE(differs([](ManifestEntry& e) { e.uid ^= 1; }));
  EXPECT_TRUE(differs([](ManifestEntry& e) { e.gid ^= 1; }));
  EXPECT_TRUE(differs([](ManifestEntry& e) { e.mtime_seconds ^= 1; }));
  EXPECT_TRUE(differs([](ManifestEntry& e) { e.mtime_nanoseconds ^= 1; }));
  EXPECT_TRUE(differs([](ManifestEntry& e) { e.size ^= 1; }));
  EXPECT_TRUE(differs([](ManifestEntry& e) { e.symlink_target = "x"; }));
  EXPECT_NE(describe(entry, "q", sample_checksum()), digest);
  EXPECT_NE(describe(entry, "p", Checksum()), digest);
}

TEST(IsValidName, KeepsNamesToOneComponent) {
  for (const char* name : {"a", "...", ".hidden", ".fgsync2", "..a", "a b", "\xff", "\n"}) {
    EXPECT_TRUE(is_valid_name(name)) << name;
  }
  for (const char* name : {"", ".", "..", ".fgsync", "/", "a/b", "a/", "/a", "../a"}) {
    EXPECT_FALSE(is_valid_name(name)) << name;
  }
  EXPECT_FALSE(is_valid_name(std::string("a\0b", 3)));
  EXPECT_TRUE(is_valid_name(std::string(255, 'x')));
  EXPECT_FALSE(is_valid_name(std::string(256, 'x')));
}

}  // namespace
}  // namespace fgsync::wire
