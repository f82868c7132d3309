// Every option of the manual, once: the command line, the configuration and --help are made from
// this table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fgsync::tools {

enum class Takes : unsigned char {
  kNothing,   // a switch
  kText,      // --name=TEXT
  kList,      // the same, as often as wanted
  kChoice,    // --name=ONE of the comma-separated words of `value`
  kOptional,  // --name or --name=TEXT
};

enum class Support : unsigned char {
  kOffered,
  kNoEffect,    // accepted: asks for what always happens
  kNotOffered,  // refused, unless it asks for `accepted`
};

struct OptionRow {
  std::string_view group;
  char letter;            // 0: none
  std::string_view name;  // without dashes; empty: the letter alone
  Takes takes;
  std::string_view value;  // what --help shows after the equals sign, or the choices
  Support support;
  std::string_view accepted;  // a value that is accepted though the option is not offered
  std::string_view text;      // for --help

  // The key in the configuration, and what the command-line parser knows the option by.
  std::string key() const { return name.empty() ? std::string(1, letter) : std::string(name); }
  // "-c, --checksum", for messages.
  std::string spelling() const;
  // Whether a configuration file or variable may set it. Asking for help or a side's role is no
  // setting.
  bool configurable() const;
};

std::span<const OptionRow> option_table();

// Null when there is no such option.
const OptionRow* find_option(std::string_view key);

// "FGSYNC_DRY_RUN" for "dry-run".
std::string variable_name(const OptionRow& row);

}  // namespace fgsync::tools
