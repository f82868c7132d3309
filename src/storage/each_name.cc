#include "storage/each_name.h"

#include <vector>

namespace fgsync::storage {
namespace {

constexpr std::size_t kListedNames = 1024;

}  // namespace

Status for_each_name(io::FileSystem& files, const io::FileHandle& directory,
                     const std::function<Status(const std::string& name)>& visit) {
  auto reader = files.list(directory);
  if (!reader.ok()) return reader.status();
  std::vector<io::DirectoryEntry> entries;
  for (;;) {
    entries.clear();
    auto more = (*reader)->next(kListedNames, entries);
    if (!more.ok()) return more.status();
    if (!*more) return Status();
    for (const io::DirectoryEntry& entry : entries) FGSYNC_RETURN_IF_ERROR(visit(entry.name));
  }
}

}  // namespace fgsync::storage
