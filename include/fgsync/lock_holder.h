// Who holds a lock that could not be had.
#pragma once

#include <string>

namespace fgsync {

// " (pid 4711, user ckpt, rsync)": a process of this host that holds the flock(2) on the open file,
// as far as the kernel tells: nothing for one in a container beside this one, or on another host.
// Names are escaped. Any thread; blocks for as long as reading /proc takes.
std::string lock_holder(int descriptor);

}  // namespace fgsync
