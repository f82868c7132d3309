#include "transport/session_secret.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <string_view>

#include "base/assert.h"

namespace fgsync::transport {
namespace {

constexpr std::string_view kFrameKeyLabel = "fgsync frame key";
constexpr std::string_view kFrameNonceLabel = "fgsync frame nonce";
constexpr std::string_view kJoinKeyLabel = "fgsync join key";

constexpr std::size_t kInfoBytesMax = 32;
static_assert(kFrameNonceLabel.size() + 1 + 2 + 1 + 4 + 4 <= kInfoBytesMax);

// The info string of one expansion. The zero byte keeps a label from being the beginning of another
// one.
struct ExpandLabel {
  ExpandLabel(std::string_view label, std::uint16_t stream, Direction direction,
              std::uint32_t generation, std::uint32_t number) {
    for (const char letter : label) append(std::uint8_t(letter));
    append(0);
    append(std::uint8_t(stream));
    append(std::uint8_t(stream >> 8));
    append(std::uint8_t(direction));
    append_u32(generation);
    append_u32(number);
  }
  void append(std::uint8_t byte) { bytes[size++] = byte; }
  void append_u32(std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) append(std::uint8_t(value >> shift));
  }

  std::array<std::uint8_t, kInfoBytesMax> bytes{};
  std::size_t size = 0;
};

// HKDF-Expand with SHA-256, RFC 5869 section 2.3. All its inputs are our own, so it fails only when
// memory is out.
void hkdf_expand(std::span<const std::byte, 32> secret, const ExpandLabel& label,
                 std::span<std::byte> out) {
  EVP_KDF* kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  FGSYNC_ASSERT(kdf);
  EVP_KDF_CTX* context = EVP_KDF_CTX_new(kdf);
  EVP_KDF_free(kdf);
  FGSYNC_ASSERT(context);
  // OSSL_PARAM takes pointers to non-const, also for what it only reads.
  char mode[] = "EXPAND_ONLY";
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_MODE, mode, 0),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<std::byte*>(secret.data()),
                                        secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO,
                                        const_cast<std::uint8_t*>(label.bytes.data()), label.size),
      OSSL_PARAM_construct_end(),
  };
  const int derived =
      EVP_KDF_derive(context, reinterpret_cast<unsigned char*>(out.data()), out.size(), parameters);
  EVP_KDF_CTX_free(context);
  FGSYNC_ASSERT(derived == 1);
}

}  // namespace

SessionSecret::SessionSecret(std::span<const std::byte, 32> bytes) {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

SessionSecret::~SessionSecret() { wipe(bytes_); }

SessionSecret::FrameKey::~FrameKey() {
  wipe(key);
  wipe(nonce);
}

SessionSecret::FrameKey SessionSecret::frame_key(std::uint16_t stream, Direction direction,
                                                 std::uint32_t generation,
                                                 std::uint32_t number) const {
  FrameKey result;
  hkdf_expand(bytes_, ExpandLabel(kFrameKeyLabel, stream, direction, generation, number),
              result.key);
  hkdf_expand(bytes_, ExpandLabel(kFrameNonceLabel, stream, direction, generation, number),
              result.nonce);
  return result;
}

Mac SessionSecret::join_mac(std::span<const std::byte> preamble, Direction from) const {
  std::array<std::byte, 32> key;
  hkdf_expand(bytes_, ExpandLabel(kJoinKeyLabel, 0, from, 0, 0), key);
  Mac mac;
  std::size_t mac_bytes = 0;
  const void* made =
      EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, key.data(), key.size(),
                reinterpret_cast<const unsigned char*>(preamble.data()), preamble.size(),
                reinterpret_cast<unsigned char*>(mac.data()), mac.size(), &mac_bytes);
  wipe(key);
  FGSYNC_ASSERT(made && mac_bytes == mac.size());
  return mac;
}

bool equal_secret(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(std::span<std::byte> secret) { OPENSSL_cleanse(secret.data(), secret.size()); }

Cipher choose_cipher(Cipher asked, bool ours_has_aes, bool theirs_has_aes) {
  if (asked != Cipher::kAuto) return asked;
  return ours_has_aes && theirs_has_aes ? Cipher::kAes128Gcm : Cipher::kChaCha20Poly1305;
}

const char* cipher_name(Cipher cipher) {
  switch (cipher) {
    case Cipher::kAuto:
      return "auto";
    case Cipher::kAes128Gcm:
      return "aes128-gcm";
    case Cipher::kAes256Gcm:
      return "aes256-gcm";
    case Cipher::kChaCha20Poly1305:
      return "chacha20";
    case Cipher::kNone:
      return "none";
  }
  return "unknown";
}

}  // namespace fgsync::transport
