// Internal to quant/: the functions behind the format table, and helpers shared by the format files.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "quant/blocks.h"

namespace minfer::quant {

#define MINFER_QUANT_CODEC(name)                              \
  void decode_##name(const void* src, float* dst, int64_t n); \
  void encode_##name(const float* src, const float* importance, void* dst, int64_t n)

MINFER_QUANT_CODEC(f32);
MINFER_QUANT_CODEC(f16);
MINFER_QUANT_CODEC(bf16);
MINFER_QUANT_CODEC(q4_0);
MINFER_QUANT_CODEC(q4_1);
MINFER_QUANT_CODEC(q5_0);
MINFER_QUANT_CODEC(q5_1);
MINFER_QUANT_CODEC(q8_0);
MINFER_QUANT_CODEC(q2_k);
MINFER_QUANT_CODEC(q3_k);
MINFER_QUANT_CODEC(q4_k);
MINFER_QUANT_CODEC(q5_k);
MINFER_QUANT_CODEC(q6_k);
MINFER_QUANT_CODEC(iq4_nl);
MINFER_QUANT_CODEC(iq4_xs);
MINFER_QUANT_CODEC(mxfp4);

#undef MINFER_QUANT_CODEC

// Blocks in a file may lie at any address, so they are copied in and out.
template <typename Block>
Block load_block(const void* src, int64_t index) {
  Block b;
  std::memcpy(&b, static_cast<const char*>(src) + index * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
  return b;
}

template <typename Block>
void store_block(const Block& b, void* dst, int64_t index) {
  std::memcpy(static_cast<char*>(dst) + index * static_cast<int64_t>(sizeof(Block)), &b, sizeof(Block));
}

// 32 four-bit codes in 16 bytes: low nibbles are codes 0..15, high nibbles 16..31.
inline void unpack_nibbles(const uint8_t* qs,  // [16]
                           uint8_t* q) {       // [32]
  for (int i = 0; i < 16; ++i) {
    q[i] = qs[i] & 15;
    q[i + 16] = qs[i] >> 4;
  }
}

inline void pack_nibbles(const uint8_t* q,  // [32], only the low four bits are used
                         uint8_t* qs) {     // [16]
  for (int i = 0; i < 16; ++i) qs[i] = static_cast<uint8_t>((q[i] & 15) | ((q[i + 16] & 15) << 4));
}

// The fifth bits of 32 codes: bit i % 8 of byte i / 8.
inline void unpack_fifth_bits(const uint8_t* qh,  // [4]
                              uint8_t* q) {       // [32], the bits are or-ed in
  for (int i = 0; i < 32; ++i) q[i] = static_cast<uint8_t>(q[i] | (((qh[i / 8] >> (i % 8)) & 1) << 4));
}

inline void pack_fifth_bits(const uint8_t* q,  // [32]
                            uint8_t* qh) {     // [4]
  for (int b = 0; b < 4; ++b) {
    int bits = 0;
    for (int i = 0; i < 8; ++i) bits |= ((q[8 * b + i] >> 4) & 1) << i;
    qh[b] = static_cast<uint8_t>(bits);
  }
}

}  // namespace minfer::quant
