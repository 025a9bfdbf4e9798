// Integer codes of every block format.
#include "backend/ref/weight_codes.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/f16.h"
#include "quant/blocks.h"

namespace minfer::ref {
namespace {

using namespace quant;  // the block structs

// Nibbles of 16 bytes: low ones are values 0..15, high ones 16..31.
void nibbles(const uint8_t* qs, uint8_t* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = qs[i] & 15;
    out[16 + i] = qs[i] >> 4;
  }
}

void decode(const BlockQ8_0& w, CodeBlock* out) {
  std::memcpy(out->q, w.qs, 32);
  out->a = f16_to_f32(w.d);
}

void decode(const BlockQ4_0& w, CodeBlock* out) {
  uint8_t n[32];
  nibbles(w.qs, n);
  for (int i = 0; i < 32; ++i) out->q[i] = static_cast<int8_t>(n[i] - 8);
  out->a = f16_to_f32(w.d);
}

void decode(const BlockQ4_1& w, CodeBlock* out) {
  uint8_t n[32];
  nibbles(w.qs, n);
  for (int i = 0; i < 32; ++i) out->q[i] = static_cast<int8_t>(n[i]);
  out->a = f16_to_f32(w.d);
  out->b = f16_to_f32(w.m);
}

void five_bits(const uint8_t* qs, const uint8_t* qh, uint8_t* out) {
  nibbles(qs, out);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(out[i] | (((qh[i / 8] >> (i % 8)) & 1) << 4));
}

void decode(const BlockQ5_0& w, CodeBlock* out) {
  uint8_t n[32];
  five_bits(w.qs, w.qh, n);
  for (int i = 0; i < 32; ++i) out->q[i] = static_cast<int8_t>(n[i] - 16);
  out->a = f16_to_f32(w.d);
}

void decode(const BlockQ5_1& w, CodeBlock* out) {
  uint8_t n[32];
  five_bits(w.qs, w.qh, n);
  for (int i = 0; i < 32; ++i) out->q[i] = static_cast<int8_t>(n[i]);
  out->a = f16_to_f32(w.d);
  out->b = f16_to_f32(w.m);
}

void decode(const BlockIQ4_NL& w, CodeBlock* out) {
  uint8_t n[32];
  nibbles(w.qs, n);
  for (int i = 0; i < 32; ++i) out->q[i] = kIq4Values[n[i]];
  out->a = f16_to_f32(w.d);
}

void decode(const BlockMXFP4& w, CodeBlock* out) {
  uint8_t n[32];
  nibbles(w.qs, n);
  for (int i = 0; i < 32; ++i) out->q[i] = kMxfp4Values[n[i]];
  // 2^(e - 128): denormal for e < 2, exact all the same
  out->a =
      w.e < 2 ? std::bit_cast<float>(0x200000u << w.e) : std::bit_cast<float>(static_cast<uint32_t>(w.e - 1) << 23);
}

void decode(const BlockQ4_K& w, CodeBlock* out) {
  uint8_t sc[8], mn[8];
  unpack_scales_k4(w.scales, sc, mn);
  for (int s = 0; s < 8; ++s) {
    for (int l = 0; l < 32; ++l) out[s].q[l] = static_cast<int8_t>((w.qs[32 * (s / 2) + l] >> (4 * (s % 2))) & 15);
    out[s].a = f16_to_f32(w.d) * static_cast<float>(sc[s]);
    out[s].b = -(f16_to_f32(w.dmin) * static_cast<float>(mn[s]));
  }
}

void decode(const BlockQ5_K& w, CodeBlock* out) {
  uint8_t sc[8], mn[8];
  unpack_scales_k4(w.scales, sc, mn);
  for (int s = 0; s < 8; ++s) {
    for (int l = 0; l < 32; ++l) {
      const int low = (w.qs[32 * (s / 2) + l] >> (4 * (s % 2))) & 15;
      out[s].q[l] = static_cast<int8_t>(low | (((w.qh[l] >> s) & 1) << 4));
    }
    out[s].a = f16_to_f32(w.d) * static_cast<float>(sc[s]);
    out[s].b = -(f16_to_f32(w.dmin) * static_cast<float>(mn[s]));
  }
}

void decode(const BlockIQ4_XS& w, CodeBlock* out) {
  int8_t sc[8];
  unpack_scales_iq4_xs(w, sc);
  for (int s = 0; s < 8; ++s) {
    uint8_t n[32];
    nibbles(w.qs + 16 * s, n);
    for (int i = 0; i < 32; ++i) out[s].q[i] = kIq4Values[n[i]];
    out[s].a = f16_to_f32(w.d) * static_cast<float>(sc[s]);
  }
}

void decode(const BlockQ6_K& w, CodeBlock* out) {
  for (int s = 0; s < 8; ++s) {  // value 128*h + 64*n + 32*k + l
    const int h = s / 4, n = s / 2 % 2, k = s % 2;
    for (int l = 0; l < 32; ++l) {
      const int low = (w.ql[64 * h + 32 * k + l] >> (4 * n)) & 15;
      const int high = (w.qh[32 * h + l] >> (2 * (2 * n + k))) & 3;
      out[s].q[l] = static_cast<int8_t>((low | (high << 4)) - 32);
    }
    out[s].a = f16_to_f32(w.d);
    out[s].sc0 = w.scales[2 * s];
    out[s].sc1 = w.scales[2 * s + 1];
  }
}

void decode(const BlockQ3_K& w, CodeBlock* out) {
  int8_t sc[16];
  unpack_scales_q3_k(w.scales, sc);
  for (int s = 0; s < 8; ++s) {  // value 128*h + 32*j + l
    const int h = s / 4, j = s % 4;
    for (int l = 0; l < 32; ++l) {
      const int low = (w.qs[32 * h + l] >> (2 * j)) & 3;
      const int bit = (w.hmask[l] >> (4 * h + j)) & 1;
      out[s].q[l] = static_cast<int8_t>(low - (bit ? 0 : 4));
    }
    out[s].a = f16_to_f32(w.d);
    out[s].sc0 = sc[2 * s];
    out[s].sc1 = sc[2 * s + 1];
  }
}

void decode(const BlockQ2_K& w, CodeBlock* out) {
  for (int s = 0; s < 8; ++s) {  // value 128*h + 32*j + l
    const int h = s / 4, j = s % 4;
    for (int l = 0; l < 32; ++l) out[s].q[l] = static_cast<int8_t>((w.qs[32 * h + l] >> (2 * j)) & 3);
    out[s].a = f16_to_f32(w.d);
    out[s].b = f16_to_f32(w.dmin);
    out[s].sc0 = w.scales[2 * s] & 15;
    out[s].sc1 = w.scales[2 * s + 1] & 15;
    out[s].mn0 = w.scales[2 * s] >> 4;
    out[s].mn1 = w.scales[2 * s + 1] >> 4;
  }
}

template <typename Block, int kValues>
void decode_all(const void* row, int64_t k, CodeBlock* out) {
  const auto* src = static_cast<const std::byte*>(row);
  for (int64_t i = 0; i < k; i += kValues, src += sizeof(Block), out += kValues / 32) {
    Block block;
    std::memcpy(&block, src, sizeof block);  // blocks of a mapped file are not aligned
    decode(block, out);
  }
}

}  // namespace

CodeStep code_step(DType t) {
  switch (t) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: return CodeStep::kScaleMin;
    case DType::kQ3_K:
    case DType::kQ6_K: return CodeStep::kHalves;
    case DType::kQ2_K: return CodeStep::kHalvesMin;
    default: return CodeStep::kScale;
  }
}

void decode_codes(DType t, const void* row, int64_t k, CodeBlock* out) {
  switch (t) {
    case DType::kQ4_0: return decode_all<BlockQ4_0, kBlock>(row, k, out);
    case DType::kQ4_1: return decode_all<BlockQ4_1, kBlock>(row, k, out);
    case DType::kQ5_0: return decode_all<BlockQ5_0, kBlock>(row, k, out);
    case DType::kQ5_1: return decode_all<BlockQ5_1, kBlock>(row, k, out);
    case DType::kQ8_0: return decode_all<BlockQ8_0, kBlock>(row, k, out);
    case DType::kQ2_K: return decode_all<BlockQ2_K, kSuper>(row, k, out);
    case DType::kQ3_K: return decode_all<BlockQ3_K, kSuper>(row, k, out);
    case DType::kQ4_K: return decode_all<BlockQ4_K, kSuper>(row, k, out);
    case DType::kQ5_K: return decode_all<BlockQ5_K, kSuper>(row, k, out);
    case DType::kQ6_K: return decode_all<BlockQ6_K, kSuper>(row, k, out);
    case DType::kIQ4_NL: return decode_all<BlockIQ4_NL, kBlock>(row, k, out);
    case DType::kIQ4_XS: return decode_all<BlockIQ4_XS, kSuper>(row, k, out);
    case DType::kMXFP4: return decode_all<BlockMXFP4, kBlock>(row, k, out);
    default: MINFER_CHECK(false);
  }
}

}  // namespace minfer::ref
