#include "journal/record_samples.h"

namespace fgsync::journal {

Header sample_header() {
  Header header;
  header.transfer.bytes.fill(std::byte{0x3c});
  header.salt.fill(std::byte{0xa5});
  return header;
}

Begin sample_begin() {
  Begin begin;
  begin.number = 7;
  begin.version = {.size = (std::uint64_t{10} << 20) + 1,
                   .mtime = {-5, 999'999'999},
                   .ctime = {1'700'000'000, 1},
                   .inode = 0x123456789abcdef0,
                   .chunk_bytes = 1 << 20};
  begin.host.fill(std::byte{0x11});
  begin.staged_inode = 4242;
  begin.path = "below/model-00001.safetensors\xff";
  return begin;
}

std::vector<Record> sample_records() {
  wire::Checksum one;
  one.bytes.fill(std::byte{1});
  wire::Checksum two;
  two.bytes.fill(std::byte{2});
  return {sample_begin(), Chunks{7, 3, {one, two}}, Done{7}};
}

}  // namespace fgsync::journal
