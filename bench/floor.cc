// What a straight loop reaches on this machine, beside which scripts/bench shows fgsync: one thread
// for each stream reads, sums, seals and sends, another one receives, opens, sums and writes, in
// pieces that stay in the cache. No agreement, no resume, no metadata, no staging, no sync, and a
// key that is no secret: never use it for anything but this.
//
// usage: floor send|receive ADDRESS PORT STREAMS TREE [sealed]
//
// Of each file: the length of its name (4 bytes) and its size (8), its name, its bytes, each chunk
// of up to 1 MiB followed by its checksum and, sealed, its tag.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "transport/frame_cipher.h"
#include "wire/checksum.h"

namespace {

using namespace fgsync;
namespace fs = std::filesystem;

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::size_t kPieceBytes = 256 << 10;
constexpr std::size_t kNameBytesMax = 4096;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

struct FileHead {
  std::uint32_t name_bytes;
  std::uint32_t unused;
  std::uint64_t size;
};

struct ChunkEnd {
  wire::Checksum checksum;
  std::array<std::byte, transport::kTagBytes> tag;
};

struct Arguments {
  bool sends;
  sockaddr_in address;
  std::uint16_t streams;
  fs::path tree;
  bool sealed;
};

// One connection, its cipher and its buffer.
class Stream {
 public:
  Stream(int socket, const Arguments& arguments, std::uint16_t number)
      : socket_(socket), buffer_(kPieceBytes) {
    if (!arguments.sealed) return;
    constexpr std::array<std::byte, 32> kNoSecret{};
    auto cipher =
        transport::FrameCipher::create(Cipher::kAes128Gcm, transport::SessionSecret(kNoSecret),
                                       number, transport::Direction::kFromInitiator, 0);
    if (!cipher.ok()) die("making the cipher");
    cipher_ = std::move(*cipher);
  }
  ~Stream() { ::close(socket_); }

  void send_file(const fs::path& path, const std::string& name) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) die(path.c_str());
    struct stat status {};
    if (::fstat(file, &status) != 0) die(path.c_str());
    const FileHead head{std::uint32_t(name.size()), 0, std::uint64_t(status.st_size)};
    send({reinterpret_cast<const std::byte*>(&head), sizeof head});
    send({reinterpret_cast<const std::byte*>(name.data()), name.size()});
    for (std::uint64_t left = head.size; left > 0;) left -= send_chunk(file, left);
    ::close(file);
  }

  // False at the end of the stream.
  bool receive_file(const fs::path& tree) {
    FileHead head{};
    if (!receive({reinterpret_cast<std::byte*>(&head), sizeof head})) return false;
    std::string name(std::min<std::size_t>(head.name_bytes, kNameBytesMax), '\0');
    if (!receive({reinterpret_cast<std::byte*>(name.data()), name.size()})) die("receiving");
    const fs::path path = tree / name;
    int file = create(path);
    if (file < 0 && errno == ENOENT) {
      fs::create_directories(path.parent_path());
      file = create(path);
    }
    if (file < 0) die(path.c_str());
    for (std::uint64_t left = head.size; left > 0;) left -= receive_chunk(file, left);
    ::close(file);
    return true;
  }

 private:
  std::uint64_t send_chunk(int file, std::uint64_t left) {
    const std::uint64_t size = std::min<std::uint64_t>(left, kChunkBytes);
    wire::ChecksumStream checksum;
    ChunkEnd end{};
    if (cipher_) check(cipher_->begin_seal({}));
    for (std::uint64_t done = 0; done < size;) {
      const std::span piece = std::span(buffer_).first(std::min(kPieceBytes, size - done));
      if (::read(file, piece.data(), piece.size()) != ssize_t(piece.size())) die("reading");
      checksum.update(piece);
      if (cipher_) check(cipher_->seal(piece));
      send(piece);
      done += piece.size();
    }
    end.checksum = checksum.finish();
    if (cipher_) check(cipher_->finish_seal(end.tag));
    send({reinterpret_cast<const std::byte*>(&end), sizeof end});
    return size;
  }

  std::uint64_t receive_chunk(int file, std::uint64_t left) {
    const std::uint64_t size = std::min<std::uint64_t>(left, kChunkBytes);
    wire::ChecksumStream checksum;
    ChunkEnd end{};
    if (cipher_) check(cipher_->begin_open({}));
    for (std::uint64_t done = 0; done < size;) {
      const std::span piece = std::span(buffer_).first(std::min(kPieceBytes, size - done));
      if (!receive(piece)) die("receiving");
      if (cipher_) check(cipher_->open(piece));
      checksum.update(piece);
      if (::write(file, piece.data(), piece.size()) != ssize_t(piece.size())) die("writing");
      done += piece.size();
    }
    if (!receive({reinterpret_cast<std::byte*>(&end), sizeof end})) die("receiving");
    if (cipher_) check(cipher_->finish_open(end.tag));
    if (end.checksum != checksum.finish()) die("verifying");
    return size;
  }

  static int create(const fs::path& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }

  static void check(const Status& status) {
    if (!status.ok()) die(status.message().c_str());
  }

  void send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) die("sending");
      bytes = bytes.subspan(std::size_t(sent));
    }
  }

  bool receive(std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t received = ::recv(socket_, bytes.data(), bytes.size(), MSG_WAITALL);
      if (received < 0) die("receiving");
      if (received == 0) return false;
      bytes = bytes.subspan(std::size_t(received));
    }
    return true;
  }

  int socket_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<transport::FrameCipher> cipher_;
};

void send_tree(const Arguments& arguments) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(arguments.tree)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::thread> threads;
  for (std::uint16_t number = 0; number < arguments.streams; ++number) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto* const to = reinterpret_cast<const sockaddr*>(&arguments.address);
    if (::connect(socket, to, sizeof arguments.address) != 0) die("connecting");
    threads.emplace_back([&, socket, number] {
      // Which cipher an accepted connection needs.
      const auto said = std::byte(number);
      if (::send(socket, &said, 1, MSG_NOSIGNAL) != 1) die("sending");
      Stream stream(socket, arguments, number);
      for (std::size_t i = number; i < files.size(); i += arguments.streams) {
        stream.send_file(files[i], files[i].lexically_relative(arguments.tree).string());
      }
      // Everything is written when the other end closes as well.
      ::shutdown(socket, SHUT_WR);
      std::byte end{};
      (void)::recv(socket, &end, 1, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void receive_tree(const Arguments& arguments) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  constexpr int kOn = 1;
  (void)::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn);
  const auto* const at = reinterpret_cast<const sockaddr*>(&arguments.address);
  if (::bind(listener, at, sizeof arguments.address) != 0) die("binding");
  if (::listen(listener, arguments.streams) != 0) die("listening");
  std::vector<std::thread> threads;
  for (int i = 0; i < arguments.streams; ++i) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) die("accepting");
    threads.emplace_back([&, socket] {
      std::byte number{};
      if (::recv(socket, &number, 1, MSG_WAITALL) != 1) die("receiving");
      Stream stream(socket, arguments, std::uint16_t(number));
      while (stream.receive_file(arguments.tree)) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ::close(listener);
}

bool parse(int count, char** values, Arguments* arguments) {
  if (count < 6) return false;
  const std::string role = values[1];
  arguments->sends = role == "send";
  arguments->address.sin_family = AF_INET;
  arguments->address.sin_port = htons(std::uint16_t(std::atoi(values[3])));
  arguments->streams = std::uint16_t(std::clamp(std::atoi(values[4]), 1, 64));
  arguments->tree = values[5];
  arguments->sealed = count > 6 && std::strcmp(values[6], "sealed") == 0;
  return (arguments->sends || role == "receive") &&
         ::inet_pton(AF_INET, values[2], &arguments->address.sin_addr) == 1;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments{};
  if (!parse(count, values, &arguments)) {
    std::fputs("usage: floor send|receive ADDRESS PORT STREAMS TREE [sealed]\n", stderr);
    return 2;
  }
  arguments.sends ? send_tree(arguments) : receive_tree(arguments);
  return 0;
}
