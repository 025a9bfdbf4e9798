#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace minfer {

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  MINFER_CHECK(context_->md != nullptr && EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  MINFER_CHECK(EVP_DigestUpdate(context_->md, bytes.data(), bytes.size()) == 1);
  return *this;
}

Digest Sha256::finish() {
  Digest digest;
  MINFER_CHECK(EVP_DigestFinal_ex(context_->md, reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1);
  MINFER_CHECK(EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr) == 1);
  return digest;
}

std::string to_hex(const Digest& digest) {
  std::string hex;
  for (std::byte b : digest) {
    hex += "0123456789abcdef"[static_cast<size_t>(b >> 4)];
    hex += "0123456789abcdef"[static_cast<size_t>(b & std::byte{15})];
  }
  return hex;
}

std::string sha256_hex(std::span<const std::byte> bytes) { return to_hex(Sha256().update(bytes).finish()); }

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text.data(), text.size()))); }

}  // namespace minfer
