#include "configuration.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "option_table.h"
#include "text.h"

namespace fgsync::tools {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

[[noreturn]] void fail(const std::string& where, std::string_view key, const char* why) {
  throw CommandError{1, where + ": " + escape_name(key) + ": " + why};
}

void read_line(std::string_view line, const std::string& where, std::size_t number,
               Settings& settings) {
  if (line.empty() || line.front() == '#') return;
  const std::size_t equals = line.find('=');
  const std::string_view key = trimmed(line.substr(0, equals));
  const OptionRow* row = find_option(key);
  if (row == nullptr || !row->configurable()) fail(where, key, "there is no such setting");
  Setting setting;
  setting.place = Place::kFile;
  if (equals != std::string_view::npos) {
    setting.value = trimmed(line.substr(equals + 1));
    if (setting.value.empty()) fail(where, key, "the value is missing");
  } else if (row->takes == Takes::kNothing) {
    setting.value = "true";
  } else {
    fail(where, key, "the value is missing");
  }
  setting.origin = where + ": " + escape_name(key) + " = " + escape_name(setting.value);
  if (row->takes == Takes::kList) {
    Setting& before = settings[row->key()];
    setting.list = std::move(before.list);
    setting.list.push_back(setting.value);
    setting.positions = std::move(before.positions);
    setting.positions.push_back(number);
  }
  settings[row->key()] = std::move(setting);
}

}  // namespace

std::vector<std::string> configuration_files() {
  std::vector<std::string> files = {"/etc/fgsync/config"};
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0')
    files.push_back(std::string(home) + "/.config/fgsync/config");
  return files;
}

void read_configuration_file(const std::string& path, Settings& settings) {
  const std::string shown = escape_name(path);
  std::error_code unknown;
  const std::filesystem::file_type type = std::filesystem::status(path, unknown).type();
  if (type == std::filesystem::file_type::fifo) {
    // Opening it would wait for somebody who writes.
    throw CommandError{1, shown + ": opening the configuration: it is a FIFO"};
  }
  errno = 0;
  std::ifstream file(path);
  if (!file.is_open()) {
    // EACCES as well: HOME may still be that of whoever started a job under another user.
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) return;
    throw CommandError{1, shown + ": opening the configuration: " + std::strerror(errno)};
  }
  std::string line;
  Settings here;  // a list of this file takes the place of one that was there before
  std::size_t number = 1;
  for (; std::getline(file, line); ++number) {
    read_line(trimmed(line), shown + ":" + std::to_string(number), number, here);
  }
  // What this file says goes before what another one has said.
  for (auto& [key, setting] : settings) {
    for (std::size_t& position : setting.positions) position += number;
  }
  here.merge(settings);
  settings = std::move(here);
  if (file.bad()) {
    throw CommandError{1, shown + ": reading the configuration: " + std::strerror(errno)};
  }
}

void read_variables(Settings& settings) {
  for (const OptionRow& row : option_table()) {
    if (!row.configurable()) continue;
    const std::string name = variable_name(row);
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    settings[row.key()] = Setting{value,
                                  Place::kVariable,
                                  name + "=" + escape_name(value),
                                  {value},
                                  {std::size_t(&row - option_table().data())}};
  }
}

}  // namespace fgsync::tools
