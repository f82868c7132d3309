// A directory of a test's own, removed with everything in it at the end, however deep.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fgsync::testing {

// Removes what is in the directory, by names relative to it: works beyond PATH_MAX, and follows no
// symlink. One descriptor for each level.
inline void remove_contents(int directory) {
  DIR* stream = ::fdopendir(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (stream == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) names.emplace_back(entry->d_name);
  ::closedir(stream);
  for (const std::string& name : names) {
    if (name == "." || name == ".." || ::unlinkat(directory, name.c_str(), 0) == 0) continue;
    // Also one that a test has closed to everybody.
    ::fchmodat(directory, name.c_str(), 0700, AT_SYMLINK_NOFOLLOW);
    const int child = ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (child < 0) continue;
    remove_contents(child);
    ::close(child);
    ::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
  }
}

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& parent = {}) {
    std::string place = parent;
    if (place.empty()) {
      const char* configured = std::getenv("TMPDIR");
      place = configured != nullptr ? configured : "/tmp";
    }
    std::string name = place + "/fgsync-test-XXXXXX";
    const char* made = ::mkdtemp(name.data());
    EXPECT_NE(made, nullptr) << name;
    path_ = name;
  }
  ~TemporaryDirectory() {
    ::chmod(path_.c_str(), 0700);
    const int directory = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (directory < 0) return;
    remove_contents(directory);
    ::close(directory);
    ::rmdir(path_.c_str());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& below) const { return path_ + "/" + below; }

  void write(const std::string& below, const std::string& contents) const {
    const int fd = ::open(path(below).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_GE(fd, 0) << below;
    EXPECT_EQ(::write(fd, contents.data(), contents.size()), static_cast<ssize_t>(contents.size()));
    ::close(fd);
  }
  void make_directory(const std::string& below) const {
    ASSERT_EQ(::mkdir(path(below).c_str(), 0755), 0) << below;
  }
  void make_symlink(const std::string& target, const std::string& below) const {
    ASSERT_EQ(::symlink(target.c_str(), path(below).c_str()), 0) << below;
  }
  void make_fifo(const std::string& below) const {
    ASSERT_EQ(::mkfifo(path(below).c_str(), 0644), 0) << below;
  }
  bool exists(const std::string& below) const {
    struct stat status;
    return ::lstat(path(below).c_str(), &status) == 0;
  }
  struct stat lstat(const std::string& below) const {
    struct stat status {};
    EXPECT_EQ(::lstat(path(below).c_str(), &status), 0) << below;
    return status;
  }
  std::string read(const std::string& below) const {
    std::string contents;
    const int fd = ::open(path(below).c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_GE(fd, 0) << below;
    char bytes[1 << 16];
    for (ssize_t count; (count = ::read(fd, bytes, sizeof bytes)) > 0;) {
      contents.append(bytes, static_cast<std::size_t>(count));
    }
    ::close(fd);
    return contents;
  }

 private:
  std::string path_;
};

}  // namespace fgsync::testing
