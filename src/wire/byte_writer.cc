#include "wire/byte_writer.h"

#include <array>

namespace fgsync::wire {

void ByteWriter::bytes(std::span<const std::byte> value) {
  bytes_.insert(bytes_.end(), value.begin(), value.end());
}

void ByteWriter::number(std::uint64_t value, std::size_t width) {
  std::array<std::byte, 8> stored;
  store_little_endian(stored, value);
  bytes(std::span(stored).first(width));
}

}  // namespace fgsync::wire
