// Writer: makes a GGUF file (version 3) piece by piece; the whole model is never in memory.
// Layout: as in reader.h; every tensor's data starts at a multiple of the alignment, the gap filled with zeros.
// Errors: everything the reader would refuse is refused here before a byte is written. The file appears under its
//         name only when finish() succeeds (written beside it, then renamed); a Writer dropped earlier leaves nothing.
// Threads: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gguf/metadata.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace minfer::gguf {

// Keys and values to be written, in order; setting a key again replaces its value in place.
class MetadataBuilder {
 public:
  // T: bool, [u]int8_t..[u]int64_t, float, double.
  template <typename T>
  void set(std::string_view key, T value);
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const std::string& value) { set(key, std::string_view(value)); }
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  template <typename T>  // T: as above but bool
  void set_array(std::string_view key, std::span<const T> values);
  void set_strings(std::string_view key, std::span<const std::string_view> values);
  void set_strings(std::string_view key, std::span<const std::string> values);
  void set_bools(std::string_view key, std::span<const uint8_t> values);  // any non-zero is true
  void copy(std::string_view key, const Value& value);                    // byte for byte, whatever its type
  void copy_all(const Metadata& metadata);
  bool remove(std::string_view key);  // false when it was not there
  bool has(std::string_view key) const;
  size_t size() const { return entries_.size(); }

 private:
  friend class Writer;
  struct Entry {
    std::string key;
    std::vector<std::byte> encoded;  // value type and value, as in the file
  };
  std::vector<std::byte>& slot(std::string_view key);
  std::vector<Entry> entries_;
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // outermost first
  // Bytes of its data. Requires: a shape that Writer accepts.
  uint64_t bytes() const;
};

class Writer {
 public:
  // Starts a file: checks the specs and writes header, metadata and tensor infos. The alignment is general.alignment
  // of the metadata where set, else 32.
  static Result<Writer> create(const std::string& path, const MetadataBuilder& metadata,
                               std::vector<TensorSpec> tensors);
  // The same into memory; take the bytes by take_bytes() after finish().
  static Result<Writer> create_in_memory(const MetadataBuilder& metadata, std::vector<TensorSpec> tensors);

  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  // Appends to the data of the current tensor, in the order of the specs; any number of pieces per tensor. A piece
  // that runs past the tensor's end is an error.
  Status write(std::span<const std::byte> piece);
  // The tensor that the next write() goes to; nullptr when all are complete.
  const TensorSpec* current() const;
  // Requires nothing more to write (else an error that names the incomplete tensor). Flushes, renames into place.
  Status finish();
  std::vector<std::byte> take_bytes();  // Requires: made by create_in_memory, finished

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  static Result<Writer> start(std::unique_ptr<State> state, const MetadataBuilder& metadata);
  std::unique_ptr<State> state_;
};

// A whole small file in memory: data[i] holds the bytes of tensors[i]. For tests, fixtures and made-up models.
Result<std::vector<std::byte>> encode(const MetadataBuilder& metadata, std::vector<TensorSpec> tensors,
                                      std::span<const std::span<const std::byte>> data);

}  // namespace minfer::gguf
