#include "fgsync/lock_holder.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace fgsync {
namespace {

// proc_locks(5): "1: FLOCK ADVISORY WRITE 4711 fe:00:131074 0 EOF", the device in hexadecimal; of
// one that waits "1: -> FLOCK ...". Pid 0: a process that this one's namespace does not show.
struct Line {
  std::string pid;
  std::string device;
  std::string inode;
};

bool read_line(const std::string& text, Line* line) {
  std::istringstream fields(text);
  std::string number, type, mode, access, file;
  if (!(fields >> number >> type >> mode >> access >> line->pid >> file)) return false;
  const std::size_t colon = file.rfind(':');
  if (type != "FLOCK" || access != "WRITE" || colon == std::string::npos) return false;
  line->device = file.substr(0, colon);
  line->inode = file.substr(colon + 1);
  return line->pid.find_first_not_of("0123456789") == std::string::npos;
}

std::string device_text(dev_t device) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%02x:%02x", major(device), minor(device));
  return text.data();
}

// Some file systems (btrfs, overlayfs) give their files another device than they have themselves:
// then the only lock on a file of that number is meant.
std::string pid_of_holder(const struct stat& file) {
  const std::string device = device_text(file.st_dev);
  const std::string inode = std::to_string(file.st_ino);
  std::string other;
  bool is_only = true;
  std::ifstream locks("/proc/locks");
  Line line;
  for (std::string text; std::getline(locks, text);) {
    if (!read_line(text, &line) || line.inode != inode) continue;
    if (line.device == device) return line.pid;
    is_only = other.empty();
    other = line.pid;
  }
  return is_only ? other : "";
}

std::string user_text(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> memory{};
  const int failed = ::getpwuid_r(user, &entry, memory.data(), memory.size(), &found);
  return failed == 0 && found != nullptr ? entry.pw_name : std::to_string(user);
}

// A process names itself as it likes.
std::string printable(std::string text) {
  for (char& byte : text) {
    if (byte < ' ' || byte > '~') byte = '?';
  }
  return text;
}

}  // namespace

std::string lock_holder(int descriptor) {
  struct stat file {};
  if (::fstat(descriptor, &file) != 0) return "";
  const std::string pid = pid_of_holder(file);
  if (pid.empty() || pid == "0") return "";
  const std::string process = "/proc/" + pid;
  std::string text = "pid " + pid;
  struct stat status {};
  if (::stat(process.c_str(), &status) == 0) text += ", user " + user_text(status.st_uid);
  std::string name;
  if (std::getline(std::ifstream(process + "/comm"), name)) text += ", " + name;
  return " (" + printable(text) + ")";
}

}  // namespace fgsync
