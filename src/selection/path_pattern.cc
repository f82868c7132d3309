#include "selection/path_pattern.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstdint>

#include "base/assert.h"
#include "base/limits.h"

namespace fgsync::selection {
namespace {

struct NamedClass {
  std::string_view name;
  int (*contains)(int);
};
constexpr std::array<NamedClass, 12> kClasses = {{{"alnum", std::isalnum},
                                                  {"alpha", std::isalpha},
                                                  {"blank", std::isblank},
                                                  {"cntrl", std::iscntrl},
                                                  {"digit", std::isdigit},
                                                  {"graph", std::isgraph},
                                                  {"lower", std::islower},
                                                  {"print", std::isprint},
                                                  {"punct", std::ispunct},
                                                  {"space", std::isspace},
                                                  {"upper", std::isupper},
                                                  {"xdigit", std::isxdigit}}};

std::bitset<256> only(char c) {
  std::bitset<256> characters;
  characters.set(static_cast<unsigned char>(c));
  return characters;
}

// What "[:name:]" stands for; false when there is no such class.
bool add_class(std::string_view name, std::bitset<256>& characters) {
  const auto found = std::find_if(kClasses.begin(), kClasses.end(),
                                  [&](const NamedClass& known) { return known.name == name; });
  if (found == kClasses.end()) return false;
  for (int c = 0; c < 128; ++c) {
    if (found->contains(c) != 0) characters.set(std::size_t(c));
  }
  return true;
}

// Where "[:name:]" ends that begins at `at`; 0 if none does.
std::size_t end_of_class(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with("[:")) return 0;
  const std::size_t end = text.find(']', at + 2);
  return end != std::string_view::npos && end > at + 2 && text[end - 1] == ':' ? end : 0;
}

// Where the last `count` components begin; npos if there are fewer.
std::size_t begin_of_last(std::string_view path, std::size_t count) {
  std::size_t begin = path.size() + 1;
  while (count-- > 0) {
    if (begin == 0) return std::string_view::npos;
    const std::size_t slash = begin < 2 ? std::string_view::npos : path.rfind('/', begin - 2);
    begin = slash == std::string_view::npos ? 0 : slash + 1;
  }
  return begin;
}

}  // namespace

PathPattern::PathPattern(std::string_view text) {
  FGSYNC_ASSERT(text.size() <= limits::kPatternBytesMax);
  anchored_ = text.starts_with('/');
  if (anchored_) text.remove_prefix(1);
  directories_only_ = text.ends_with('/');
  if (directories_only_) text.remove_suffix(1);
  slashes_ = std::size_t(std::count(text.begin(), text.end(), '/'));
  has_double_star_ = text.find("**") != std::string_view::npos;
  begins_with_double_star_ = text.starts_with("**");
  takes_all_below_ = text.ends_with("***");
  has_wildcards_ = text.find_first_of("*?[") != std::string_view::npos;
  if (has_wildcards_) {
    read_wildcards(text);
  } else {
    literal_ = text;
  }
}

void PathPattern::read_wildcards(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '*') {
      const std::size_t end = std::min(text.find_first_not_of('*', at), text.size());
      tokens_.push_back({end - at > 1 ? Token::Kind::kDoubleStar : Token::Kind::kStar, {}});
      at = end - 1;
    } else if (c == '?') {
      std::bitset<256> any;
      any.set();
      any.reset('/');
      tokens_.push_back({Token::Kind::kSet, any});
    } else if (c == '[') {
      read_set(text, at);
    } else if (c != '\\') {
      tokens_.push_back({Token::Kind::kCharacter, only(c)});
    } else if (++at < text.size()) {
      tokens_.push_back({Token::Kind::kCharacter, only(text[at])});
    } else {
      tokens_.push_back({Token::Kind::kNever, {}});
    }
  }
}

// From the opening bracket to the closing one, where `at` stands then. A bracket that is the first
// of its set belongs to it. A set that is not closed matches nothing.
void PathPattern::read_set(std::string_view text, std::size_t& at) {
  std::bitset<256> characters;
  std::size_t i = at + 1;
  const bool negated = i < text.size() && (text[i] == '!' || text[i] == '^');
  if (negated) ++i;
  const std::size_t first = i;
  unsigned before = 0;  // what a range may begin with
  for (; i < text.size() && (text[i] != ']' || i == first); ++i) {
    const std::size_t class_end = end_of_class(text, i);
    const bool is_range =
        text[i] == '-' && before != 0 && i + 1 < text.size() && text[i + 1] != ']';
    if (class_end != 0) {
      const bool known = add_class(text.substr(i + 2, class_end - i - 3), characters);
      i = known ? class_end : text.size() - 1;
      before = 0;
      continue;
    }
    if (is_range) ++i;
    if (text[i] == '\\') ++i;
    if (i >= text.size()) break;
    const auto c = static_cast<unsigned char>(text[i]);
    for (unsigned member = is_range ? before : c; member <= c; ++member) characters.set(member);
    before = is_range ? 0 : c;
  }
  at = std::min(i, text.size());
  if (at == text.size()) return tokens_.push_back({Token::Kind::kNever, {}});
  if (negated) characters.flip();
  characters.reset('/');
  tokens_.push_back({Token::Kind::kSet, characters});
}

// The tokens that may come next, of all ways to match what has been taken so far. No two stars
// stand beside each other, so that one step behind a star is enough.
class PathPattern::Matching {
 public:
  explicit Matching(const std::vector<Token>& tokens)
      : tokens_(tokens), words_(tokens.size() / kWordBits + 1) {
    std::fill_n(sets_[0].begin(), words_, 0);
    add(sets_[0], 0);
  }

  void take(std::string_view text) {
    for (const char c : text) take(c);
  }
  void take(char c) {
    const Set& now = sets_[current_];
    Set& next = sets_[1 - current_];
    std::fill_n(next.begin(), words_, 0);
    for (std::size_t word = 0; word < words_; ++word) {
      for (std::uint64_t left = now[word]; left != 0; left &= left - 1) {
        const std::size_t i = word * kWordBits + std::size_t(std::countr_zero(left));
        if (i == tokens_.size()) continue;
        if (!tokens_[i].is_star()) {
          if (tokens_[i].takes(c)) add(next, i + 1);
        } else if (c != '/' || tokens_[i].kind == Token::Kind::kDoubleStar) {
          add(next, i);
        }
      }
    }
    current_ = 1 - current_;
  }
  bool is_complete() const {
    const std::size_t end = tokens_.size();
    return (sets_[current_][end / kWordBits] >> (end % kWordBits) & 1) != 0;
  }

 private:
  static constexpr std::size_t kWordBits = 64;
  // Only the first words_ are used, and set to anything.
  using Set = std::array<std::uint64_t, limits::kPatternBytesMax / kWordBits + 1>;
  void add(Set& set, std::size_t i) const {
    set[i / kWordBits] |= std::uint64_t{1} << (i % kWordBits);
    if (i < tokens_.size() && tokens_[i].is_star()) {
      set[(i + 1) / kWordBits] |= std::uint64_t{1} << ((i + 1) % kWordBits);
    }
  }

  const std::vector<Token>& tokens_;
  const std::size_t words_;
  std::array<Set, 2> sets_;
  std::size_t current_ = 0;
};

bool PathPattern::matches(std::string_view path, bool is_directory) const {
  if (directories_only_ && !is_directory) return false;
  if (is_about_name()) return matches_whole("", path.substr(begin_of_last(path, 1)), "");
  const std::string_view end = is_directory && takes_all_below_ ? "/" : "";
  if (anchored_) return matches_whole("", path, end);
  if (!has_double_star_) {
    const std::size_t begin = begin_of_last(path, slashes_ + 1);
    return begin != std::string::npos && matches_whole("", path.substr(begin), end);
  }
  // "**/x" stands for x at the top as well.
  if (begins_with_double_star_) return matches_whole("/", path, end);
  // Behind every slash.
  for (std::size_t at = 0; at != std::string::npos;) {
    if (matches_whole("", path.substr(at), end)) return true;
    at = path.find('/', at);
    if (at != std::string::npos) ++at;
  }
  return false;
}

bool PathPattern::matches_whole(std::string_view before, std::string_view path,
                                std::string_view after) const {
  if (!has_wildcards_) return path == literal_;
  // Most patterns end in something that most names don't.
  if (after.empty() && !path.empty() && !tokens_.back().may_end_with(path.back())) return false;
  Matching matching(tokens_);
  matching.take(before);
  matching.take(path);
  matching.take(after);
  return matching.is_complete();
}

}  // namespace fgsync::selection
