// GGUF from any bytes: refused with an error, or opened and then readable to the last byte and writable again.
// Layers: gguf
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gguf/reader.h"
#include "gguf/writer.h"

namespace {

using minfer::gguf::File;
using minfer::gguf::Metadata;

volatile unsigned sink;

void touch(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  sink = sink + static_cast<unsigned>(bytes.front()) + static_cast<unsigned>(bytes.back());
}

void read_all(const Metadata& m) {
  for (const Metadata::Entry& e : m.entries()) {
    touch(e.value.bytes);
    (void)e.value.type_name();
    (void)m.get<uint32_t>(e.key);
    (void)m.get<int64_t>(e.key);
    (void)m.get<float>(e.key);
    (void)m.get<bool>(e.key);
    (void)m.get<std::string_view>(e.key);
    (void)m.numbers<int8_t>(e.key);
    (void)m.numbers<uint64_t>(e.key);
    (void)m.numbers<float>(e.key);
    (void)m.bools(e.key);
    (void)m.per_layer<uint32_t>(e.key, 3);
    const auto strings = m.strings(e.key);
    if (!strings.ok()) continue;
    for (const std::string_view s : *strings) touch(std::as_bytes(std::span(s)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // An aligned heap block of the exact size: open_memory then makes no copy and the sanitizer sees every stray read.
  void* block = nullptr;
  if (posix_memalign(&block, 64, size) != 0) return 0;
  const std::unique_ptr<void, decltype(&std::free)> owner(block, &std::free);
  std::copy_n(data, size, static_cast<uint8_t*>(block));
  const auto file = File::open_memory({static_cast<const std::byte*>(block), size}, "fuzz");
  if (!file.ok()) {
    if (file.error().message.empty()) std::abort();
    return 0;
  }
  read_all(file->metadata());
  minfer::gguf::MetadataBuilder m;
  std::vector<minfer::gguf::TensorSpec> specs;
  std::vector<std::span<const std::byte>> parts;
  m.copy_all(file->metadata());
  for (const auto& t : file->tensors()) {
    if (file->find(t.name) != &t) std::abort();
    touch(file->bytes(t));
    specs.push_back({t.name, t.dtype, t.shape});
    parts.push_back(file->bytes(t));
  }
  // A huge alignment in a file without tensors costs the reader nothing, the writer neither: no data, no padding.
  const auto again = minfer::gguf::encode(m, specs, parts);
  if (!again.ok()) std::abort();
  const auto reopened = File::from_bytes(*again);
  if (!reopened.ok() || reopened->tensors().size() != specs.size()) std::abort();
  return 0;
}
