// Writing tensors as NumPy .npy files.
// Source: the NumPy format description, version 1.0.
#pragma once

#include <string>

#include "base/error.h"
#include "tensor/view.h"

namespace minfer::cli {

// f32, f64, i32, i8 and the 16-bit floats (f16 as itself, bf16 widened to f32). Errors: other types, I/O.
Status write_npy(const std::string& path, const TensorView& view);
// The bytes of the same file.
Result<std::string> npy_bytes(const TensorView& view);

}  // namespace minfer::cli
