// SHA-256 (OpenSSL): of data that comes in parts, and of bytes and texts in one go.
// Threads: one owner of a Sha256; the functions are pure.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace minfer {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& update(std::span<const std::byte> bytes);
  Digest finish();  // the object is as new afterwards

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string to_hex(const Digest& digest);  // 64 lower-case hex digits
std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

}  // namespace minfer
