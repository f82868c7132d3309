// rsync's patterns: what a name or path is matched against, as its manual says under "PATTERN
// MATCHING RULES".
//
//   *      anything without a slash        ?      one character but a slash
//   **     anything                        [...]  one character of a set, never a slash
//   \      takes the next character as it is, in a pattern with wildcards
//
// A pattern with a slash in front is matched from the tree's top; one with another slash (or with
// **) against the end of the path; any other against the last component alone. A slash at the end
// restricts it to directories; "/***" at the end means a directory and all below it. Nothing is
// allocated for a match.
#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fgsync::selection {

class PathPattern {
 public:
  // At most limits::kPatternBytesMax.
  explicit PathPattern(std::string_view text);

  // `path` is relative to the tree's top. Takes at most the product of both lengths in time.
  bool matches(std::string_view path, bool is_directory) const;
  // Whether the last component decides.
  bool is_about_name() const { return !anchored_ && slashes_ == 0 && !has_double_star_; }

 private:
  struct Token {
    enum class Kind : unsigned char { kCharacter, kSet, kStar, kDoubleStar, kNever };
    Kind kind = Kind::kCharacter;
    std::bitset<256> characters;  // kCharacter and kSet
    bool is_star() const { return kind == Kind::kStar || kind == Kind::kDoubleStar; }
    bool may_end_with(char c) const {
      return kind == Kind::kDoubleStar || (kind == Kind::kStar ? c != '/' : takes(c));
    }
    bool takes(char c) const { return characters[static_cast<unsigned char>(c)]; }
  };
  void read_wildcards(std::string_view text);
  void read_set(std::string_view text, std::size_t& at);
  class Matching;
  // Of the three behind each other.
  bool matches_whole(std::string_view before, std::string_view path, std::string_view after) const;

  bool has_wildcards_ = false;
  bool anchored_ = false;
  bool directories_only_ = false;
  bool has_double_star_ = false;
  bool begins_with_double_star_ = false;
  bool takes_all_below_ = false;  // "***" at the end
  std::size_t slashes_ = 0;
  std::vector<Token> tokens_;  // with wildcards
  std::string literal_;        // without
};

}  // namespace fgsync::selection
