// Appending values to a byte vector as GGUF stores them: little endian, unpadded, strings behind a 64-bit length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace minfer::gguf {

void put_bytes(std::vector<std::byte>& out,
               const void* p,  // [n]
               size_t n);
void put_string(std::vector<std::byte>& out, std::string_view s);

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  put_bytes(out, &value, sizeof value);
}

}  // namespace minfer::gguf
