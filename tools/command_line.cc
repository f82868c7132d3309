#include "command_line.h"

#include <limits>
#include <utility>

#include "filter_rules.h"
#include "list_file.h"
#include "option_table.h"
#include "option_values.h"
#include "text.h"

namespace fgsync::tools {
namespace {

constexpr int kUsage = 1;
constexpr int kNotInThisVersion = 4;

[[noreturn]] void refuse(const std::string& what) {
  throw CommandError{kNotInThisVersion, what + ": not offered by this version"};
}

[[noreturn]] void usage(const std::string& what) { throw CommandError{kUsage, what}; }

// Reads settings by key; a value that cannot be read names its origin.
class Reader {
 public:
  explicit Reader(const Settings& settings) : settings_(settings) {}

  const Setting* find(const std::string& key) const {
    const auto found = settings_.find(key);
    return found == settings_.end() ? nullptr : &found->second;
  }

  bool is_on(const std::string& key) const {
    const Setting* setting = find(key);
    return setting != nullptr && value_of(*setting, parse_switch(setting->value));
  }

  std::string text(const std::string& key, std::string otherwise) const {
    const Setting* setting = find(key);
    if (setting == nullptr) return otherwise;
    return setting->value;
  }

  std::vector<std::string> list(const std::string& key) const {
    const Setting* setting = find(key);
    return setting == nullptr ? std::vector<std::string>() : setting->list;
  }

  template <typename Parse, typename Value>
  Value read(const std::string& key, Parse parse, Value otherwise) const {
    const Setting* setting = find(key);
    return setting == nullptr ? otherwise : value_of(*setting, parse(setting->value));
  }

 private:
  template <typename Value>
  static Value value_of(const Setting& setting, Result<Value> result) {
    if (!result.ok()) usage(setting.origin + ": " + result.status().message());
    return std::move(result).value();
  }

  const Settings& settings_;
};

bool is_one_of(std::string_view word, std::string_view choices) {
  while (!choices.empty()) {
    const std::size_t comma = choices.find(',');
    if (word == choices.substr(0, comma)) return true;
    choices = comma == std::string_view::npos ? "" : choices.substr(comma + 1);
  }
  return false;
}

// Values outside their list are a usage error, whether the option is offered or not; that goes
// first.
void check_choices(const Settings& settings) {
  for (const auto& [key, setting] : settings) {
    const OptionRow& row = *find_option(key);
    if (row.takes == Takes::kChoice && !is_one_of(setting.value, row.value)) {
      usage(setting.origin + ": expected one of " + std::string(row.value));
    }
  }
}

void refuse_what_is_not_offered(const Settings& settings) {
  const Reader reader(settings);
  for (const auto& [key, setting] : settings) {
    const OptionRow& row = *find_option(key);
    if (row.takes == Takes::kNothing && !reader.is_on(key)) continue;
    if (row.support == Support::kNotOffered && setting.value != row.accepted)
      refuse(setting.origin);
    if (key == "transport" && setting.value == "rdma") refuse(setting.origin);
  }
}

Result<std::uint32_t> parse_streams(std::string_view text) {
  if (text == "auto") return std::uint32_t{0};
  const Result<std::uint64_t> count = parse_count(text);
  if (!count.ok() || *count > std::numeric_limits<std::uint32_t>::max()) {
    return Status(ErrorCode::kInvalidArgument, "expected auto or a number of connections");
  }
  return static_cast<std::uint32_t>(*count);
}

Result<std::chrono::milliseconds> parse_deadline(std::string_view text) {
  Result<std::chrono::milliseconds> duration = parse_duration(text);
  if (duration.ok() && duration->count() == 0) {
    return Status(ErrorCode::kInvalidArgument, "expected more than 0; a long deadline is 24h");
  }
  return duration;
}

Result<std::vector<std::string>> parse_remote_shell(std::string_view text) {
  Result<std::vector<std::string>> words = split_words(text);
  if (words.ok() && words->empty())
    return Status(ErrorCode::kInvalidArgument, "expected a command");
  return words;
}

Result<ProgressMode> parse_progress(std::string_view text) {
  if (text == "auto") return ProgressMode::kAuto;
  if (text == "always" || text == "true") return ProgressMode::kAlways;
  if (text == "never" || text == "false") return ProgressMode::kNever;
  if (text == "json") return ProgressMode::kJson;
  return Status(ErrorCode::kInvalidArgument, "expected auto, always, never or json");
}

AddressFamily read_family(const Reader& reader) {
  const bool ipv4 = reader.is_on("ipv4");
  const bool ipv6 = reader.is_on("ipv6");
  if (!ipv4 && !ipv6) return AddressFamily::kAny;
  if (ipv4 != ipv6) return ipv4 ? AddressFamily::kIpv4 : AddressFamily::kIpv6;
  const Setting& four = *reader.find("ipv4");
  const Setting& six = *reader.find("ipv6");
  if (four.place == six.place) usage(four.origin + " and " + six.origin + " exclude each other");
  return four.place > six.place ? AddressFamily::kIpv4 : AddressFamily::kIpv6;
}

void check_patterns(const std::vector<std::string>& patterns) {
  constexpr std::size_t kPatternsMax = 256;
  constexpr std::size_t kPatternBytesMax = 4096;
  if (patterns.size() > kPatternsMax) {
    usage("--last: at most " + std::to_string(kPatternsMax) + " patterns");
  }
  for (const std::string& pattern : patterns) {
    const bool possible = !pattern.empty() && pattern.size() <= kPatternBytesMax &&
                          pattern.find('\0') == std::string::npos;
    if (!possible) usage("--last=" + escape_name(pattern) + ": expected 1 to 4096 bytes");
  }
}

// As in rsync, of several the first of these wins.
Comparison read_comparison(const Reader& reader) {
  if (reader.is_on("checksum")) return Comparison::kContents;
  if (reader.is_on("size-only")) return Comparison::kSize;
  if (reader.is_on("ignore-times")) return Comparison::kNothing;
  return Comparison::kSizeAndTime;
}

void read_selection(const Reader& reader, TransferOptions& options) {
  Selection& selection = options.selection;
  selection.bytes_min = reader.read("min-size", parse_size, selection.bytes_min);
  selection.bytes_max = reader.read("max-size", parse_size, selection.bytes_max);
  selection.copy_links = reader.is_on("copy-links");
  selection.one_file_system = reader.is_on("one-file-system");
  selection.lists_paths = reader.find("files-from") != nullptr;
  selection.lists_whole_directories = reader.is_on("recursive");
  selection.safe_links = reader.is_on("safe-links");
  options.changes.comparison = read_comparison(reader);
  options.changes.update = reader.is_on("update");
  options.changes.existing_only = reader.is_on("existing");
  options.changes.new_only = reader.is_on("ignore-existing");
}

TransferOptions read_transfer(const Reader& reader) {
  TransferOptions options;
  options.make_parents = reader.is_on("mkpath");
  options.dry_run = reader.is_on("dry-run");
  options.publish_tree = reader.read("publish", parse_publish, options.publish_tree);
  options.durability = reader.read("durability", parse_durability, options.durability);
  options.last = reader.list("last");
  check_patterns(options.last);
  options.read_back = reader.read("verify", parse_verify, options.read_back);
  if (options.read_back && options.durability == Durability::kNone) {
    usage("--verify=readback reads what has been synced, and --durability=none syncs nothing");
  }
  options.resume = !reader.is_on("no-resume");
  read_selection(reader, options);

  options.streams = reader.read("streams", parse_streams, options.streams);
  options.chunk_bytes = reader.read("chunk-size", parse_size, options.chunk_bytes);
  options.bandwidth_limit = reader.read("bwlimit", parse_rate, options.bandwidth_limit);
  options.transport = reader.read("transport", parse_transport, options.transport);
  options.io_engine = reader.read("io-engine", parse_io_engine, options.io_engine);
  options.direct_io = reader.read("direct-io", parse_direct_io, options.direct_io);
  options.cipher = reader.read("cipher", parse_cipher, options.cipher);

  options.report_changes = reader.is_on("verbose") || reader.is_on("itemize-changes");

  options.bind = reader.text("bind", options.bind);
  options.ports = reader.read("port", parse_ports, options.ports);
  options.allow_public = reader.is_on("allow-public");
  options.family = read_family(reader);
  options.remote_shell = reader.read("rsh", parse_remote_shell, options.remote_shell);
  options.remote_fgsync = reader.text("remote-fgsync", options.remote_fgsync);

  options.timeout = reader.read("timeout", parse_deadline, options.timeout);
  options.connect_timeout = reader.read("connect-timeout", parse_deadline, options.connect_timeout);
  options.retry_for = reader.read("retry-for", parse_duration, options.retry_for);
  return options;
}

OutputOptions read_output(const Reader& reader) {
  OutputOptions output;
  output.quiet = reader.is_on("quiet");
  output.verbose = reader.is_on("verbose");
  output.itemize = reader.is_on("itemize-changes");
  output.stats = reader.is_on("stats");
  output.json = reader.is_on("json");
  output.progress = reader.read("progress", parse_progress, output.progress);
  output.log_file = reader.text("log-file", output.log_file);
  return output;
}

// --lock alone is about the target, --lock=FILE about that file instead.
void read_lock(const Reader& reader, CommandLine& command) {
  const std::string lock = reader.text("lock", "false");
  const Result<bool> is_switch = parse_switch(lock);
  if (!is_switch.ok()) {
    command.lock_file = lock;
  } else {
    command.transfer.fail_if_locked = *is_switch;
  }
}

std::vector<Location> parse_locations(const std::vector<std::string>& texts) {
  std::vector<Location> locations;
  for (const std::string& text : texts) {
    Result<Location> location = parse_location(text);
    if (!location.ok()) {
      const bool unsupported = location.status().code() == ErrorCode::kUnsupported;
      throw CommandError{unsupported ? kNotInThisVersion : kUsage,
                         escape_message(location.status().message())};
    }
    locations.push_back(std::move(location).value());
  }
  return locations;
}

void place_locations(std::vector<Location> locations, TransferOptions& options) {
  std::size_t remote = 0;
  for (const Location& location : locations) remote += location.is_remote() ? 1 : 0;
  if (locations.size() > 2 && !locations.front().is_remote() && remote == locations.size() - 1) {
    refuse("several targets");
  }
  options.target = std::move(locations.back());
  locations.pop_back();
  options.sources = std::move(locations);

  const Location& first = options.sources.front();
  if (options.selection.lists_paths && options.sources.size() > 1) {
    usage("--files-from: its paths stand below one source");
  }
  for (const Location& source : options.sources) {
    if (source.is_remote() && options.target.is_remote()) {
      usage("source and target are both remote: " + escape_name(source.display()) + " and " +
            escape_name(options.target.display()) +
            "; one side is this host (a local name with a colon is written ./NAME)");
    }
    if (source.host != first.host || source.user != first.user) {
      usage("all sources stand on one host: " + escape_name(first.display()) + " and " +
            escape_name(source.display()) +
            " do not (a local name with a colon is written ./NAME)");
    }
  }
}

}  // namespace

TransferOptions understand_transfer(const Settings& settings) {
  check_choices(settings);
  TransferOptions options = read_transfer(Reader(settings));
  refuse_what_is_not_offered(settings);
  const bool ends_with_nul = Reader(settings).is_on("from0");
  options.selection.rules = read_filter_rules(settings, ends_with_nul);
  if (options.selection.lists_paths) {
    options.listed_paths = read_listed_paths(settings.at("files-from").value, ends_with_nul);
  }
  return options;
}

OutputOptions understand_output(const Settings& settings) { return read_output(Reader(settings)); }

CommandLine understand(const Settings& settings, const std::vector<std::string>& locations) {
  CommandLine command;
  command.output = understand_output(settings);
  command.transfer = understand_transfer(settings);
  read_lock(Reader(settings), command);
  place_locations(parse_locations(locations), command.transfer);
  if (Reader(settings).is_on("compress")) command.notes.push_back("-z: the wire is not compressed");
  return command;
}

}  // namespace fgsync::tools
