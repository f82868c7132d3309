#include "command_line.h"

#include <gtest/gtest.h>

#include "option_table.h"

namespace fgsync::tools {
namespace {

using Words = std::vector<std::string>;

CommandLine understand_words(const Words& words) {
  const Arguments arguments = parse_arguments("fgsync", words);
  return understand(arguments.settings, arguments.locations);
}

// The failure of a command line; status 0 when there is none.
CommandError failure_of(const Words& words) {
  try {
    understand_words(words);
  } catch (const CommandError& error) {
    return error;
  }
  return CommandError{0, ""};
}

TEST(Arguments, OptionsAndLocationsMayBeMixed) {
  const Arguments arguments =
      parse_arguments("fgsync", {"a", "-nv", "--streams", "4", "b", "-e", "ssh -p 2"});
  EXPECT_EQ(arguments.locations, (Words{"a", "b"}));
  EXPECT_TRUE(arguments.has("dry-run"));
  EXPECT_TRUE(arguments.has("verbose"));
  EXPECT_EQ(arguments.settings.at("streams").value, "4");
  EXPECT_EQ(arguments.settings.at("rsh").value, "ssh -p 2");
}

TEST(Arguments, LocationsThatLookSpecialArriveUnchanged) {
  const Words odd = {"[a,b]", "{}", "-", "a=b", "%x", "", "++"};
  EXPECT_EQ(parse_arguments("fgsync", odd).locations, odd);
}

TEST(Arguments, AfterTwoDashesEverythingIsALocation) {
  EXPECT_EQ(parse_arguments("fgsync", {"-n", "--", "-v", "--", "--delete"}).locations,
            (Words{"-v", "--", "--delete"}));
}

TEST(Arguments, RepeatedOptionsLetTheLastWin) {
  const CommandLine command =
      understand_words({"--streams=2", "-v", "-v", "--streams=3", "a", "b"});
  EXPECT_EQ(command.transfer.streams, 3u);
  EXPECT_TRUE(command.output.verbose);
}

TEST(Arguments, AnOptionalValueNeverTakesTheNextWord) {
  const CommandLine command = understand_words({"--progress", "a", "b"});
  EXPECT_EQ(command.output.progress, ProgressMode::kAlways);
  EXPECT_EQ(command.transfer.target.path, "b");
}

TEST(Arguments, UnknownOptionsAndMissingValuesAreUsageErrors) {
  for (const Words& words : std::initializer_list<Words>{{"--bogus", "a", "b"},
                                                         {"-nQ", "a", "b"},
                                                         {"a", "b", "--streams"},
                                                         {"--bind=", "a", "b"},
                                                         {"-5", "a", "b"}}) {
    EXPECT_EQ(failure_of(words).exit_status, 1) << words.front();
  }
  EXPECT_NE(failure_of({"--bogus", "a", "b"}).message.find("--bogus"), std::string::npos);
}

TEST(CommandLine, DefaultsAreThoseOfTheLibrary) {
  const CommandLine command = understand_words({"a", "b"});
  const TransferOptions defaults;
  EXPECT_EQ(command.transfer.streams, defaults.streams);
  EXPECT_EQ(command.transfer.timeout, defaults.timeout);
  EXPECT_EQ(command.transfer.retry_for, std::chrono::seconds(60));
  EXPECT_EQ(understand_words({"--retry-for=0", "a", "b"}).transfer.retry_for.count(), 0);
  EXPECT_EQ(command.transfer.remote_shell, defaults.remote_shell);
  EXPECT_FALSE(command.transfer.dry_run);
  EXPECT_EQ(command.output.progress, ProgressMode::kAuto);
  EXPECT_TRUE(command.notes.empty());
}

TEST(CommandLine, EveryOfferedOptionReachesItsField) {
  const CommandLine command = understand_words({"-n",
                                                "--mkpath",
                                                "--streams=8",
                                                "--chunk-size=1M",
                                                "--bwlimit=10Gbit",
                                                "--transport=tcp",
                                                "--io-engine=posix",
                                                "--direct-io=never",
                                                "--cipher=aes256-gcm",
                                                "--bind=ens6",
                                                "--port=8730-8739",
                                                "--allow-public",
                                                "--rsh=ssh -p 22",
                                                "--remote-fgsync=/opt/fgsync",
                                                "-6",
                                                "--timeout=20",
                                                "--connect-timeout=2m",
                                                "--retry-for=90s",
                                                "-q",
                                                "-v",
                                                "--stats",
                                                "--json",
                                                "--log-file=log",
                                                "--progress=json",
                                                "a",
                                                "h:b"});
  const TransferOptions& transfer = command.transfer;
  EXPECT_TRUE(transfer.dry_run);
  EXPECT_TRUE(transfer.make_parents);
  EXPECT_EQ(transfer.streams, 8u);
  EXPECT_EQ(transfer.chunk_bytes, 1u << 20);
  EXPECT_EQ(transfer.bandwidth_limit, 1'250'000'000u);
  EXPECT_EQ(transfer.transport, Transport::kTcp);
  EXPECT_EQ(transfer.io_engine, IoEngine::kPosix);
  EXPECT_EQ(transfer.direct_io, DirectIo::kNever);
  EXPECT_EQ(transfer.cipher, Cipher::kAes256Gcm);
  EXPECT_EQ(transfer.bind, "ens6");
  EXPECT_EQ(transfer.ports.low, 8730);
  EXPECT_EQ(transfer.ports.high, 8739);
  EXPECT_TRUE(transfer.allow_public);
  EXPECT_EQ(transfer.remote_shell, (Words{"ssh", "-p", "22"}));
  EXPECT_EQ(transfer.remote_fgsync, "/opt/fgsync");
  EXPECT_EQ(transfer.family, AddressFamily::kIpv6);
  EXPECT_EQ(transfer.timeout.count(), 20'000);
  EXPECT_EQ(transfer.connect_timeout.count(), 120'000);
  EXPECT_EQ(transfer.retry_for.count(), 90'000);
  EXPECT_TRUE(command.output.quiet);
  EXPECT_TRUE(command.output.verbose);
  EXPECT_TRUE(command.output.stats);
  EXPECT_TRUE(command.output.json);
  EXPECT_EQ(command.output.log_file, "log");
  EXPECT_EQ(command.output.progress, ProgressMode::kJson);
}

TEST(CommandLine, RsyncsHabitsAreAccepted) {
  const CommandLine command =
      understand_words({"-arlptgoWhz", "--partial", "--info=progress2", "a", "b"});
  EXPECT_EQ(command.notes.size(), 1u);
}

TEST(CommandLine, ADefaultAskedForIsFine) {
  EXPECT_EQ(failure_of({"--publish=file", "--durability=batch", "--verify=wire", "--transport=auto",
                        "--no-acls", "a", "b"})
                .exit_status,
            0);
}

TEST(CommandLine, ResumingCanBeSwitchedOff) {
  EXPECT_TRUE(understand_words({"a", "b"}).transfer.resume);
  EXPECT_FALSE(understand_words({"--no-resume", "a", "b"}).transfer.resume);
}

TEST(CommandLine, APatternMayBeGivenAsOftenAsWanted) {
  EXPECT_EQ(understand_words({"--last=*.done", "a", "--last", "true", "b"}).transfer.last,
            (std::vector<std::string>{"*.done", "true"}));
  EXPECT_TRUE(understand_words({"a", "b"}).transfer.last.empty());
  EXPECT_EQ(failure_of({"--last=" + std::string(5000, 'x'), "a", "b"}).exit_status, 1);
  EXPECT_EQ(failure_of({"--last=", "a", "b"}).exit_status, 1);
  EXPECT_EQ(failure_of(std::vector<std::string>(300, "--last=x")).exit_status, 1);
}

TEST(CommandLine, WhatCountsAsChangedReachesItsField) {
  const auto changes_of = [](Words words) {
    words.insert(words.end(), {"a", "b"});
    return understand_words(words).transfer.changes;
  };
  EXPECT_EQ(changes_of({}).comparison, Comparison::kSizeAndTime);
  EXPECT_EQ(changes_of({"-I"}).comparison, Comparison::kNothing);
  EXPECT_EQ(changes_of({"--size-only", "-I"}).comparison, Comparison::kSize);
  EXPECT_EQ(changes_of({"--size-only", "-cI"}).comparison, Comparison::kContents);
  EXPECT_TRUE(changes_of({"-u"}).update);
  EXPECT_TRUE(changes_of({"--existing"}).existing_only);
  EXPECT_TRUE(changes_of({"--ignore-existing"}).new_only);
  const Selection selection =
      understand_words({"--max-size=1.5K", "--min-size=1KB", "--safe-links", "a", "b"})
          .transfer.selection;
  EXPECT_EQ(selection.bytes_max, 1536u);
  EXPECT_EQ(selection.bytes_min, 1000u);
  EXPECT_TRUE(selection.safe_links);
}

TEST(CommandLine, ALockIsTheTargetsOrAFilesOnThisHost) {
  EXPECT_FALSE(understand_words({"a", "b"}).transfer.fail_if_locked);
  EXPECT_TRUE(understand_words({"--lock", "a", "b"}).transfer.fail_if_locked);
  EXPECT_TRUE(understand_words({"--lock", "a", "b"}).lock_file.empty());
  EXPECT_FALSE(understand_words({"--lock=/run/x", "a", "b"}).transfer.fail_if_locked);
  EXPECT_EQ(understand_words({"--lock=/run/x", "a", "b"}).lock_file, "/run/x");
}

TEST(CommandLine, ReadingBackNeedsASync) {
  EXPECT_TRUE(understand_words({"--verify=readback", "a", "b"}).transfer.read_back);
  EXPECT_EQ(failure_of({"--verify=readback", "--durability=none", "a", "b"}).exit_status, 1);
}

TEST(CommandLine, EveryOptionThatIsNotOfferedEnds4AndIsNamed) {
  int refused = 0;
  for (const OptionRow& row : option_table()) {
    if (row.support != Support::kNotOffered) continue;
    const std::string dashed =
        row.name.empty() ? std::string("-") + row.letter : "--" + std::string(row.name);
    std::string word = dashed;
    if (row.takes == Takes::kText) word += "=x";
    if (row.takes == Takes::kChoice) {
      const bool first_is_default = row.value.starts_with(row.accepted);
      word += "=";
      word += first_is_default ? row.value.substr(row.value.rfind(',') + 1)
                               : row.value.substr(0, row.value.find(','));
    }
    const CommandError error = failure_of({word, "a", "b"});
    EXPECT_EQ(error.exit_status, 4) << word;
    EXPECT_NE(error.message.find(word + ": not offered by this version"), std::string::npos)
        << error.message;
    ++refused;
  }
  EXPECT_GT(refused, 15);  // the table is really read
  EXPECT_EQ(failure_of({"--delete", "a", "b"}).message, "--delete: not offered by this version");
}

TEST(CommandLine, OtherThingsThatAreNotOfferedEnd4) {
  for (const Words& words : std::initializer_list<Words>{{"--transport=rdma", "a", "b"},
                                                         {"fgsync://h/x", "b"},
                                                         {"a", "fgsync://h:8730/x"},
                                                         {"-aH", "a", "b"},
                                                         {"--info=stats2", "a", "b"},
                                                         {"a", "h:b", "g:c"}}) {
    EXPECT_EQ(failure_of(words).exit_status, 4) << words.front();
  }
}

TEST(CommandLine, ValuesOutsideTheirFormAreUsageErrorsThatNameTheOption) {
  for (const char* word :
       {"--streams=x", "--chunk-size=big", "--bwlimit=fast", "--port=0", "--cipher=rot13",
        "--publish=both", "--timeout=0", "--connect-timeout=x", "--retry-for=soon",
        "--progress=loud", "--dry-run=maybe", "--archive=maybe"}) {
    const CommandError error = failure_of({word, "a", "b"});
    EXPECT_EQ(error.exit_status, 1) << word;
    EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
  }
  EXPECT_EQ(failure_of({"--rsh", " ", "a", "b"}).exit_status, 1);
  EXPECT_EQ(failure_of({"-4", "-6", "a", "b"}).exit_status, 1);
}

TEST(CommandLine, OneSideMayBeRemote) {
  EXPECT_EQ(understand_words({"h:a", "h:b", "c"}).transfer.sources.size(), 2u);
  EXPECT_EQ(understand_words({"a", "b", "h:c"}).transfer.target.host, "h");
  const CommandError both = failure_of({"h:a", "g:b"});
  EXPECT_EQ(both.exit_status, 1);
  EXPECT_NE(both.message.find("both remote"), std::string::npos);
  EXPECT_EQ(failure_of({"h:a", "h:b", "h:c"}).exit_status, 1);
  EXPECT_EQ(failure_of({"h:a", "g:b", "c"}).exit_status, 1);
  EXPECT_EQ(failure_of({"h:a", "b", "c"}).exit_status, 1);
  EXPECT_EQ(failure_of({"::1:/x", "c"}).exit_status, 1);
}

}  // namespace
}  // namespace fgsync::tools
