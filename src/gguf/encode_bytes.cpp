// Appending to a byte vector.
#include "gguf/encode_bytes.h"

#include <bit>
#include <cstring>

namespace minfer::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF values are written in the machine's own byte order");

void put_bytes(std::vector<std::byte>& out, const void* p, size_t n) {
  if (n == 0) return;
  const size_t old = out.size();
  out.resize(old + n);
  std::memcpy(out.data() + old, p, n);
}

void put_string(std::vector<std::byte>& out, std::string_view s) {
  put<uint64_t>(out, s.size());
  put_bytes(out, s.data(), s.size());
}

}  // namespace minfer::gguf
