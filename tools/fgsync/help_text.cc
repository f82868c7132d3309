#include "help_text.h"

#include <string_view>

#include "option_table.h"

namespace fgsync::tools {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kTextColumn = 30;

constexpr std::string_view kHead =
    "Usage: fgsync [OPTIONS] SOURCE... TARGET\n"
    "\n"
    "Replicates files and trees over private networks, verified end to end.\n"
    "\n"
    "A location is PATH, [USER@]HOST:PATH over ssh, or [USER@][IPV6]:PATH. One side\n"
    "may be remote. A directory SOURCE is replicated as TARGET itself; if TARGET ends\n"
    "in a slash, SOURCE goes into it under its own name. A local name with a colon\n"
    "is written ./NAME.\n";

constexpr std::string_view kTail =
    "\n"
    "SIZE and RATE take K M G T (1024) and KB MB GB TB (1000); RATE is bytes per\n"
    "second, or bits as 10Gbit. DURATION and S are 30s, 5m or 2h; a bare number is\n"
    "seconds.\n"
    "\n"
    "Settings come from /etc/fgsync/config, then ~/.config/fgsync/config (lines of\n"
    "NAME = VALUE), then FGSYNC_NAME variables, then options; the later wins.\n"
    "\n"
    "Exit status:\n"
    "    0  the target is what was asked for, verified and durable\n"
    "    1  usage\n"
    "    2  no protocol version in common with the far side\n"
    "    3  source missing, target unusable, or mapping refused\n"
    "    4  not offered by this build or side\n"
    "    5  refused: authentication, authorisation, or a public address\n"
    "   10  connection not made, or lost\n"
    "   11  fatal file I/O: no space, quota, I/O error\n"
    "   12  the peer broke the protocol or sent damaged frames\n"
    "   20  ended by SIGINT, SIGTERM or SIGHUP\n"
    "   23  finished, but some files could not be replicated\n"
    "   24  finished, but some source files vanished or changed meanwhile\n"
    "   25  --max-delete stopped deletions\n"
    "   30  --timeout or --max-duration ran out\n"
    "   35  not connected within --connect-timeout\n"
    "   40  integrity: a difference was found on reading back\n"
    "   41  another run holds the lock\n"
    "  255  ssh itself failed\n";

std::string names_of(const OptionRow& row) {
  // Switches without a letter stand below the names of those with one.
  std::string names(row.letter != 0 ? 0 : 4, ' ');
  names += row.spelling();
  if (row.takes == Takes::kText || row.takes == Takes::kList) names.append("=").append(row.value);
  if (row.takes == Takes::kOptional) names.append("[=").append(row.value).append("]");
  if (row.takes == Takes::kChoice) names.append("=WORD");
  return names;
}

std::string text_of(const OptionRow& row) {
  std::string text(row.text);
  if (row.support == Support::kNotOffered) text += " (not in this version)";
  return text;
}

// Appends `text` from `column` on, broken at blanks so that no line passes kWidth.
void append_wrapped(std::string& out, std::size_t column, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > kTextColumn && column + 1 + end > kWidth) {
      out += '\n';
      out.append(kTextColumn, ' ');
      column = kTextColumn;
    }
    if (column > kTextColumn) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += '\n';
}

void append_option(std::string& out, const OptionRow& row) {
  std::string head(2, ' ');
  head += names_of(row);
  if (head.size() + 2 > kTextColumn) {
    out += head + '\n';
    head.clear();
  }
  head.resize(kTextColumn, ' ');
  out += head;
  append_wrapped(out, kTextColumn, text_of(row));
}

}  // namespace

std::string help_text() {
  std::string out(kHead);
  std::string_view group;
  for (const OptionRow& row : option_table()) {
    if (row.group.empty()) continue;
    if (row.group != group) {
      group = row.group;
      out.append("\n").append(group).append(":\n");
    }
    append_option(out, row);
  }
  out += kTail;
  return out;
}

std::string usage_hint(bool source_missing) {
  const std::string missing =
      source_missing ? "SOURCE and TARGET are missing" : "TARGET is missing";
  return "fgsync: " + missing +
         "\n"
         "usage: fgsync [OPTIONS] SOURCE... TARGET   (see fgsync --help)";
}

}  // namespace fgsync::tools
