// Sha256: a digest of data that comes in parts (OpenSSL).
// Threads: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

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

}  // namespace minfer
