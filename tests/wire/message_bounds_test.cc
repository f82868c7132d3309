// Every bound that decode_message() keeps, violated once.
#include <gtest/gtest.h>

#include <functional>

#include "base/limits.h"
#include "wire/byte_writer.h"
#include "wire/message.h"
#include "wire/message_samples.h"

namespace fgsync::wire {
namespace {

testing::AssertionResult is_refused(const std::vector<std::byte>& bytes) {
  const auto decoded = decode_message(bytes);
  if (decoded.ok()) return testing::AssertionFailure() << "was accepted";
  if (decoded.status().code() != ErrorCode::kProtocolError) {
    return testing::AssertionFailure() << "another code: " << decoded.status().message();
  }
  return testing::AssertionSuccess();
}

// A sample with one thing changed.
template <typename Body>
std::vector<std::byte> changed(Body body, const std::function<void(Body&)>& change) {
  change(body);
  return encode(body);
}

std::vector<std::byte> with_byte(std::vector<std::byte> bytes, std::size_t index, int value) {
  bytes.at(index) = std::byte(value);
  return bytes;
}

// A message of nothing but its type and a count of elements.
std::vector<std::byte> with_count(int type, std::uint32_t count, std::size_t bytes_behind) {
  ByteWriter writer;
  writer.u8(std::uint8_t(type));
  writer.u32(count);
  writer.bytes(std::vector<std::byte>(bytes_behind));
  return writer.take();
}

constexpr int kSourceOfferType = 4;
constexpr int kManifestType = 6;
constexpr int kPlanType = 8;
constexpr int kSettledType = 10;
constexpr int kErrorsType = 12;
constexpr int kNotesType = 13;
constexpr int kDifferencesType = 19;

TEST(MessageBounds, NoBytesAndUnknownTypesAreRefused) {
  EXPECT_TRUE(is_refused({}));
  for (const int type : {0, 21, 255}) {
    EXPECT_TRUE(is_refused(with_byte(encode(Heartbeat{1, {}}), 0, type))) << type;
  }
}

TEST(MessageBounds, AMessageAboveTheBoundIsRefused) {
  EXPECT_TRUE(is_refused(std::vector<std::byte>(limits::kControlMessageBytesMax + 1)));
  // Valid but for its length: 4096 sources of 300 bytes each.
  wire::Setup setup = sample_setup();
  setup.sources.assign(limits::kSourcesMax, std::string(300, 'x'));
  EXPECT_TRUE(is_refused(encode(setup)));
  setup.sources.assign(limits::kSourcesMax, std::string(200, 'x'));
  EXPECT_TRUE(decode_message(encode(setup)).ok());
}

TEST(MessageBounds, CountsAboveTheirLimitsAreRefused) {
  EXPECT_TRUE(is_refused(with_count(kSourceOfferType, limits::kSourcesMax + 1, 900'000)));
  EXPECT_TRUE(is_refused(with_count(kManifestType, limits::kManifestBatchEntries + 1, 900'000)));
  EXPECT_TRUE(is_refused(with_count(kPlanType, limits::kEntriesOutstandingMax + 1, 900'000)));
  EXPECT_TRUE(is_refused(with_count(kSettledType, limits::kEntriesOutstandingMax + 1, 900'000)));
  EXPECT_TRUE(is_refused(with_count(kErrorsType, limits::kErrorBatchEntries + 1, 900'000)));
  EXPECT_TRUE(is_refused(with_count(kNotesType, limits::kNoteBatchEntries + 1, 900'000)));
  EXPECT_TRUE(is_refused(with_count(kDifferencesType, limits::kErrorBatchEntries + 1, 900'000)));
}

TEST(MessageBounds, CountsThatCannotBeThereAreRefused) {
  for (const int type :
       {kSourceOfferType, kManifestType, kPlanType, kSettledType, kErrorsType, kNotesType}) {
    EXPECT_TRUE(is_refused(with_count(type, 0xffffffff, 16))) << type;
    EXPECT_TRUE(is_refused(with_count(type, 40, 39))) << type;
  }
}

TEST(MessageBounds, Hello) {
  EXPECT_TRUE(is_refused(encode(Hello{0, 1, 0, "x"})));
  EXPECT_TRUE(is_refused(encode(Hello{2, 1, 0, "x"})));
  EXPECT_TRUE(is_refused(encode(Hello{1, 1, 0, "\x1b[2J"})));
  EXPECT_TRUE(is_refused(encode(Hello{1, 1, 0, "a\nb"})));
  ByteWriter writer;
  writer.u8(1);
  writer.u16(1);
  writer.u16(1);
  writer.u64(0);
  writer.string(std::string(limits::kLabelBytesMax + 1, 'x'));
  EXPECT_TRUE(is_refused(writer.take()));
}

TEST(MessageBounds, SetupNumbers) {
  const auto with = [](const std::function<void(wire::Setup&)>& change) {
    return changed<wire::Setup>(sample_setup(), change);
  };
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.streams = 0; })));
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.streams = limits::kStreamsMax + 1; })));
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.chunk_bytes = 0; })));
  EXPECT_TRUE(is_refused(with(
      [](wire::Setup& s) { s.chunk_bytes = limits::kChunkBytesMin - limits::kSlotAlignment; })));
  EXPECT_TRUE(is_refused(with(
      [](wire::Setup& s) { s.chunk_bytes = limits::kChunkBytesMax + limits::kSlotAlignment; })));
  EXPECT_TRUE(
      is_refused(with([](wire::Setup& s) { s.chunk_bytes = limits::kChunkBytesMin + 512; })));
}

TEST(MessageBounds, SetupPaths) {
  const auto with = [](const std::function<void(wire::Setup&)>& change) {
    return changed<wire::Setup>(sample_setup(), change);
  };
  EXPECT_TRUE(is_refused(with(
      [](wire::Setup& s) { s.sources[0] = std::string(limits::kPathArgumentBytesMax + 1, 'x'); })));
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.sources[0] = std::string("a\0b", 3); })));
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.sources.resize(limits::kSourcesMax + 1); })));
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.sources.clear(); })));
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.target = std::string("/both"); })));
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.initiator = Role::kSender; })));
  const auto as_sender = [&with](const std::string& target) {
    return with([&target](wire::Setup& s) {
      s.initiator = Role::kSender;
      s.sources.clear();
      s.target = target;
    });
  };
  EXPECT_TRUE(decode_message(as_sender("/x")).ok());
  EXPECT_TRUE(is_refused(as_sender(std::string("a\0b", 3))));
  EXPECT_TRUE(is_refused(as_sender(std::string(limits::kPathArgumentBytesMax + 1, 'x'))));
}

TEST(MessageBounds, SetupEnumeratorsAndBooleans) {
  const auto bytes = encode(sample_setup());
  for (const int role : {0, 3}) EXPECT_TRUE(is_refused(with_byte(bytes, 1, role)));
  for (const std::size_t boolean : {2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u}) {
    EXPECT_TRUE(is_refused(with_byte(bytes, boolean, 2))) << boolean;
    EXPECT_TRUE(is_refused(with_byte(bytes, boolean, 255))) << boolean;
  }
  EXPECT_TRUE(is_refused(with_byte(bytes, 10, 3)));  // durability
  EXPECT_TRUE(is_refused(with_byte(bytes, 11, 3)));  // direct I/O
  EXPECT_TRUE(is_refused(with_byte(bytes, 12, 5)));  // cipher
}

TEST(MessageBounds, SetupPatterns) {
  const auto with = [](std::vector<std::string> patterns) {
    return changed<wire::Setup>(sample_setup(), [&](wire::Setup& s) { s.last = patterns; });
  };
  EXPECT_TRUE(decode_message(with({std::string(limits::kPatternBytesMax, 'x')})).ok());
  EXPECT_TRUE(is_refused(with({std::string(limits::kPatternBytesMax + 1, 'x')})));
  EXPECT_TRUE(is_refused(with({""})));
  EXPECT_TRUE(is_refused(with({std::string("a\0b", 3)})));
  EXPECT_TRUE(decode_message(with({limits::kPatternsMax, "x"})).ok());
  EXPECT_TRUE(is_refused(with({limits::kPatternsMax + 1, "x"})));
}

TEST(MessageBounds, SetupRules) {
  const auto with = [](std::vector<FilterRule> rules) {
    return changed<wire::Setup>(sample_setup(),
                                [&](wire::Setup& s) { s.selection.rules = std::move(rules); });
  };
  const std::string longest(limits::kPatternBytesMax, 'x');
  EXPECT_TRUE(decode_message(with({{false, longest}})).ok());
  EXPECT_TRUE(is_refused(with({{false, longest + "x"}})));
  EXPECT_TRUE(is_refused(with({{true, ""}})));
  EXPECT_TRUE(is_refused(with({{true, std::string("a\0b", 3)}})));
  using Rules = std::vector<FilterRule>;
  EXPECT_TRUE(decode_message(with(Rules(limits::kFilterRulesMax, {true, "x"}))).ok());
  EXPECT_TRUE(is_refused(with(Rules(limits::kFilterRulesMax + 1, {true, "x"}))));
  constexpr std::size_t kLongRulesMax = limits::kFilterBytesMax / limits::kPatternBytesMax;
  EXPECT_TRUE(decode_message(with(Rules(kLongRulesMax, {true, longest}))).ok());
  EXPECT_TRUE(is_refused(with(Rules(kLongRulesMax + 1, {true, longest}))));
}

TEST(MessageBounds, Streams) {
  const std::vector<std::uint64_t> most(limits::kStreamsMax, 1);
  EXPECT_TRUE(decode_message(encode(Heartbeat{1, most})).ok());
  // One more, with the bytes that it claims.
  auto bytes = with_byte(encode(Heartbeat{1, most}), 9, limits::kStreamsMax + 1);
  bytes.resize(bytes.size() + 8);
  EXPECT_TRUE(is_refused(bytes));
  EXPECT_TRUE(decode_message(encode(StreamEnded{limits::kStreamsMax - 1, 0, 0})).ok());
  EXPECT_TRUE(is_refused(encode(StreamEnded{limits::kStreamsMax, 0, 0})));
}

TEST(MessageBounds, Differences) {
  const auto bytes = encode(DifferenceBatch{{{DifferenceKind::kContents, "a", ""}}});
  EXPECT_TRUE(decode_message(bytes).ok());
  for (const int kind : {0, int(DifferenceKind::kTime), 255}) {
    EXPECT_TRUE(is_refused(with_byte(bytes, 5, kind))) << kind;
  }
}

TEST(MessageBounds, AComparisonIsADryRun) {
  const auto with = [](const std::function<void(wire::Setup&)>& change) {
    return changed<wire::Setup>(sample_setup(), change);
  };
  EXPECT_TRUE(is_refused(with([](wire::Setup& s) { s.dry_run = false; })));
  EXPECT_TRUE(decode_message(with([](wire::Setup& s) { s.dry_run = s.compare = false; })).ok());
}

TEST(MessageBounds, HeldChunks) {
  const std::vector<Checksum> most(limits::kHeldChunksMax);
  EXPECT_TRUE(decode_message(encode(HeldChunks{1, 0, most})).ok());
  EXPECT_TRUE(is_refused(encode(HeldChunks{1, 0, {}})));
  EXPECT_TRUE(is_refused(encode(HeldChunks{1, limits::kFileChunksMax, {Checksum()}})));
  // One more than the most: the count is bytes 17 to 20.
  auto bytes = encode(HeldChunks{1, 0, most});
  bytes.resize(bytes.size() + 16);
  EXPECT_TRUE(is_refused(with_byte(bytes, 17, 1)));
}

TEST(MessageBounds, SetupReply) {
  EXPECT_TRUE(is_refused(encode(SetupReply{0, Cipher::kNone, "posix"})));
  EXPECT_TRUE(is_refused(encode(SetupReply{limits::kStreamsMax + 1, Cipher::kNone, "posix"})));
  EXPECT_TRUE(is_refused(encode(SetupReply{1, Cipher::kAuto, "posix"})));
  EXPECT_TRUE(is_refused(encode(SetupReply{1, Cipher::kNone, "\x7f"})));
  EXPECT_TRUE(is_refused(with_byte(encode(SetupReply{1, Cipher::kNone, "posix"}), 3, 5)));
}

TEST(MessageBounds, SourceOffer) {
  const auto with = [](const std::function<void(SourceDescription&)>& change) {
    return changed<SourceOffer>(sample_source_offer(),
                                [&change](SourceOffer& offer) { change(offer.sources[0]); });
  };
  EXPECT_TRUE(is_refused(encode(SourceOffer{})));
  EXPECT_TRUE(decode_message(with([](SourceDescription& s) { s.base_name.clear(); })).ok());
  for (const char* name : {".", "..", ".fgsync", "a/b"}) {
    EXPECT_TRUE(is_refused(with([name](SourceDescription& s) { s.base_name = std::string(name); })))
        << name;
  }
  EXPECT_TRUE(is_refused(with([](SourceDescription& s) { s.base_name = std::string(256, 'x'); })));
  EXPECT_TRUE(is_refused(with([](SourceDescription& s) {
    s.display = std::string(limits::kPathArgumentBytesMax + 1, 'x');
  })));
  EXPECT_TRUE(is_refused(with([](SourceDescription& s) { s.display = std::string("a\0b", 3); })));
  EXPECT_TRUE(
      is_refused(with([](SourceDescription& s) { s.ancestry.resize(limits::kAncestryMax + 1); })));
  EXPECT_TRUE(decode_message(with([](SourceDescription& s) {
                s.ancestry.resize(limits::kAncestryMax);
              })).ok());
}

TEST(MessageBounds, TargetAccept) {
  EXPECT_TRUE(is_refused(encode(TargetAccept{false, {}, {}})));
  EXPECT_TRUE(is_refused(encode(TargetAccept{false, {""}, {"/t"}})));
  EXPECT_TRUE(is_refused(encode(TargetAccept{true, {"a"}, {"/t"}})));
  EXPECT_TRUE(is_refused(encode(TargetAccept{true, {"", ""}, {"/t", "/u"}})));
  EXPECT_TRUE(is_refused(encode(TargetAccept{false, {".."}, {"/t"}})));
  EXPECT_TRUE(is_refused(encode(TargetAccept{false, {"a/b"}, {"/t"}})));
  EXPECT_TRUE(is_refused(with_byte(encode(sample_target_accept()), 1, 2)));
  const std::vector<std::string> many(limits::kSourcesMax + 1, "x");
  EXPECT_TRUE(is_refused(encode(TargetAccept{false, many, many})));
  EXPECT_TRUE(is_refused(
      encode(TargetAccept{false, {"a"}, {std::string(limits::kPathArgumentBytesMax + 1, 'x')}})));
}

// The sample's entries: the root, a file, a symlink.
std::vector<std::byte> manifest_with(std::size_t index,
                                     const std::function<void(ManifestEntry&)>& change) {
  return changed<ManifestBatch>(sample_manifest_batch(),
                                [&](ManifestBatch& batch) { change(batch.entries.at(index)); });
}

TEST(MessageBounds, TheRootOfAManifest) {
  EXPECT_TRUE(is_refused(manifest_with(0, [](ManifestEntry& e) { e.parent = 1; })));
  EXPECT_TRUE(is_refused(manifest_with(0, [](ManifestEntry& e) { e.name = std::string("x"); })));
  EXPECT_TRUE(is_refused(manifest_with(0, [](ManifestEntry& e) { e.type = EntryType::kRegular; })));
  EXPECT_TRUE(is_refused(manifest_with(0, [](ManifestEntry& e) {
    e.type = EntryType::kSymlink;
    e.symlink_target = std::string("x");
  })));
}

TEST(MessageBounds, PlacesInAManifest) {
  EXPECT_TRUE(is_refused(manifest_with(1, [](ManifestEntry& e) { e.parent = e.id; })));
  EXPECT_TRUE(is_refused(manifest_with(1, [](ManifestEntry& e) { e.parent = e.id + 1; })));
  EXPECT_TRUE(is_refused(manifest_with(2, [](ManifestEntry& e) { e.id = 7, e.parent = 0; })));
  EXPECT_TRUE(is_refused(manifest_with(2, [](ManifestEntry& e) { e.id = 6, e.parent = 0; })));
}

TEST(MessageBounds, NamesInAManifest) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".fgsync"),
        std::string("a/b"), std::string("/"), std::string("a\0b", 3), std::string(256, 'x')}) {
    EXPECT_TRUE(is_refused(manifest_with(1, [&name](ManifestEntry& e) { e.name = name; }))) << name;
  }
}

TEST(MessageBounds, MetadataInAManifest) {
  EXPECT_TRUE(is_refused(manifest_with(1, [](ManifestEntry& e) { e.mode = 010000; })));
  EXPECT_TRUE(
      is_refused(manifest_with(1, [](ManifestEntry& e) { e.mtime_nanoseconds = 1'000'000'000; })));
  EXPECT_TRUE(
      is_refused(manifest_with(1, [](ManifestEntry& e) { e.ctime_nanoseconds = 1'000'000'000; })));
  EXPECT_TRUE(is_refused(manifest_with(1, [](ManifestEntry& e) { ++e.size; })));
  EXPECT_TRUE(is_refused(manifest_with(0, [](ManifestEntry& e) { e.size = 1; })));
  EXPECT_TRUE(is_refused(manifest_with(2, [](ManifestEntry& e) { e.size = 1; })));
  for (const int type : {0, 4, 255}) {
    EXPECT_TRUE(
        is_refused(manifest_with(1, [type](ManifestEntry& e) { e.type = EntryType(type); })));
  }
}

TEST(MessageBounds, SymlinkTargetsInAManifest) {
  const auto with_target = [](std::size_t index, const std::string& target) {
    return manifest_with(index, [&target](ManifestEntry& e) { e.symlink_target = target; });
  };
  EXPECT_TRUE(is_refused(with_target(0, "x")));
  EXPECT_TRUE(is_refused(with_target(1, "x")));
  EXPECT_TRUE(is_refused(with_target(2, "")));
  EXPECT_TRUE(is_refused(with_target(2, std::string("a\0b", 3))));
  EXPECT_TRUE(is_refused(with_target(2, std::string(limits::kSymlinkTargetBytesMax + 1, 'x'))));
  EXPECT_TRUE(
      decode_message(with_target(2, std::string(limits::kSymlinkTargetBytesMax, 'x'))).ok());
}

TEST(MessageBounds, ManifestEndPlanAndSettled) {
  EXPECT_TRUE(is_refused(with_byte(encode(ManifestEnd{1, true}), 9, 2)));
  const auto plan = encode(PlanBatch{{{1, PlanAction::kSend}}});
  EXPECT_TRUE(is_refused(with_byte(plan, plan.size() - 3, 0)));
  EXPECT_TRUE(is_refused(with_byte(plan, plan.size() - 3, 8)));
  EXPECT_TRUE(is_refused(with_byte(plan, plan.size() - 2, 128)));
  EXPECT_TRUE(is_refused(with_byte(plan, plan.size() - 1, 1)));
  const auto settled = encode(SettledBatch{{{1, true}}});
  EXPECT_TRUE(is_refused(with_byte(settled, settled.size() - 1, 2)));
}

TEST(MessageBounds, FileEnd) {
  const auto bytes = encode(FileEnd{9, true, sample_checksum()});
  EXPECT_TRUE(is_refused(with_byte(bytes, 9, 2)));
  EXPECT_TRUE(is_refused(with_byte(bytes, 9, 0)));  // withdrawn with a digest
}

TEST(MessageBounds, SummaryTimes) {
  const auto bytes = encode(sample_summary());
  ASSERT_TRUE(decode_message(bytes).ok());
  // The first stage's time, and the processor's behind nine stages of 16 bytes: above 2^50
  // microseconds.
  EXPECT_TRUE(is_refused(with_byte(bytes, 1 + 7, 1)));
  EXPECT_TRUE(is_refused(with_byte(bytes, 1 + 9 * 16 + 7, 1)));
}

TEST(MessageBounds, ErrorsAndNotes) {
  const ErrorEntry error{"p", ErrorCode::kIoError, "m"};
  const auto abort = encode(Abort{error});
  EXPECT_TRUE(is_refused(with_byte(abort, 6, 0)));   // no error
  EXPECT_TRUE(is_refused(with_byte(abort, 6, 21)));  // above the last code
  const auto errors = encode(ErrorBatch{{error}});
  EXPECT_TRUE(is_refused(with_byte(errors, 10, 0)));
  ByteWriter notes;
  notes.u8(kNotesType);
  notes.u32(1);
  notes.string(std::string(limits::kErrorTextBytesMax + 1, 'x'));
  EXPECT_TRUE(is_refused(notes.take()));
  ByteWriter long_path;
  long_path.u8(15);
  long_path.string(std::string(limits::kErrorTextBytesMax + 1, 'x'));
  long_path.u8(5);
  long_path.string("m");
  EXPECT_TRUE(is_refused(long_path.take()));
}

}  // namespace
}  // namespace fgsync::wire
