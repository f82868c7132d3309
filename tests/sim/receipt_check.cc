#include "receipt_check.h"

#include <algorithm>
#include <map>
#include <vector>

#include "receipt/receipt_reader.h"
#include "storage/tree_walker.h"

namespace fgsync::sim {
namespace {

struct Read {
  std::vector<receipt::Record> records;
  bool is_settled = false;  // nothing stands behind the last settled record
};

const Node* find_receipt(const Disk& disk, const std::string& root) {
  return disk.find_path(root + "/" + storage::kStateDirectoryName + "/" + receipt::kReceiptName);
}

Read read_receipt(const Disk& disk, const std::string& root) {
  Read read;
  const Node* const file = find_receipt(disk, root);
  if (file == nullptr || file->data == nullptr || file->data->size() < receipt::kHeaderBytes) {
    return read;
  }
  const std::span<const std::byte> bytes(*file->data);
  const auto header = receipt::decode_header(bytes.first(receipt::kHeaderBytes));
  if (!header.ok()) return read;
  for (std::size_t at = receipt::kHeaderBytes; at < bytes.size();) {
    const std::size_t block_end = (at / receipt::kBlockBytes + 1) * receipt::kBlockBytes;
    const std::size_t end = std::min(bytes.size(), block_end);
    receipt::BlockCursor cursor(bytes.subspan(at, end - at), *header, at);
    while (auto placed = cursor.next()) {
      read.is_settled = std::holds_alternative<receipt::SettledRecord>(placed->record) &&
                        cursor.offset() == bytes.size();
      read.records.push_back(std::move(placed->record));
    }
    at = end;
  }
  return read;
}

wire::Checksum digest_of(const Bytes& bytes, std::size_t chunk_bytes) {
  std::vector<wire::Checksum> chunks;
  for (std::size_t at = 0; at == 0 || at < bytes.size(); at += chunk_bytes) {
    const std::size_t length = std::min(chunk_bytes, bytes.size() - at);
    chunks.push_back(wire::checksum_of(std::span(bytes).subspan(at, length)));
  }
  return wire::file_digest(chunks);
}

bool is_described(const Node* node, const receipt::FileRecord& record) {
  return node != nullptr && node->data != nullptr && node->data->size() == record.size &&
         node->attributes.mtime == record.mtime;
}

void add_files(const Disk& disk, const Node& directory, const std::string& prefix,
               std::set<KnownFile>& files) {
  for (const auto& [name, inode] : directory.entries) {
    const Node& node = *disk.find(inode);
    if (name == storage::kStateDirectoryName) continue;
    if (node.data != nullptr) {
      const io::FileTime& mtime = node.attributes.mtime;
      files.emplace(prefix + name, node.data->size(), mtime.seconds, mtime.nanoseconds);
    }
    add_files(disk, node, prefix + name + "/", files);
  }
}

}  // namespace

std::set<KnownFile> files_below(const Disk& disk, const std::string& root) {
  std::set<KnownFile> files;
  const Node* const node = disk.find_path(root);
  if (node != nullptr) add_files(disk, *node, "", files);
  return files;
}

std::uint64_t receipt_bytes(const Disk& disk, const std::string& root) {
  const Node* const file = find_receipt(disk, root);
  return file == nullptr || file->data == nullptr ? 0 : file->data->size();
}

std::set<std::string> spoiled_files(const Disk& disk, const std::string& root) {
  std::set<std::string> spoiled;
  for (const receipt::Record& record : read_receipt(disk, root).records) {
    const auto* const file = std::get_if<receipt::FileRecord>(&record);
    if (file == nullptr) continue;
    const Node* const node = disk.find_path(root + "/" + file->path);
    if (!is_described(node, *file)) continue;
    // A later record of it may be right.
    spoiled.erase(file->path);
    if (digest_of(*node->data, file->chunk_bytes) != file->digest) spoiled.insert(file->path);
  }
  return spoiled;
}

std::string check_receipt(const Disk& disk, const std::string& root,
                          const std::set<std::string>& rotted) {
  for (const std::string& path : spoiled_files(disk, root)) {
    if (!rotted.contains(path)) return path + ": the receipt tells other contents";
  }
  return "";
}

std::string check_settled_receipt(const Disk& disk, const std::string& root,
                                  const std::set<KnownFile>& others) {
  const Read read = read_receipt(disk, root);
  if (!read.records.empty() && !read.is_settled) return "the receipt is not settled";
  std::map<std::string, receipt::FileRecord> last;
  for (const receipt::Record& record : read.records) {
    if (const auto* file = std::get_if<receipt::FileRecord>(&record)) last[file->path] = *file;
    if (const auto* gone = std::get_if<receipt::GoneRecord>(&record)) last.erase(gone->path);
  }
  for (const auto& [path, file] : last) {
    if (!is_described(disk.find_path(root + "/" + path), file)) {
      return path + ": the receipt tells of a file that is not there";
    }
  }
  for (const KnownFile& known : files_below(disk, root)) {
    const std::string& path = std::get<0>(known);
    if (!last.contains(path) && !others.contains(known)) return path + ": has no record";
  }
  return "";
}

}  // namespace fgsync::sim
