// Repacks weights as pack.h describes. One function per format packs one block (or super-block) of one row; words of
// four codes are moved and masked together, so that packing runs at memory speed without vector instructions.
#include "backend/cpu/pack.h"

#include <cstring>

#include "base/checked.h"
#include "quant/blocks.h"

namespace minfer::cpu {
namespace {

using namespace quant;

constexpr uint32_t kLow4 = 0x0f0f0f0fu, kLow2 = 0x03030303u, kLow1 = 0x01010101u;

uint32_t load32(const void* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

// Lane `r` of vector `j` of an array of u32[16] vectors.
void put32(uint8_t* base, int j, int r, uint32_t v) { std::memcpy(base + (j * kRowGroup + r) * 4, &v, 4); }
void put16(uint8_t* base, int r, const void* v) { std::memcpy(base + r * 2, v, 2); }

// The 16 bytes of a block whose low nibbles are values 0..15 and high nibbles 16..31: the packed order already.
void put_nibbles(uint8_t* dst, int r, const uint8_t* qs) {
  for (int j = 0; j < 4; ++j) put32(dst, j, r, load32(qs + 4 * j));
}

// Nibbles of 32 values held in one half (shift 0 or 4) of 32 bytes.
void put_half_nibbles(uint8_t* dst, int r, const uint8_t* q32, int shift) {
  for (int j = 0; j < 4; ++j) {
    const uint32_t lo = (load32(q32 + 4 * j) >> shift) & kLow4, hi = (load32(q32 + 16 + 4 * j) >> shift) & kLow4;
    put32(dst, j, r, lo | hi << 4);
  }
}

// Bit `bit` of each of 32 bytes -> bit g of byte c, for value 4g + c.
void put_bits(uint8_t* dst, int r, const uint8_t* q32, int bit) {
  uint32_t v = 0;
  for (int g = 0; g < 8; ++g) v |= ((load32(q32 + 4 * g) >> bit) & kLow1) << g;
  put32(dst, 0, r, v);
}

// Bits `shift`, `shift` + 1 of each of 32 bytes -> two bits per group in two words.
void put_pairs(uint8_t* dst, int r, const uint8_t* q32, int shift) {
  for (int j = 0; j < 2; ++j) {
    uint32_t v = 0;
    for (int g = 0; g < 4; ++g) v |= ((load32(q32 + 16 * j + 4 * g) >> shift) & kLow2) << (2 * g);
    put32(dst, j, r, v);
  }
}

// Bit i of a word -> bit i / 4 of byte i % 4: an 8x4 transposition of bits, as two inverse perfect shuffles.
uint32_t transpose_bits(uint32_t x) {
  for (int pass = 0; pass < 2; ++pass) {
    uint32_t t = (x ^ (x >> 1)) & 0x22222222u;
    x ^= t ^ (t << 1);
    t = (x ^ (x >> 2)) & 0x0c0c0c0cu;
    x ^= t ^ (t << 2);
    t = (x ^ (x >> 4)) & 0x00f000f0u;
    x ^= t ^ (t << 4);
    t = (x ^ (x >> 8)) & 0x0000ff00u;
    x ^= t ^ (t << 8);
  }
  return x;
}

// Packs block `src` of row `r` of the group into `dst`, where the group's 16 blocks go.
using PackBlock = void (*)(const uint8_t* src, uint8_t* dst, int r);

void pack_q4_0(const uint8_t* src, uint8_t* dst, int r) {  // and iq4_nl: the same bytes
  put16(dst, r, src);
  put_nibbles(dst + 32, r, src + 2);
}

void pack_q4_1(const uint8_t* src, uint8_t* dst, int r) {
  put16(dst, r, src);
  put16(dst + 32, r, src + 2);
  put_nibbles(dst + 64, r, src + 4);
}

void pack_q5_0(const uint8_t* src, uint8_t* dst, int r) {
  put16(dst, r, src);
  put_nibbles(dst + 32, r, src + 6);
  put32(dst + 288, 0, r, transpose_bits(load32(src + 2)));
}

void pack_q5_1(const uint8_t* src, uint8_t* dst, int r) {
  put16(dst, r, src);
  put16(dst + 32, r, src + 2);
  put_nibbles(dst + 64, r, src + 8);
  put32(dst + 320, 0, r, transpose_bits(load32(src + 4)));
}

void pack_q8_0(const uint8_t* src, uint8_t* dst, int r) {
  put16(dst, r, src);
  for (int g = 0; g < 8; ++g) put32(dst + 32, g, r, load32(src + 2 + 4 * g) ^ 0x80808080u);  // + 128 as unsigned
}

void pack_mxfp4(const uint8_t* src, uint8_t* dst, int r) {
  dst[r] = src[0];
  put_nibbles(dst + 16, r, src + 1);
}

void pack_scales_k4(const uint8_t* scales, uint8_t* dst, int r) {  // u8[8][16], then u32[16]
  uint8_t sc[8], mn[8];
  unpack_scales_k4(scales, sc, mn);
  uint32_t high = 0;
  for (int s = 0; s < 8; ++s) {
    dst[s * kRowGroup + r] = static_cast<uint8_t>((sc[s] & 15) | (mn[s] & 15) << 4);
    high |= static_cast<uint32_t>(sc[s] >> 4) << (2 * s) | static_cast<uint32_t>(mn[s] >> 4) << (16 + 2 * s);
  }
  put32(dst + 8 * kRowGroup, 0, r, high);
}

void pack_q4_k(const uint8_t* src, uint8_t* dst, int r) {
  BlockQ4_K b;
  std::memcpy(&b, src, sizeof b);
  put16(dst, r, &b.d);
  put16(dst + 32, r, &b.dmin);
  pack_scales_k4(b.scales, dst + 64, r);
  for (int s = 0; s < 8; ++s) put_half_nibbles(dst + 256 + s * 256, r, b.qs + 32 * (s / 2), 4 * (s % 2));
}

void pack_q5_k(const uint8_t* src, uint8_t* dst, int r) {
  BlockQ5_K b;
  std::memcpy(&b, src, sizeof b);
  put16(dst, r, &b.d);
  put16(dst + 32, r, &b.dmin);
  pack_scales_k4(b.scales, dst + 64, r);
  for (int s = 0; s < 8; ++s) {
    put_half_nibbles(dst + 256 + s * 320, r, b.qs + 32 * (s / 2), 4 * (s % 2));
    put_bits(dst + 256 + s * 320 + 256, r, b.qh, s);
  }
}

void pack_q6_k(const uint8_t* src, uint8_t* dst, int r) {
  BlockQ6_K b;
  std::memcpy(&b, src, sizeof b);
  put16(dst, r, &b.d);
  for (int s = 0; s < 8; ++s) {  // s = 4h + 2n + k
    uint8_t* out = dst + 32 + s * 416;
    const int h = s / 4, n = s / 2 % 2, k = s % 2;
    out[r] = static_cast<uint8_t>(b.scales[2 * s]);
    out[kRowGroup + r] = static_cast<uint8_t>(b.scales[2 * s + 1]);
    put_half_nibbles(out + 32, r, b.ql + 64 * h + 32 * k, 4 * n);
    put_pairs(out + 288, r, b.qh + 32 * h, 2 * (2 * n + k));
  }
}

void pack_q3_k(const uint8_t* src, uint8_t* dst, int r) {
  BlockQ3_K b;
  std::memcpy(&b, src, sizeof b);
  int8_t sc[16];
  unpack_scales_q3_k(b.scales, sc);
  put16(dst, r, &b.d);
  uint32_t high = 0;
  for (int s = 0; s < 8; ++s) {
    const int a = sc[2 * s] + 32, c = sc[2 * s + 1] + 32;  // 0..63
    dst[32 + s * kRowGroup + r] = static_cast<uint8_t>((a & 15) | (c & 15) << 4);
    high |= static_cast<uint32_t>(a >> 4) << (4 * s) | static_cast<uint32_t>(c >> 4) << (4 * s + 2);
    uint8_t* out = dst + 224 + s * 192;
    put_pairs(out, r, b.qs + 32 * (s / 4), 2 * (s % 4));
    put_bits(out + 128, r, b.hmask, s);
  }
  put32(dst + 160, 0, r, high);
}

void pack_q2_k(const uint8_t* src, uint8_t* dst, int r) {
  BlockQ2_K b;
  std::memcpy(&b, src, sizeof b);
  put16(dst, r, &b.d);
  put16(dst + 32, r, &b.dmin);
  for (int s = 0; s < 8; ++s) {
    uint8_t* out = dst + 64 + s * 160;
    out[r] = b.scales[2 * s];
    out[kRowGroup + r] = b.scales[2 * s + 1];
    put_pairs(out + 32, r, b.qs + 32 * (s / 4), 2 * (s % 4));
  }
}

void pack_iq4_xs(const uint8_t* src, uint8_t* dst, int r) {
  BlockIQ4_XS b;
  std::memcpy(&b, src, sizeof b);
  put16(dst, r, &b.d);
  put32(dst + 32, 0, r, load32(b.scales_l));
  put16(dst + 96, r, &b.scales_h);
  for (int s = 0; s < 8; ++s) put_nibbles(dst + 128 + s * 256, r, b.qs + 16 * s);
}

void pack_2(const uint8_t* src, uint8_t* dst, int r) { std::memcpy(dst + 2 * r, src, 2); }  // one f16 or bf16 value
void pack_4(const uint8_t* src, uint8_t* dst, int r) { std::memcpy(dst + 4 * r, src, 4); }  // one f32 value

// `pack` is a template argument so that it is inlined into the loop over blocks.
template <PackBlock pack>
void pack_rows(const uint8_t* src,  // [rows] rows, row_bytes apart
               int64_t row_bytes, int rows, int64_t n_blocks, int64_t block_bytes,
               uint8_t* dst) {  // [n_blocks][16 * block_bytes]
  for (int64_t b = 0; b < n_blocks; ++b) {
    uint8_t* out = dst + b * kRowGroup * block_bytes;
    for (int r = 0; r < rows; ++r) pack(src + r * row_bytes + b * block_bytes, out, r);
    if (rows < kRowGroup) {
      alignas(8) static constexpr uint8_t kZeros[256] = {};  // the largest block has 210 bytes
      for (int r = rows; r < kRowGroup; ++r) pack(kZeros, out, r);
    }
  }
}

using PackRows = void (*)(const uint8_t*, int64_t, int, int64_t, int64_t, uint8_t*);

PackRows pack_rows_of(PackedFormat f) {
  switch (f) {
    case kFmtF32: return pack_rows<pack_4>;
    case kFmtF16:
    case kFmtBF16: return pack_rows<pack_2>;
    case kFmtQ4_0:
    case kFmtIQ4_NL: return pack_rows<pack_q4_0>;
    case kFmtQ4_1: return pack_rows<pack_q4_1>;
    case kFmtQ5_0: return pack_rows<pack_q5_0>;
    case kFmtQ5_1: return pack_rows<pack_q5_1>;
    case kFmtQ8_0: return pack_rows<pack_q8_0>;
    case kFmtQ2_K: return pack_rows<pack_q2_k>;
    case kFmtQ3_K: return pack_rows<pack_q3_k>;
    case kFmtQ4_K: return pack_rows<pack_q4_k>;
    case kFmtQ5_K: return pack_rows<pack_q5_k>;
    case kFmtQ6_K: return pack_rows<pack_q6_k>;
    case kFmtIQ4_XS: return pack_rows<pack_iq4_xs>;
    case kFmtMXFP4: return pack_rows<pack_mxfp4>;
    case kFmtCount: break;
  }
  return nullptr;
}

}  // namespace

PackedFormat packed_format(DType t) {
  switch (t) {
    case DType::kF32: return kFmtF32;
    case DType::kF16: return kFmtF16;
    case DType::kBF16: return kFmtBF16;
    case DType::kQ4_0: return kFmtQ4_0;
    case DType::kQ4_1: return kFmtQ4_1;
    case DType::kQ5_0: return kFmtQ5_0;
    case DType::kQ5_1: return kFmtQ5_1;
    case DType::kQ8_0: return kFmtQ8_0;
    case DType::kQ2_K: return kFmtQ2_K;
    case DType::kQ3_K: return kFmtQ3_K;
    case DType::kQ4_K: return kFmtQ4_K;
    case DType::kQ5_K: return kFmtQ5_K;
    case DType::kQ6_K: return kFmtQ6_K;
    case DType::kIQ4_NL: return kFmtIQ4_NL;
    case DType::kIQ4_XS: return kFmtIQ4_XS;
    case DType::kMXFP4: return kFmtMXFP4;
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kF64: break;
  }
  return kFmtCount;
}

Result<std::optional<PackedWeight>> pack_weight(const TensorView& plain, ThreadPool& pool) {
  const PackedFormat format = packed_format(plain.dtype);
  const DTypeInfo& info = dtype_info(plain.dtype);
  if (format == kFmtCount) {
    return make_error(ErrorCode::kUnsupported, "[pack] weight of type {}: matmul has no kernels for it", info.name);
  }
  if (plain.layout != Layout::kPlain || plain.shape.rank < 2 || plain.shape.rank > 3) {
    return make_error(ErrorCode::kInvalidArgument, "[pack] weight {}: expected plain [m, k] or [n_expert, m, k]",
                      plain.shape.str());
  }
  const int64_t k = plain.shape.last(), m = plain.shape[plain.shape.rank - 2];
  const int64_t n_expert = plain.shape.rank == 3 ? plain.shape[0] : 1;
  if (k <= 0 || m <= 0 || n_expert <= 0 || k % info.block_size != 0) {
    return make_error(ErrorCode::kInvalidArgument, "[pack] weight {} of type {}: row length must be a multiple of {}",
                      plain.shape.str(), info.name, info.block_size);
  }
  const int64_t groups = packed_groups(m), group_bytes = packed_group_bytes(plain.dtype, k);
  const std::optional<int64_t> bytes = checked_mul(n_expert * groups, group_bytes);
  if (!bytes) {
    return make_error(ErrorCode::kResourceExhausted, "[pack] weight {} of type {}: too large", plain.shape.str(),
                      info.name);
  }

  PackedWeight packed;
  packed.storage = MINFER_TRY_CTX(Buffer::allocate(static_cast<size_t>(*bytes)),
                                  fmt::format("[pack] weight {} of type {}", plain.shape.str(), info.name));
  packed.view = plain;
  packed.view.layout = Layout::kPacked;
  packed.view.row_bytes = dtype_row_bytes(plain.dtype, k);
  packed.view.data = packed.storage.data();

  const PackRows pack = pack_rows_of(format);
  uint8_t* dst = reinterpret_cast<uint8_t*>(packed.storage.data());
  std::atomic<int64_t> next{0};
  // About 256 KiB per piece: enough to hide the hand-out, small enough to even out the cores.
  const int64_t grain = group_bytes >= (256 << 10) ? 1 : (256 << 10) / group_bytes;
  const int64_t total = n_expert * groups;
  MINFER_TRY(pool.run([&](Worker&) {
    for (int64_t g0; (g0 = next.fetch_add(grain, std::memory_order_relaxed)) < total;) {
      for (int64_t g = g0; g < total && g < g0 + grain; ++g) {
        const int64_t row = g % groups * kRowGroup;
        const int rows = static_cast<int>(m - row < kRowGroup ? m - row : kRowGroup);
        pack(plain.row<const uint8_t>(g / groups * m + row), plain.row_bytes, rows, k / info.block_size,
             info.block_bytes, dst + g * group_bytes);
      }
    }
  }));
  return std::optional<PackedWeight>(std::move(packed));
}

}  // namespace minfer::cpu
