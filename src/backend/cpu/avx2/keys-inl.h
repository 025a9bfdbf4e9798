// Dot products of int8 keys and query codes for the attention bodies. Included after vec-inl.h.
#pragma once

namespace minfer::cpu {
namespace {

// Keys of 16 slots x 4 features: magnitudes 0..128 (unsigned) and the codes for their signs. With query codes in
// [-127, 127] a pair of products is at most 2 * 128 * 127 = 32512 < 2^15, so maddubs does not saturate, -128 included.
struct KeyCodes {
  __m256i mag_a, mag_b, a, b;
};
inline KeyCodes load_keys(const int8_t* p) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  return {_mm256_abs_epi8(a), _mm256_abs_epi8(b), a, b};
}
inline I dot_start(int32_t) { return set1_i(0); }
inline __m256i dot4_8(__m256i acc, __m256i mag, __m256i k, __m256i q) {
  const __m256i pairs = _mm256_maddubs_epi16(mag, _mm256_sign_epi8(q, k));
  acc = _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  asm("" : "+x"(acc));  // in this order: g++ would turn the sums into trees and spill their leaves
  return acc;
}
inline I dot4(I acc, KeyCodes k, const int8_t* q) {  // q: 4 codes, the same for every slot
  int32_t four;
  std::memcpy(&four, q, 4);
  const __m256i v = _mm256_set1_epi32(four);
  return {dot4_8(acc.a, k.mag_a, k.a, v), dot4_8(acc.b, k.mag_b, k.b, v)};
}

}  // namespace
}  // namespace minfer::cpu
