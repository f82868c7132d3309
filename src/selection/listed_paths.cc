#include "selection/listed_paths.h"

#include <algorithm>

namespace fgsync {

Result<std::string> parse_listed_path(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return Status(ErrorCode::kInvalidArgument, "a NUL in a path");
  }
  std::vector<std::string_view> components;
  bool with_names = true;  // "a/", "a/." and "." mean what is in the directory
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const std::string_view component = text.substr(at, end - at);
    at = end + 1;
    with_names = component.empty() || component == "." || component == "..";
    if (component == "..") {
      if (components.empty()) {
        return Status(ErrorCode::kInvalidArgument, "the path leads out of the source");
      }
      components.pop_back();
    } else if (!with_names) {
      components.push_back(component);
    }
  }
  std::string path;
  for (const std::string_view component : components) path.append(component).append("/");
  if (!with_names) path.pop_back();
  return path;
}

namespace selection {
namespace {

// A slash goes before every other byte, so that nothing comes between a directory and what is in
// it.
bool goes_before(std::string_view a, std::string_view b) {
  return std::ranges::lexicographical_compare(a, b, [](char x, char y) {
    const auto rank = [](char c) { return c == '/' ? 0 : int(static_cast<unsigned char>(c)) + 1; };
    return rank(x) < rank(y);
  });
}

}  // namespace

ListedPaths::ListedPaths(std::vector<std::string> paths) : paths_(std::move(paths)) {
  std::ranges::sort(paths_, goes_before);
  paths_.erase(std::unique(paths_.begin(), paths_.end()), paths_.end());
}

void ListedPaths::leave_out(const FilterRules& rules, const std::string& prefix) {
  std::erase_if(paths_, [&](const std::string& path) {
    if (path.empty()) return false;
    const bool names_directory = path.ends_with('/');
    std::string whole = prefix.empty() ? path : prefix + "/" + path;
    if (names_directory) whole.pop_back();
    return rules.leave_out(whole, true) && (names_directory || rules.leave_out(whole, false));
  });
}

std::string_view ListedPaths::component(std::size_t index, std::size_t offset) const {
  const std::string_view rest = std::string_view(paths_[index]).substr(offset);
  return rest.substr(0, rest.find('/'));
}

ListedPaths::Child ListedPaths::root() const {
  Child root;
  root.next = paths_.size();
  const bool listed = !paths_.empty() && paths_.front().empty();
  root.is_listed = root.with_names = listed;
  root.below = {listed ? std::size_t{1} : 0, paths_.size(), 0};
  return root;
}

ListedPaths::Child ListedPaths::first_of(const Branch& branch) const {
  return child_at(branch, branch.begin);
}

ListedPaths::Child ListedPaths::child_at(const Branch& branch, std::size_t begin) const {
  Child child;
  child.name = component(begin, branch.offset);
  const auto from = paths_.begin() + std::ptrdiff_t(begin);
  const auto to = paths_.begin() + std::ptrdiff_t(branch.end);
  const auto behind = std::partition_point(from, to, [&](const std::string& path) {
    const std::string_view rest = std::string_view(path).substr(branch.offset);
    return rest.substr(0, rest.find('/')) == child.name;
  });
  child.next = std::size_t(behind - paths_.begin());
  const std::size_t ends = branch.offset + child.name.size();
  child.below = {begin, child.next, ends + 1};
  // "a" goes before "a/", and that before "a/b".
  if (paths_[begin].size() == ends) {
    child.is_listed = true;
    ++child.below.begin;
  }
  if (!child.below.empty() && paths_[child.below.begin].size() == ends + 1) {
    child.is_listed = child.with_names = true;
    ++child.below.begin;
  }
  return child;
}

std::optional<ListedPaths::Child> ListedPaths::find(const Branch& branch,
                                                    std::string_view name) const {
  const auto from = paths_.begin() + std::ptrdiff_t(branch.begin);
  const auto to = paths_.begin() + std::ptrdiff_t(branch.end);
  const auto first = std::partition_point(from, to, [&](const std::string& path) {
    const std::string_view rest = std::string_view(path).substr(branch.offset);
    return goes_before(rest.substr(0, rest.find('/')), name);
  });
  const auto index = std::size_t(first - paths_.begin());
  if (first == to || component(index, branch.offset) != name) return std::nullopt;
  return child_at(branch, index);
}

std::string ListedPaths::path(std::size_t index) const {
  std::string path = paths_[index];
  if (path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace selection
}  // namespace fgsync
