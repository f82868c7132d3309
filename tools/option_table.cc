#include "option_table.h"

#include <cctype>

namespace fgsync::tools {
namespace {

constexpr std::string_view kSelection = "Selection";
constexpr std::string_view kKept = "What is kept (an archive by default)";
constexpr std::string_view kChanged = "What counts as changed (default: size and time)";
constexpr std::string_view kLanding = "Landing";
constexpr std::string_view kPlane = "Data plane";
constexpr std::string_view kNetwork = "Network";
constexpr std::string_view kRobustness = "Robustness";
constexpr std::string_view kAutomation = "Automation";
constexpr std::string_view kHabits = "Habits from rsync";
constexpr std::string_view kOther = "Other";

constexpr auto kNothing = Takes::kNothing;
constexpr auto kText = Takes::kText;
constexpr auto kList = Takes::kList;
constexpr auto kChoice = Takes::kChoice;
constexpr auto kOptional = Takes::kOptional;
constexpr auto kOffered = Support::kOffered;
constexpr auto kNoEffect = Support::kNoEffect;
constexpr auto kNotOffered = Support::kNotOffered;

constexpr OptionRow kTable[] = {
    {kSelection, 'n', "dry-run", kNothing, "", kOffered, "",
     "show what would be changed, change nothing"},
    {kSelection, 0, "delete", kNothing, "", kNotOffered, "",
     "remove what the source does not have"},
    {kSelection, 0, "max-delete", kText, "N", kNotOffered, "",
     "remove nothing if it were more than N"},
    {kSelection, 0, "delete-excluded", kNothing, "", kNotOffered, "", "remove excluded names too"},
    {kSelection, 0, "include", kList, "PATTERN", kOffered, "",
     "take what matches, whatever later rules say"},
    {kSelection, 0, "exclude", kList, "PATTERN", kOffered, "",
     "leave out what matches; of all these rules the first that matches decides"},
    {kSelection, 0, "include-from", kList, "FILE", kOffered, "", "patterns to take, from FILE"},
    {kSelection, 0, "exclude-from", kList, "FILE", kOffered, "",
     "patterns to leave out, from FILE (-: standard input)"},
    {kSelection, 0, "files-from", kText, "FILE", kOffered, "",
     "take only the paths below SOURCE that FILE lists; of directories what is in them only "
     "with -r"},
    {kSelection, '0', "from0", kNothing, "", kOffered, "", "such files end each line with NUL"},
    {kSelection, 0, "max-size", kText, "SIZE", kOffered, "", "leave larger files alone"},
    {kSelection, 0, "min-size", kText, "SIZE", kOffered, "", "leave smaller files alone"},
    {kSelection, 'x', "one-file-system", kNothing, "", kOffered, "",
     "stay on the source's file system"},

    {kKept, 0, "no-owner", kNothing, "", kNotOffered, "", "do not keep owners"},
    {kKept, 0, "no-group", kNothing, "", kNotOffered, "", "do not keep groups"},
    {kKept, 0, "no-perms", kNothing, "", kNotOffered, "", "do not keep modes"},
    {kKept, 0, "no-times", kNothing, "", kNotOffered, "", "do not keep times"},
    {kKept, 0, "no-hard-links", kNothing, "", kNoEffect, "",
     "hard links as separate files (always so in this version)"},
    {kKept, 0, "no-xattrs", kNothing, "", kNoEffect, "",
     "no extended attributes (always so in this version)"},
    {kKept, 0, "no-acls", kNothing, "", kNoEffect, "",
     "no access control lists (always so in this version)"},
    {kKept, 0, "no-sparse", kNothing, "", kNoEffect, "",
     "do not seek holes (always so in this version)"},
    {kKept, 0, "no-specials", kNothing, "", kNoEffect, "",
     "no FIFOs, no devices (always so in this version)"},
    {kKept, 0, "numeric-ids", kNothing, "", kNotOffered, "", "owners by number, not by name"},
    {kKept, 0, "chown", kText, "USER:GROUP", kNotOffered, "", "owners at the target"},
    {kKept, 0, "chmod", kText, "CHANGES", kNotOffered, "", "modes at the target"},
    {kKept, 'L', "copy-links", kNothing, "", kOffered, "", "replicate what symlinks point to"},
    {kKept, 0, "safe-links", kNothing, "", kOffered, "", "leave out symlinks that leave the tree"},

    {kChanged, 'c', "checksum", kNothing, "", kOffered, "",
     "compare contents, which both sides read"},
    {kChanged, 0, "size-only", kNothing, "", kOffered, "", "compare sizes alone"},
    {kChanged, 'u', "update", kNothing, "", kOffered, "",
     "leave files that are newer at the target"},
    {kChanged, 0, "existing", kNothing, "", kOffered, "", "make no new files"},
    {kChanged, 0, "ignore-existing", kNothing, "", kOffered, "", "make new files only"},
    {kChanged, 'I', "ignore-times", kNothing, "", kOffered, "", "send every file"},

    {kLanding, 0, "mkpath", kNothing, "", kOffered, "", "make the target's missing parents"},
    {kLanding, 0, "publish", kChoice, "file,tree", kOffered, "",
     "file (default): each file appears whole; tree: all at once"},
    {kLanding, 0, "last", kList, "PATTERN", kOffered, "",
     "publish what matches after all else, besides the markers that are known"},
    {kLanding, 0, "durability", kChoice, "none,batch,full", kOffered, "",
     "batch (default): on stable storage at the end; full: each file before it appears; none"},
    {kLanding, 0, "verify", kChoice, "wire,readback", kOffered, "",
     "wire (default): what arrived; readback: what can be read back"},

    {kPlane, 0, "streams", kText, "N", kOffered, "",
     "data connections (default auto: from the cores)"},
    {kPlane, 0, "chunk-size", kText, "SIZE", kOffered, "", "unit of work, 64K to 16M (default 4M)"},
    {kPlane, 0, "bwlimit", kText, "RATE", kOffered, "",
     "bytes per second over all streams (default none)"},
    {kPlane, 0, "transport", kChoice, "auto,tcp,rdma", kOffered, "",
     "auto (default), tcp; rdma (not in this version)"},
    {kPlane, 0, "io-engine", kChoice, "auto,uring,posix", kOffered, "",
     "auto (default), uring or posix, for files and sockets"},
    {kPlane, 0, "direct-io", kChoice, "auto,always,never", kOffered, "",
     "auto (default), always or never: bypass the page cache"},
    {kPlane, 0, "cipher", kChoice, "auto,aes128-gcm,aes256-gcm,chacha20,none", kOffered, "",
     "auto (default), aes128-gcm, aes256-gcm, chacha20, none"},

    {kNetwork, 0, "bind", kText, "ADDR", kOffered, "", "use this host's address or interface ADDR"},
    {kNetwork, 0, "port", kText, "N|LO-HI", kOffered, "",
     "port, or range of ports, that the started far side listens on (default any)"},
    {kNetwork, 0, "allow-public", kNothing, "", kOffered, "",
     "allow addresses outside private networks"},
    {kNetwork, 'e', "rsh", kText, "CMD", kOffered, "", "remote shell (default ssh)"},
    {kNetwork, 0, "remote-fgsync", kText, "PATH", kOffered, "",
     "the far side's fgsync (default fgsync)"},
    {kNetwork, '4', "ipv4", kNothing, "", kOffered, "", "use IPv4 only"},
    {kNetwork, '6', "ipv6", kNothing, "", kOffered, "", "use IPv6 only"},

    {kRobustness, 0, "timeout", kText, "S", kOffered, "",
     "end after so long without progress (default 5m)"},
    {kRobustness, 0, "connect-timeout", kText, "S", kOffered, "",
     "end if not connected after so long (default 15s)"},
    {kRobustness, 0, "retry-for", kText, "DURATION", kOffered, "",
     "make lost connections again for so long and go on (default 60s; 0: not)"},
    {kRobustness, 0, "no-resume", kNothing, "", kOffered, "",
     "start files afresh, keep nothing for a later run"},

    {kAutomation, 'q', "quiet", kNothing, "", kOffered, "", "say nothing but errors"},
    {kAutomation, 'v', "verbose", kNothing, "", kOffered, "", "name each replicated path"},
    {kAutomation, 'i', "itemize-changes", kNothing, "", kOffered, "",
     "list on standard output what is changed, as rsync does"},
    {kAutomation, 0, "progress", kOptional, "WHEN", kOffered, "",
     "auto (on a terminal), always, never, or json: an object a line each second"},
    {kAutomation, 0, "json", kNothing, "", kOffered, "", "print the report as one JSON object"},
    {kAutomation, 0, "log-file", kText, "FILE", kOffered, "",
     "append notes, all errors and the outcome to FILE"},
    {kAutomation, 0, "report", kText, "FILE", kNotOffered, "", "write an HTML report"},
    {kAutomation, 0, "metrics-file", kText, "FILE", kNotOffered, "", "write Prometheus metrics"},
    {kAutomation, 0, "lock", kOptional, "FILE", kOffered, "",
     "end 41 if another run into the target is under way, or holds FILE on this host"},
    {kAutomation, 0, "max-duration", kText, "DURATION", kNotOffered, "", "end after so long"},
    {kAutomation, 0, "stats", kNothing, "", kOffered, "", "print what each stage spent"},

    {kHabits, 'a', "archive", kNothing, "", kNoEffect, "", "always so"},
    {kHabits, 'r', "recursive", kNothing, "", kNoEffect, "", "always so, but for --files-from"},
    {kHabits, 'l', "links", kNothing, "", kNoEffect, "", "always so"},
    {kHabits, 'p', "perms", kNothing, "", kNoEffect, "", "always so"},
    {kHabits, 't', "times", kNothing, "", kNoEffect, "", "always so"},
    {kHabits, 'g', "group", kNothing, "", kNoEffect, "", "always so"},
    {kHabits, 'o', "owner", kNothing, "", kNoEffect, "", "always so, as root"},
    {kHabits, 'D', "", kNothing, "", kNotOffered, "", "keep devices and FIFOs"},
    {kHabits, 'H', "hard-links", kNothing, "", kNotOffered, "", "keep hard links"},
    {kHabits, 'A', "acls", kNothing, "", kNotOffered, "", "keep access control lists"},
    {kHabits, 'X', "xattrs", kNothing, "", kNotOffered, "", "keep extended attributes"},
    {kHabits, 'S', "sparse", kNothing, "", kNotOffered, "", "keep holes"},
    {kHabits, 'W', "whole-file", kNothing, "", kNoEffect, "", "always so"},
    {kHabits, 0, "partial", kNothing, "", kNoEffect, "", "always so"},
    {kHabits, 0, "info", kText, "FLAGS", kNotOffered, "progress2",
     "progress2 is always so; anything else"},
    {kHabits, 'h', "human-readable", kNothing, "", kNoEffect, "", "always so"},
    {kHabits, 'z', "compress", kNothing, "", kNoEffect, "", "accepted; the wire is not compressed"},

    {kOther, 0, "help", kNothing, "", kOffered, "", "show this help"},
    {kOther, 0, "version", kNothing, "", kOffered, "",
     "show the version and what this build offers"},
    {"", 0, "serve", kNothing, "", kOffered, "", ""},
};

}  // namespace

std::string OptionRow::spelling() const {
  std::string text;
  if (letter != 0) text = std::string("-") + letter;
  if (letter != 0 && !name.empty()) text += ", ";
  if (!name.empty()) text += "--" + std::string(name);
  return text;
}

bool OptionRow::configurable() const {
  return !name.empty() && name != "help" && name != "version" && name != "serve";
}

std::span<const OptionRow> option_table() { return kTable; }

const OptionRow* find_option(std::string_view key) {
  for (const OptionRow& row : kTable) {
    if (row.key() == key) return &row;
  }
  return nullptr;
}

std::string variable_name(const OptionRow& row) {
  std::string variable = "FGSYNC_";
  for (char c : row.key()) {
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

}  // namespace fgsync::tools
