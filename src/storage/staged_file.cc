#include "storage/staged_file.h"

#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace fgsync::storage {

Result<std::unique_ptr<StagedFile>> StagedFile::create(io::FileSystem& files,
                                                       DirectoryReference staging, std::string name,
                                                       std::uint64_t size, DirectIo direct) {
  auto opened = open_for(files, *staging, name, OpenPurpose::kCreate, size, direct);
  if (!opened.ok()) return opened.status();
  // From here on its destructor removes the name.
  std::unique_ptr<StagedFile> file(new StagedFile(files, std::move(staging), std::move(name),
                                                  std::move(opened->handle), size,
                                                  opened->direct_alignment));
  // A small file is written in one piece, for which delayed allocation finds room as well.
  if (size > limits::kPackedFileBytesMax) {
    FGSYNC_RETURN_IF_ERROR(files.allocate(file->handle_, size));
  }
  return file;
}

StagedFile::~StagedFile() {
  // Nobody is left to tell; StagingArea::clean() comes after this one and does report.
  if (!published_) (void)files_.unlink(*staging_, name_);
}

Status StagedFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  FGSYNC_ASSERT(direct_alignment_ == 0);
  return files_.write(handle_, bytes, offset);
}

Status StagedFile::finish(const Metadata& metadata) {
  auto status = files_.stat(handle_);
  if (!status.ok()) return status.status();
  if (status->size != size_) FGSYNC_RETURN_IF_ERROR(files_.truncate(handle_, size_));
  return apply_metadata(files_, handle_, metadata);
}

Status StagedFile::sync() { return files_.sync(handle_); }

Status StagedFile::publish(const io::FileHandle& directory, const std::string& name) {
  FGSYNC_ASSERT(!published_);
  FGSYNC_RETURN_IF_ERROR(files_.rename(*staging_, name_, directory, name));
  published_ = true;
  return Status();
}

}  // namespace fgsync::storage
