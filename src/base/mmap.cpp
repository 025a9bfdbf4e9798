// Read-only file mappings over open, fstat and mmap.
#include "base/mmap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

namespace minfer {
namespace {

std::string system_message(int code) { return std::generic_category().message(code); }

struct Fd {
  int fd;
  ~Fd() { ::close(fd); }
};

uintptr_t page_bytes() {
  static const uintptr_t bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return make_error(ErrorCode::kInvalidArgument, "[file] a path may not hold a NUL byte");
  }
  // O_NONBLOCK: opening a pipe without a writer would wait for ever; it means nothing for regular files.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int code = errno;
    const ErrorCode kind = code == ENOENT || code == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
    return make_error(kind, "[file] cannot open '{}': {}", path, system_message(code));
  }
  const Fd guard{fd};
  struct stat st {};
  if (::fstat(fd, &st) != 0) {
    return make_error(ErrorCode::kIo, "[file] cannot examine '{}': {}", path, system_message(errno));
  }
  if (S_ISDIR(st.st_mode)) {
    return make_error(ErrorCode::kInvalidArgument, "[file] '{}' is a directory, expected a file", path);
  }
  if (!S_ISREG(st.st_mode)) {
    return make_error(ErrorCode::kInvalidArgument, "[file] '{}' is no regular file and cannot be mapped", path);
  }
  if (st.st_size <= 0) return make_error(ErrorCode::kCorrupt, "[file] '{}' is empty (0 bytes)", path);
  if (static_cast<uint64_t>(st.st_size) > static_cast<uint64_t>(std::numeric_limits<ptrdiff_t>::max())) {
    return make_error(ErrorCode::kUnsupported, "[file] '{}': {} bytes exceed the address space", path, st.st_size);
  }
  const size_t size = static_cast<size_t>(st.st_size);
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED) {
    return make_error(ErrorCode::kIo, "[file] cannot map '{}' ({} bytes): {}", path, size, system_message(errno));
  }
  MappedFile f;
  f.data_ = static_cast<std::byte*>(p);
  f.size_ = size;
  return f;
}

MappedFile::MappedFile(MappedFile&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void advise_will_need(std::span<const std::byte> range) {
  const uintptr_t page = page_bytes();
  const uintptr_t begin = reinterpret_cast<uintptr_t>(range.data()) & ~(page - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(range.data()) + range.size();
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

void advise_drop(std::span<const std::byte> range) {
  const uintptr_t page = page_bytes();
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(range.data()) + page - 1) & ~(page - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(range.data()) + range.size()) & ~(page - 1);
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace minfer
