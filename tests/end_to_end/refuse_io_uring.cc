// Starts a program that the kernel refuses io_uring, as container runtimes' default seccomp
// profiles do. usage: refuse_io_uring PROGRAM [ARGUMENT]...
#include <seccomp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

int main(int count, char** words) {
  if (count < 2) return 2;
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr ||
      seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(io_uring_setup), 0) != 0 ||
      seccomp_load(filter) != 0) {
    std::perror("refuse_io_uring: installing the filter");
    return 2;
  }
  ::execvp(words[1], words + 1);
  std::perror(words[1]);
  return 2;
}
