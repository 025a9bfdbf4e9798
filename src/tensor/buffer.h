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
  // Zeroed pages; sizes of 2 MiB and more are aligned to huge pages and, unless `huge` is false, advised for them.
  // Without the advice memory is taken 4 KiB at a time as it is touched: right for large regions that may stay mostly
  // empty.
  static Result<Buffer> allocate(size_t bytes, bool huge = true);
  // Advises huge pages for the whole ones inside [begin, end) of the buffer. A hint: it changes speed only.
  void advise_huge(size_t begin, size_t end) const;

  Buffer(Buffer&& o) noexcept : data_(o.data_), bytes_(o.bytes_), mapped_(o.mapped_) {
    o.data_ = nullptr, o.bytes_ = 0, o.mapped_ = 0;
  }
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
