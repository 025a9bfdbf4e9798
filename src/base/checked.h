// Overflow-checked integer arithmetic for parsers: every size a file names goes through these.
#pragma once

#include <cstdint>
#include <optional>

namespace minfer {

template <typename T>
inline std::optional<T> checked_add(T a, T b) {
  T r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

template <typename T>
inline std::optional<T> checked_mul(T a, T b) {
  T r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// Rounds up to a multiple of `alignment` (a power of two); nullopt if that overflows.
inline std::optional<uint64_t> checked_align_up(uint64_t value, uint64_t alignment) {
  auto sum = checked_add<uint64_t>(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

}  // namespace minfer
