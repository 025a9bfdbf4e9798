// Dot products of int8 keys and query codes for the attention bodies. Included after ../avx2/vec-inl.h.
#pragma once

namespace minfer::cpu {
namespace {

// Keys of 16 slots x 4 features, made unsigned by adding 128; the dot product then starts at -128 * sum(query codes).
struct KeyCodes {
  __m256i a, b;
};
inline KeyCodes load_keys(const int8_t* p) {
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(0x80));
  return {_mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), flip),
          _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32)), flip)};
}
inline I dot_start(int32_t sum) { return set1_i(-128 * sum); }
inline I dot4(I acc, KeyCodes k, const int8_t* q) {  // q: 4 codes, the same for every slot
  int32_t four;
  std::memcpy(&four, q, 4);
  const __m256i v = _mm256_set1_epi32(four);
  return {_mm256_dpbusd_epi32(acc.a, k.a, v), _mm256_dpbusd_epi32(acc.b, k.b, v)};
}

}  // namespace
}  // namespace minfer::cpu
