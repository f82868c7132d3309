#include "filter_rules.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "list_file.h"
#include "text.h"

namespace fgsync::tools {
namespace {

// As limits of the library; it refuses more.
constexpr std::size_t kPatternBytesMax = 4096;
constexpr std::size_t kRulesMax = 16 * 1024;
constexpr std::size_t kRulesBytesMax = 512 * 1024;
// Of a file of rules: comments may be longer than rules.
constexpr std::size_t kFileBytesMax = 16 * 1024 * 1024;

struct Source {
  const char* key;
  bool include;
  bool is_file;
};
constexpr std::array<Source, 4> kSources = {{{"include", true, false},
                                             {"exclude", false, false},
                                             {"include-from", true, true},
                                             {"exclude-from", false, true}}};

// One value of one of the options.
struct Given {
  Place place;
  std::size_t position;
  const Source* source;
  std::string value;
};

std::vector<Given> all_given(const Settings& settings) {
  std::vector<Given> given;
  for (const Source& source : kSources) {
    const auto setting = settings.find(source.key);
    if (setting == settings.end()) continue;
    for (std::size_t i = 0; i < setting->second.list.size(); ++i) {
      given.push_back(
          {setting->second.place, setting->second.positions[i], &source, setting->second.list[i]});
    }
  }
  std::ranges::sort(given, [](const Given& a, const Given& b) {
    return std::tuple(b.place, a.position) < std::tuple(a.place, b.position);
  });
  return given;
}

// The rules of one place.
class Rules {
 public:
  // `where` names it in messages.
  void take(std::string text, bool include, const std::string& where) {
    if (text == "!") {
      rules_.clear();
      forgets_lesser_ = true;
      return;
    }
    const bool says_itself = text.starts_with("+ ") || text.starts_with("- ");
    if (says_itself) {
      include = text.front() == '+';
      text.erase(0, 2);
    }
    if (text.empty()) throw CommandError{1, where + ": the pattern is missing"};
    if (text.size() > kPatternBytesMax) {
      throw CommandError{1, where + ": a pattern has at most 4096 bytes"};
    }
    rules_.push_back({include, std::move(text)});
  }

  void take_file(const Given& given, bool ends_with_nul) {
    for (ListedLine& line : read_list_file(given.value, ends_with_nul, kFileBytesMax)) {
      if (line.is_comment()) continue;
      take(std::move(line.text), given.source->include,
           escape_name(given.value) + ":" + std::to_string(line.number));
    }
  }

  bool forgets_lesser() const { return forgets_lesser_; }
  const std::vector<FilterRule>& rules() const { return rules_; }

 private:
  std::vector<FilterRule> rules_;
  bool forgets_lesser_ = false;
};

void check_amount(const std::vector<FilterRule>& rules) {
  std::size_t bytes = 0;
  for (const FilterRule& rule : rules) bytes += rule.pattern.size();
  if (rules.size() > kRulesMax || bytes > kRulesBytesMax) {
    throw CommandError{1, "--exclude, --include: at most 16384 rules of 512 KiB together"};
  }
}

}  // namespace

std::vector<FilterRule> read_filter_rules(const Settings& settings, bool ends_with_nul) {
  std::vector<FilterRule> all;
  const std::vector<Given> given = all_given(settings);
  for (auto next = given.begin(); next != given.end();) {
    const Place place = next->place;
    Rules rules;
    for (; next != given.end() && next->place == place; ++next) {
      if (next->source->is_file) {
        rules.take_file(*next, ends_with_nul);
      } else {
        rules.take(next->value, next->source->include,
                   std::string("--") + next->source->key + "=" + escape_name(next->value));
      }
    }
    all.insert(all.end(), rules.rules().begin(), rules.rules().end());
    if (rules.forgets_lesser()) break;
  }
  check_amount(all);
  return all;
}

}  // namespace fgsync::tools
