// Private to the message codecs: one writer and one reader per message body, and what they share.
// Bodies are read straight through; the reader's failed state is asked once, by decode_message().
#pragma once

#include <vector>

#include "wire/byte_reader.h"
#include "wire/byte_writer.h"
#include "wire/message.h"

namespace fgsync::wire {

void write_body(ByteWriter& writer, const Hello& body);
void write_body(ByteWriter& writer, const Setup& body);
void write_body(ByteWriter& writer, const SetupReply& body);
void write_body(ByteWriter& writer, const SourceOffer& body);
void write_body(ByteWriter& writer, const TargetAccept& body);
void write_body(ByteWriter& writer, const ManifestBatch& body);
void write_body(ByteWriter& writer, const ManifestEnd& body);
void write_body(ByteWriter& writer, const PlanBatch& body);
void write_body(ByteWriter& writer, const FileEnd& body);
void write_body(ByteWriter& writer, const SettledBatch& body);
void write_body(ByteWriter& writer, const Summary& body);
void write_body(ByteWriter& writer, const ErrorBatch& body);
void write_body(ByteWriter& writer, const NoteBatch& body);
void write_body(ByteWriter& writer, const Heartbeat& body);
void write_body(ByteWriter& writer, const Abort& body);
void write_body(ByteWriter& writer, const DataEnd& body);
void write_body(ByteWriter& writer, const HeldChunks& body);
void write_body(ByteWriter& writer, const StreamEnded& body);
void write_body(ByteWriter& writer, const ListedPaths& body);
void write_body(ByteWriter& writer, const DifferenceBatch& body);

template <typename Body>
Body read_body(ByteReader& reader);
template <>
Hello read_body<Hello>(ByteReader& reader);
template <>
Setup read_body<Setup>(ByteReader& reader);
template <>
SetupReply read_body<SetupReply>(ByteReader& reader);
template <>
SourceOffer read_body<SourceOffer>(ByteReader& reader);
template <>
TargetAccept read_body<TargetAccept>(ByteReader& reader);
template <>
ManifestBatch read_body<ManifestBatch>(ByteReader& reader);
template <>
ManifestEnd read_body<ManifestEnd>(ByteReader& reader);
template <>
PlanBatch read_body<PlanBatch>(ByteReader& reader);
template <>
FileEnd read_body<FileEnd>(ByteReader& reader);
template <>
SettledBatch read_body<SettledBatch>(ByteReader& reader);
template <>
Summary read_body<Summary>(ByteReader& reader);
template <>
ErrorBatch read_body<ErrorBatch>(ByteReader& reader);
template <>
NoteBatch read_body<NoteBatch>(ByteReader& reader);
template <>
Heartbeat read_body<Heartbeat>(ByteReader& reader);
template <>
Abort read_body<Abort>(ByteReader& reader);
template <>
DataEnd read_body<DataEnd>(ByteReader& reader);
template <>
HeldChunks read_body<HeldChunks>(ByteReader& reader);
template <>
StreamEnded read_body<StreamEnded>(ByteReader& reader);
template <>
ListedPaths read_body<ListedPaths>(ByteReader& reader);
template <>
DifferenceBatch read_body<DifferenceBatch>(ByteReader& reader);

// A count (4 bytes), then the elements, each by `write_element(writer, element)`.
template <typename Element, typename WriteElement>
void write_list(ByteWriter& writer, const std::vector<Element>& elements,
                WriteElement write_element) {
  writer.u32(std::uint32_t(elements.size()));
  for (const Element& element : elements) write_element(writer, element);
}

// What write_list() wrote, each element by `read_element(reader)`. Room is made only for as many
// elements as the bytes that are there can hold.
template <typename ReadElement>
auto read_list(ByteReader& reader, std::size_t count_max, std::size_t element_bytes_min,
               ReadElement read_element) {
  std::vector<decltype(read_element(reader))> elements;
  const std::size_t count = reader.count(count_max, element_bytes_min);
  elements.reserve(count);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) elements.push_back(read_element(reader));
  return elements;
}

inline bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

}  // namespace fgsync::wire
