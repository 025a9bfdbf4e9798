// One-shot digest.
#include "base/hash.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace minfer {

std::string sha256_hex(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  MINFER_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest, &n, EVP_sha256(), nullptr) == 1);
  std::string hex;
  for (unsigned int i = 0; i < n; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

}  // namespace minfer
