#include "transport/frame_cipher.h"

#include <openssl/evp.h>

#include "base/assert.h"
#include "transport/openssl_status.h"

namespace fgsync::transport {
namespace {

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
struct FreeCipher {
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
};

const char* openssl_name(Cipher cipher) {
  switch (cipher) {
    case Cipher::kAes128Gcm:
      return "AES-128-GCM";
    case Cipher::kAes256Gcm:
      return "AES-256-GCM";
    case Cipher::kChaCha20Poly1305:
      return "ChaCha20-Poly1305";
    case Cipher::kAuto:
    case Cipher::kNone:
      break;
  }
  return nullptr;
}

unsigned char* bytes_of(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* bytes_of(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

// One context for the stream's life: a frame only sets its nonce, so the key schedule is computed
// once per key.
class EvpFrameCipher final : public FrameCipher {
 public:
  EvpFrameCipher(const SessionSecret& secret, std::uint16_t stream, Direction direction,
                 std::uint32_t generation, std::uint64_t bytes_per_key)
      : secret_(secret),
        stream_(stream),
        direction_(direction),
        generation_(generation),
        bytes_per_key_(bytes_per_key) {}
  ~EvpFrameCipher() override { wipe(nonce_base_); }

  Status open_context(const char* name) {
    clear_openssl_errors();
    cipher_.reset(EVP_CIPHER_fetch(nullptr, name, nullptr));
    context_.reset(EVP_CIPHER_CTX_new());
    if (cipher_ && context_) return Status();
    return openssl_status(ErrorCode::kUnsupported, std::string("preparing ") + name);
  }

  Status begin_seal(std::span<const std::byte> associated) override {
    return begin(associated, Purpose::kSeal);
  }
  Status seal(std::span<std::byte> piece) override { return update(piece, Purpose::kSeal); }
  Status finish_seal(std::span<std::byte, kTagBytes> tag) override {
    expect_frame(Purpose::kSeal);
    int written = 0;
    if (EVP_CipherFinal_ex(context_.get(), bytes_of(tag.data()), &written) != 1 || written != 0 ||
        EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) != 1) {
      return fail("sealing a frame");
    }
    in_frame_ = false;
    return Status();
  }

  Status begin_open(std::span<const std::byte> associated) override {
    return begin(associated, Purpose::kOpen);
  }
  Status open(std::span<std::byte> piece) override { return update(piece, Purpose::kOpen); }
  Status finish_open(std::span<const std::byte, kTagBytes> tag) override {
    expect_frame(Purpose::kOpen);
    std::array<std::byte, kTagBytes> expected;
    std::copy(tag.begin(), tag.end(), expected.begin());
    if (EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, expected.data()) !=
        1) {
      return fail("opening a frame");
    }
    unsigned char none[kTagBytes];
    int written = 0;
    if (EVP_CipherFinal_ex(context_.get(), none, &written) != 1) {
      failed_ = true;
      clear_openssl_errors();
      return Status(ErrorCode::kProtocolError, "a frame does not authenticate");
    }
    in_frame_ = false;
    return Status();
  }

 private:
  enum class Purpose : std::uint8_t { kUnset, kSeal, kOpen };

  void expect_frame(Purpose purpose) const {
    FGSYNC_ASSERT(purpose_ == purpose);
    FGSYNC_ASSERT(in_frame_);
    FGSYNC_ASSERT(!failed_);
  }

  Status fail(const char* doing) {
    failed_ = true;
    return openssl_status(ErrorCode::kIoError, doing);
  }

  Status load_key() {
    SessionSecret::FrameKey key = secret_.frame_key(stream_, direction_, generation_, key_number_);
    nonce_base_ = key.nonce;
    frame_count_ = 0;
    bytes_under_key_ = 0;
    if (EVP_CipherInit_ex2(context_.get(), cipher_.get(), bytes_of(key.key.data()), nullptr,
                           purpose_ == Purpose::kSeal ? 1 : 0, nullptr) != 1) {
      return fail("setting a frame key");
    }
    return Status();
  }

  // The base with the frame counter, big-endian, XORed into its end: RFC 8446 section 5.3.
  std::array<std::byte, 12> next_nonce() {
    auto nonce = nonce_base_;
    for (std::size_t i = 0; i < 8; ++i) nonce[11 - i] ^= std::byte(frame_count_ >> (8 * i));
    ++frame_count_;
    return nonce;
  }

  Status begin(std::span<const std::byte> associated, Purpose purpose) {
    if (failed_) return Status(ErrorCode::kProtocolError, "the frames' cipher failed earlier");
    FGSYNC_ASSERT(!in_frame_);
    FGSYNC_ASSERT(purpose_ == purpose || purpose_ == Purpose::kUnset);
    clear_openssl_errors();
    if (purpose_ == Purpose::kUnset) {
      purpose_ = purpose;
      FGSYNC_RETURN_IF_ERROR(load_key());
    } else if (bytes_under_key_ >= bytes_per_key_) {
      ++key_number_;
      FGSYNC_ASSERT(key_number_ != 0);  // 2^32 keys of 64 GiB
      FGSYNC_RETURN_IF_ERROR(load_key());
    }
    const auto nonce = next_nonce();
    int written = 0;
    if (EVP_CipherInit_ex2(context_.get(), nullptr, nullptr, bytes_of(nonce.data()), -1, nullptr) !=
            1 ||
        EVP_CipherUpdate(context_.get(), nullptr, &written, bytes_of(associated.data()),
                         int(associated.size())) != 1) {
      return fail("starting a frame");
    }
    bytes_under_key_ += associated.size();
    in_frame_ = true;
    return Status();
  }

  Status update(std::span<std::byte> piece, Purpose purpose) {
    expect_frame(purpose);
    FGSYNC_ASSERT(piece.size() <= kPieceBytesMax);
    if (piece.empty()) return Status();
    int written = 0;
    if (EVP_CipherUpdate(context_.get(), bytes_of(piece.data()), &written, bytes_of(piece.data()),
                         int(piece.size())) != 1 ||
        std::size_t(written) != piece.size()) {
      return fail(purpose == Purpose::kSeal ? "sealing a frame" : "opening a frame");
    }
    bytes_under_key_ += piece.size();
    return Status();
  }

  static constexpr std::size_t kPieceBytesMax = std::size_t{1} << 30;  // OpenSSL counts in int

  const SessionSecret secret_;
  const std::uint16_t stream_;
  const Direction direction_;
  const std::uint32_t generation_;
  const std::uint64_t bytes_per_key_;
  std::unique_ptr<EVP_CIPHER, FreeCipher> cipher_;
  std::unique_ptr<EVP_CIPHER_CTX, FreeContext> context_;
  std::array<std::byte, 12> nonce_base_{};
  std::uint64_t frame_count_ = 0;
  std::uint64_t bytes_under_key_ = 0;
  std::uint32_t key_number_ = 0;
  Purpose purpose_ = Purpose::kUnset;
  bool in_frame_ = false;
  bool failed_ = false;
};

}  // namespace

Result<std::unique_ptr<FrameCipher>> FrameCipher::create(Cipher cipher, const SessionSecret& secret,
                                                         std::uint16_t stream, Direction direction,
                                                         std::uint32_t generation,
                                                         std::uint64_t bytes_per_key) {
  const char* name = openssl_name(cipher);
  FGSYNC_ASSERT(name);
  auto result =
      std::make_unique<EvpFrameCipher>(secret, stream, direction, generation, bytes_per_key);
  FGSYNC_RETURN_IF_ERROR(result->open_context(name));
  return std::unique_ptr<FrameCipher>(std::move(result));
}

}  // namespace fgsync::transport
