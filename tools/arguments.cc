// Splitting argv. CLI11 knows which options exist and which take a value; what a value means is
// decided for all places of settings together (understand()). Locations are not declared to CLI11:
// it would read a path of the form "[a,b]" as a list.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "command_line.h"
#include "option_table.h"
#include "text.h"

namespace fgsync::tools {
namespace {

CLI::Option* declare(CLI::App& app, const OptionRow& row) {
  std::string names;
  if (row.letter != 0) names = std::string("-") + row.letter;
  if (row.letter != 0 && !row.name.empty()) names += ',';
  if (!row.name.empty()) names += "--" + std::string(row.name);
  // CLI11 gives a flag its value only behind an equals sign, which is what an optional value needs.
  const bool takes_value = row.takes != Takes::kNothing && row.takes != Takes::kOptional;
  CLI::Option* option = takes_value ? app.add_option(names) : app.add_flag(names);
  // One value for each time that it is given: CLI11 would take a list's further words as well.
  if (row.takes == Takes::kList) {
    return option->type_size(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// Where each value of a list was given among all options.
std::vector<std::size_t> positions_of(const CLI::App& app, const CLI::Option* option) {
  std::vector<std::size_t> positions;
  const std::vector<CLI::Option*>& order = app.parse_order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] == option) positions.push_back(i);
  }
  return positions;
}

// "--bind=$INTERFACE" with an empty variable: CLI11 would take the next word as the value.
void refuse_empty_values(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      throw CommandError{1, escape_name(word) + ": the value is missing"};
    }
  }
}

// What CLI11 left over, in order: unknown options before "--", and locations.
std::vector<std::string> locations_of(const std::string& program,
                                      const std::vector<std::string>& leftover) {
  std::vector<std::string> locations;
  bool options_ended = false;
  for (const std::string& word : leftover) {
    if (!options_ended && word == "--") {
      options_ended = true;
    } else if (!options_ended && word.size() > 1 && word.front() == '-') {
      throw CommandError{
          1, escape_name(word) + ": there is no such option (see " + program + " --help)"};
    } else {
      locations.push_back(word);
    }
  }
  return locations;
}

}  // namespace

Arguments parse_arguments(const std::string& program, const std::vector<std::string>& words) {
  refuse_empty_values(words);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const OptionRow*, const CLI::Option*>> declared;
  for (const OptionRow& row : option_table()) declared.emplace_back(&row, declare(app, row));
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    // Its text starts with the option's name.
    const std::string_view text = error.what();
    throw CommandError{1, escape_name(text.substr(0, text.find(':'))) + ": the value is missing"};
  }

  Arguments arguments;
  for (const auto& [row, option] : declared) {
    if (option->count() == 0) continue;
    const std::string& value = option->results().back();
    const bool is_text = row->takes == Takes::kText || row->takes == Takes::kList;
    const bool bare = value == "true" && !is_text;
    const std::string origin = bare ? row->spelling() : row->spelling() + "=" + escape_name(value);
    Setting setting{value, Place::kOption, origin};
    if (row->takes == Takes::kList) {
      setting.list = option->results();
      setting.positions = positions_of(app, option);
    }
    arguments.settings[row->key()] = std::move(setting);
  }
  arguments.locations = locations_of(program, app.remaining());
  return arguments;
}

}  // namespace fgsync::tools
