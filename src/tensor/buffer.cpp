// Anonymous mappings, aligned for huge pages when large.
#include "tensor/buffer.h"

#include <sys/mman.h>

#include <utility>

namespace minfer {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;
}  // namespace

Result<Buffer> Buffer::allocate(size_t bytes, bool huge_pages) {
  Buffer b;
  if (bytes == 0) return b;
  const bool huge = bytes >= kHugePage;
  size_t want = 0;
  if (__builtin_add_overflow(bytes, huge ? kHugePage : kPage - 1, &want)) {
    return make_error(ErrorCode::kResourceExhausted, "[buffer] cannot allocate {} bytes", bytes);
  }
  want &= ~(kPage - 1);
  void* p = mmap(nullptr, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    return make_error(ErrorCode::kResourceExhausted, "[buffer] cannot allocate {} bytes", bytes);
  }
  auto* base = static_cast<std::byte*>(p);
  if (huge) {  // cut the mapping down to a 2 MiB aligned start
    const size_t off = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
    if (off != 0) munmap(base, off);
    base += off;
    want -= off;
    if (huge_pages) madvise(base, want, MADV_HUGEPAGE);  // a hint: refusal changes speed only
  }
  b.data_ = base;
  b.bytes_ = bytes;
  b.mapped_ = want;
  return b;
}

void Buffer::advise_huge(size_t begin, size_t end) const {
  begin = (begin + kHugePage - 1) / kHugePage * kHugePage;
  end = end / kHugePage * kHugePage;
  if (begin < end && end <= mapped_) madvise(data_ + begin, end - begin, MADV_HUGEPAGE);
}

Buffer& Buffer::operator=(Buffer&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(bytes_, o.bytes_);
  std::swap(mapped_, o.mapped_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

}  // namespace minfer
