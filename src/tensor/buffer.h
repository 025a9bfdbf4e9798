// Buffer: a move-only owner of aligned memory. Views point into it and are never freed.
// Errors:  allocation failure is a Result, never an exception.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace minfer {

class Buffer {
 public:
  static constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 vector

  Buffer() = default;
  // Zeroed pages; sizes of 2 MiB and more are aligned to and advised for huge pages.
  static Result<Buffer> allocate(size_t bytes);

  Buffer(Buffer&& o) noexcept : data_(o.data_), bytes_(o.bytes_), mapped_(o.mapped_) { o.data_ = nullptr, o.bytes_ = 0, o.mapped_ = 0; }
  Buffer& operator=(Buffer&& o) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t mapped_ = 0;  // bytes to unmap
};

}  // namespace minfer
