// What the tests of the receipt share: receipts made byte by byte, and a directory to put them
// into.
#pragma once

#include <string>
#include <vector>

#include "receipt/receipt_format.h"
#include "receipt/receipt_reader.h"
#include "storage/storage_fixture.h"

namespace fgsync::testing {

inline wire::Checksum digest_of(const std::string& contents) {
  return wire::checksum_of(as_bytes(contents));
}

inline receipt::FileRecord record_of(const std::string& path, std::uint64_t size = 5,
                                     std::uint32_t nanoseconds = 7) {
  return {.path = path,
          .size = size,
          .mtime = {1'700'000'000, nanoseconds},
          .chunk_bytes = 4 << 20,
          .digest = digest_of(path)};
}

class ReceiptFixture : public StorageFixture {
 protected:
  static std::vector<std::byte> log_of(const std::vector<receipt::Record>& records,
                                       receipt::Header header = {.salt = 42}) {
    std::vector<std::byte> bytes = encode(header);
    for (const receipt::Record& record : records) encode(record, header, bytes.size(), bytes);
    return bytes;
  }
  // A receipt of these bytes, open for reading.
  io::FileHandle receipt_of(const std::vector<std::byte>& bytes) {
    directory.write("receipt",
                    std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return open_file("receipt", io::OpenMode::kRead);
  }
  receipt::ReceiptReader reader_of(const io::FileHandle& file) {
    auto reader = receipt::ReceiptReader::open(*files, file);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    return *reader;
  }
  static std::vector<receipt::Record> records_of(const receipt::ReceiptReader& reader) {
    std::vector<receipt::Record> records;
    EXPECT_TRUE(reader
                    .for_each([&](const receipt::PlacedRecord& placed) {
                      records.push_back(placed.record);
                    })
                    .ok());
    return records;
  }
};

}  // namespace fgsync::testing
