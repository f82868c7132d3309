// The receipt of the target that a run writes to. A record is appended before its file is renamed
// and made durable with the file's data; at the end of a good run the receipt is settled, which
// says that everything in it has happened. Trouble with the receipt is never trouble of the run: it
// costs a note and the receipt, which is better missing than wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/io.h"
#include "receipt/receipt_format.h"
#include "receipt/receipt_reader.h"
#include "storage/directory_tree.h"

namespace fgsync::receipt {

// Thread-safe. Everything blocks. One run at a time writes to a target's receipt.
class ReceiptWriter {
 public:
  // `note` is told what has become of a receipt that cannot be used, by any thread. Without
  // `durable` nothing is waited for.
  ReceiptWriter(io::Environment& environment, storage::DirectoryTree& target, bool durable,
                std::function<void(const std::string&)> note)
      : files_(environment.files()),
        environment_(environment),
        target_(target),
        durable_(durable),
        note_(std::move(note)) {}

  // The first records open the receipt, or make it. They are durable after sync(), or after a flush
  // of the file system that it stands on.
  void append(std::span<const Record> records);
  // Whether it stands on this mount (FileStatus::mount).
  bool is_on(std::uint64_t mount) const;
  void sync();
  // Something that was appended has not happened.
  void distrust();

  // The run has ended well, and its names are durable. Settles what this run and those before it
  // have appended; a receipt that holds much that is out of date is written anew.
  void settle();

 private:
  // Made by optional's emplace(), which sets to zero what has no constructor. No initializers here:
  // clang does not see them while the class around them is incomplete.
  struct Log {
    storage::DirectoryReference root;
    io::FileHandle state;  // the directory that holds it
    io::FileHandle file;
    Header header;
    LogSummary summary;  // of what has been written
    std::uint64_t mount;
    std::uint64_t synced_end;
    bool is_new;  // its name is not durable
  };

  using OpenState = Result<io::FileHandle> (*)(io::FileSystem&, const io::FileHandle&);
  Status open_state(OpenState open);
  Status load();
  Status make();
  Status open_to_append();
  void open_to_settle();
  Status write(std::span<const Record> records);
  Status sync_log();
  Status settle_log();
  Status write_anew();
  void give_up(const Status& why);

  io::FileSystem& files_;
  io::Environment& environment_;
  storage::DirectoryTree& target_;
  const bool durable_;
  const std::function<void(const std::string&)> note_;
  mutable std::mutex mutex_;
  std::optional<Log> log_;   // guarded by mutex_
  bool given_up_ = false;    // guarded by mutex_
  bool distrusted_ = false;  // guarded by mutex_; not all behind settled_end has happened
};

}  // namespace fgsync::receipt
