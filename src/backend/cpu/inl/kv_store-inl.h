// Writing rows of K and V into head blocks. Included after a vec-inl.h and q8-inl.h; everything is internal to the
// including file.
// Layout: tensor/kv_layout.h.
#pragma once

#include "backend/cpu/kernels.h"

namespace minfer::cpu {
namespace {

template <KvType kType>
inline void store_vec(void* p, F x) {
  if constexpr (kType == KvType::kF32) store(static_cast<float*>(p), x);
  if constexpr (kType == KvType::kF16) store_f16(static_cast<uint16_t*>(p), x);
  if constexpr (kType == KvType::kBF16) store_bf16(static_cast<uint16_t*>(p), x);
}

// K: feature i of the slot stands at [i][slot].
template <typename T, KvType kType>
void store_k_float(const float* x, std::byte* head_block, int slot, int64_t head_dim) {
  T* k = reinterpret_cast<T*>(head_block) + slot;
  for (int64_t i = 0; i < head_dim; i += 16) {
    const int n = head_dim - i < 16 ? static_cast<int>(head_dim - i) : 16;
    T t[16];
    store_vec<kType>(t, load_n(x + i, n));
    for (int j = 0; j < n; ++j) k[(i + j) * 16] = t[j];
  }
}

template <typename T, KvType kType>
void store_v_float(const float* x, std::byte* head_block, int slot, int64_t head_dim) {
  T* v = reinterpret_cast<T*>(head_block) + slot * head_dim;
  int64_t i = 0;
  for (; i + 16 <= head_dim; i += 16) store_vec<kType>(v + i, load(x + i));
  const int left = static_cast<int>(head_dim - i);
  if (left > 0) {
    T t[16];
    store_vec<kType>(t, load_n(x + i, left));
    std::memcpy(v + i, t, static_cast<size_t>(left) * sizeof(T));
  }
}

void store_k_q8(const float* x, std::byte* head_block, int slot, int64_t head_dim) {
  for (int64_t b = 0; b < head_dim / 32; ++b) {
    int8_t codes[32];
    float d;
    quantize_block(x + b * 32, codes, &d);
    std::byte* block = head_block + b * 544;  // 16 f16 scales, int8 [8][16 slots][4]
    const uint16_t h = f16_of(d);
    std::memcpy(block + slot * 2, &h, 2);
    for (int i = 0; i < 8; ++i) std::memcpy(block + 32 + (i * 16 + slot) * 4, codes + i * 4, 4);
  }
}

void store_v_q8(const float* x, std::byte* head_block, int slot, int64_t head_dim) {
  const int64_t blocks = head_dim / 32;  // f16 scales [16 slots][blocks], int8 [16 slots][head_dim]
  auto* codes = reinterpret_cast<int8_t*>(head_block + 16 * blocks * 2 + slot * head_dim);
  for (int64_t b = 0; b < blocks; ++b) {
    float d;
    quantize_block(x + b * 32, codes + b * 32, &d);
    const uint16_t h = f16_of(d);
    std::memcpy(head_block + (slot * blocks + b) * 2, &h, 2);
  }
}

constexpr KvKernels kKv = {
    {store_k_float<float, KvType::kF32>, store_k_float<uint16_t, KvType::kF16>, store_k_float<uint16_t, KvType::kBF16>,
     store_k_q8},
    {store_v_float<float, KvType::kF32>, store_v_float<uint16_t, KvType::kF16>, store_v_float<uint16_t, KvType::kBF16>,
     store_v_q8},
};

}  // namespace
}  // namespace minfer::cpu
