// Header and rows.
#include "npy.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/f16.h"

namespace minfer::cli {

Result<std::string> npy_bytes(const TensorView& v) {
  const char* descr = nullptr;
  switch (v.dtype) {
    case DType::kF32:
    case DType::kBF16: descr = "<f4"; break;
    case DType::kF64: descr = "<f8"; break;
    case DType::kF16: descr = "<f2"; break;
    case DType::kI32: descr = "<i4"; break;
    case DType::kI8: descr = "|i1"; break;
    default: return make_error(ErrorCode::kUnsupported, "[npy] type {} cannot be written", dtype_info(v.dtype).name);
  }
  std::string shape;
  for (int i = 0; i < v.shape.rank; ++i)
    shape += std::to_string(v.shape[i]) + (v.shape.rank == 1 || i + 1 < v.shape.rank ? "," : "");
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  constexpr size_t kPreamble = 10, kAlign = 64;  // magic, version, length; data starts at a multiple of 64
  header.append((kAlign - (kPreamble + header.size() + 1) % kAlign) % kAlign, ' ');
  header += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  const int64_t n = v.shape.last(), bytes = dtype_row_bytes(v.dtype, n);
  for (int64_t r = 0; r < v.shape.rows(); ++r) {
    if (v.dtype == DType::kBF16) {
      std::vector<float> row(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) row[static_cast<size_t>(i)] = bf16_to_f32(v.row<uint16_t>(r)[i]);
      out.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
    } else {
      out.append(v.row<char>(r), static_cast<size_t>(bytes));
    }
  }
  return out;
}

Status write_npy(const std::string& path, const TensorView& view) {
  const std::string bytes = MINFER_TRY(npy_bytes(view));
  FILE* f = std::fopen(path.c_str(), "wb");
  if (f == nullptr) return make_error(ErrorCode::kIo, "[npy] cannot write '{}': {}", path, std::strerror(errno));
  const bool ok = std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size();
  if (std::fclose(f) != 0 || !ok)
    return make_error(ErrorCode::kIo, "[npy] writing '{}' failed: {}", path, std::strerror(errno));
  return {};
}

}  // namespace minfer::cli
