// SHA-256 (OpenSSL): of logits, files and models.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace minfer {

std::string sha256_hex(std::span<const std::byte> bytes);  // 64 lower-case hex digits

}  // namespace minfer
