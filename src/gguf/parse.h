// parse: the bytes of one GGUF file into metadata and tensor infos, every number checked before it is used.
// Errors: one per fault, naming file, key or tensor, field, found and expected. Memory taken is bounded by a small
//         multiple of the bytes given.
// Threads: pure function.
// Source: the GGUF format description, versions 2 and 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gguf/metadata.h"
#include "gguf/reader.h"

namespace minfer::gguf {

struct Parsed {
  uint32_t version = 0;
  uint64_t alignment = kAlignmentDefault;
  Metadata metadata;
  std::vector<TensorInfo> tensors;      // offsets from the start of the file; inside it, aligned, without overlap
  std::vector<std::string_view> names;  // of the tensors, as views into `bytes`; not yet known to be unique
};

// `bytes` must outlive the result; `source` is the file's name in errors; `part` goes into every TensorInfo.
Result<Parsed> parse(std::span<const std::byte> bytes, const std::string& source, int part);

// An alignment that the format allows: a power of two and a multiple of 8.
bool alignment_ok(uint64_t alignment);

}  // namespace minfer::gguf
