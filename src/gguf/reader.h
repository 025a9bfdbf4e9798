// File: an opened GGUF model (version 2 or 3, one file or split into parts), mapped read-only.
// Layout: header, key/values, tensor infos, padding to `alignment`, tensor data. Dimensions stand innermost first in
//         the file; TensorInfo::shape has them turned around once, outermost first.
// Errors: open() checks every number before it is used and names file, field, found and expected. What it returns is
//         sound: all views lie inside the mapped bytes, names are unique, no two tensors share bytes.
// Threads: read-only after open(); data() and the page hints may be used from any thread.
// Source: the GGUF format description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gguf/metadata.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace minfer::gguf {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;          // outermost first: a weight is [out, in]
  uint64_t offset = 0;  // of its first byte, from the start of its part's file
  uint64_t bytes = 0;   // rows * dtype_row_bytes(dtype, shape.last())
  int part = 0;         // index of the file it is in
};

class File {
 public:
  // Opens a model by path. Of a split model ("x-00001-of-00003.gguf") give the first part: the others are found
  // beside it. Blocks for the metadata only; tensor data is read when touched.
  static Result<File> open(const std::string& path);
  // The same over bytes in memory (one part). `bytes` must outlive the File; `name` is what errors call it. Bytes that
  // do not start at a multiple of 32 are copied, so that data() keeps its promise.
  static Result<File> open_memory(std::span<const std::byte> bytes, std::string name = "<memory>");
  // The same over a copy of the bytes, which the File owns.
  static Result<File> from_bytes(const std::vector<std::byte>& bytes, std::string name = "<memory>");

  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  const std::string& path() const;  // of the first part
  size_t n_parts() const;
  const std::string& part_path(size_t part) const;  // Requires: part < n_parts()
  uint64_t total_bytes() const;                     // of all parts
  uint32_t version() const;                         // of the first part
  uint64_t alignment() const;                       // of the first part

  const Metadata& metadata() const;                                // of the first part
  const std::vector<TensorInfo>& tensors() const;                  // of all parts, in file order
  const TensorInfo* find(std::string_view name) const;             // nullptr when absent
  Result<const TensorInfo*> require(std::string_view name) const;  // an error when absent

  // Requires: `t` comes from tensors() of this File.
  const std::byte* data(const TensorInfo& t) const;  // [t.bytes], aligned to at least 8
  std::span<const std::byte> bytes(const TensorInfo& t) const { return {data(t), t.bytes}; }

  // Page hints (no effect on bytes in memory): start reading; give the pages back, for a loader that has repacked.
  void will_need(const TensorInfo& t) const;
  void drop_pages(const TensorInfo& t) const;

 private:
  struct Part;
  File();
  static Result<Part> read_part(Part part, int index);
  static Result<File> open_bytes(std::span<const std::byte> bytes, std::string name, bool copy);
  Status adopt(Part part);
  Result<uint32_t> split_count() const;

  std::vector<Part> parts_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string_view, size_t> index_;  // name -> tensors_; views of the names in the parts' bytes
};

// "dir/x-00002-of-00003.gguf" for ("dir/x", 1, 3).
std::string split_path(std::string_view prefix, uint32_t part, uint32_t count);
// The prefix of a path made by split_path for (part, count); empty when it is none.
std::string_view split_prefix(std::string_view path, uint32_t part, uint32_t count);

}  // namespace minfer::gguf
