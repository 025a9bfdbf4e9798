// TensorView: a non-owning, trivially copyable description of a tensor in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace minfer {

// How the bytes of a tensor are arranged. Everything but kPlain is private to the host backends.
enum class Layout : uint8_t {
  kPlain,   // rows in order, as in the file
  kPacked,  // a matmul weight repacked by the cpu backend: rows interleaved (backend/cpu/pack.h)
  kKvK,     // a K region: 16 positions interleaved (tensor/kv_layout.h)
  kKvV,     // a V region: blocks of 16 positions (tensor/kv_layout.h)
};

struct TensorView {
  DType dtype = DType::kF32;
  Layout layout = Layout::kPlain;
  Shape shape;
  int64_t row_bytes = 0;  // distance between rows; for kPlain at least dtype_row_bytes(dtype, shape.last())
  std::byte* data = nullptr;

  template <typename T>
  T* row(int64_t r) const {
    return reinterpret_cast<T*>(data + r * row_bytes);
  }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  bool absent() const { return data == nullptr; }  // an optional input that is not there
};

}  // namespace minfer
