#include "support/tree_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fgsync::testing {
namespace {

std::string contents_at(const std::string& path) {
  std::string contents;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  EXPECT_GE(fd, 0) << path;
  char bytes[1 << 16];
  for (ssize_t count; (count = ::read(fd, bytes, sizeof bytes)) > 0;) {
    contents.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(fd);
  return contents;
}

void list_into(const std::string& path, const std::string& shown,
               std::map<std::string, ListedEntry>& entries) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  ListedEntry entry;
  entry.mode = status.st_mode & 07777u;
  entry.mtime_seconds = status.st_mtim.tv_sec;
  entry.mtime_nanoseconds = status.st_mtim.tv_nsec;
  if (S_ISREG(status.st_mode)) {
    entry.type = 'f';
    entry.contents = contents_at(path);
  } else if (S_ISLNK(status.st_mode)) {
    entry.type = 'l';
    char target[4096];
    const ssize_t count = ::readlink(path.c_str(), target, sizeof target);
    if (count > 0) entry.contents.assign(target, static_cast<std::size_t>(count));
  } else if (S_ISDIR(status.st_mode)) {
    entry.type = 'd';
  }
  const bool is_directory = entry.type == 'd';
  entries[shown] = std::move(entry);
  if (!is_directory) return;
  DIR* stream = ::opendir(path.c_str());
  if (stream == nullptr) return;
  while (const dirent* found = ::readdir(stream)) {
    const std::string name = found->d_name;
    if (name == "." || name == "..") continue;
    list_into(path + "/" + name, shown == "." ? name : shown + "/" + name, entries);
  }
  ::closedir(stream);
}

}  // namespace

void PrintTo(const ListedEntry& entry, std::ostream* out) {
  *out << entry.type << " " << std::oct << entry.mode << std::dec << " " << entry.mtime_seconds
       << "." << entry.mtime_nanoseconds << " ";
  if (entry.contents.size() <= 40) {
    *out << '"' << entry.contents << '"';
  } else {
    *out << entry.contents.size() << " bytes";
  }
}

std::map<std::string, ListedEntry> list_tree(const std::string& directory) {
  std::map<std::string, ListedEntry> entries;
  list_into(directory, ".", entries);
  entries.erase(".fgsync/receipt");
  const auto after = entries.upper_bound(".fgsync");
  if (after == entries.end() || !after->first.starts_with(".fgsync/")) entries.erase(".fgsync");
  return entries;
}

std::map<std::string, std::string> list_files(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (auto& [path, entry] : list_tree(directory)) {
    if (entry.type == 'f') files[path] = std::move(entry.contents);
  }
  return files;
}

}  // namespace fgsync::testing
