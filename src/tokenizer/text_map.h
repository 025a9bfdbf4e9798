// TextMap: token text to id, without an allocation per lookup; and the hash that the tokenizer's tables share.
// Layout:  open addressing, a power of two of slots at most half full; a slot is (upper half of the hash) << 32 | id
// + 1.
//          The texts stay where the owner keeps them and are passed to every call.
// Errors:  none. Threads: find() is const and pure.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace minfer {

// Random once per process, so that no file can be made whose texts collide; results never depend on it.
uint64_t hash_seed();

inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view text, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio
  uint64_t h = seed ^ (text.size() * kOdd);
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = hash_mix(h ^ word, kOdd);
  }
  uint64_t word = 0;
  if (left > 0) std::memcpy(&word, p, left);
  h = hash_mix(h ^ word, kOdd ^ seed);
  return hash_mix(h, kOdd);
}

class TextMap {
 public:
  // Makes room for n texts.
  void reserve(size_t n) {
    seed_ = hash_seed();
    slots_.assign(std::bit_ceil(n * 2 + 2), 0);
  }
  // False if the text is there already (the first id stays). Requires: fewer than n texts so far.
  bool insert(std::string_view text, int32_t id, std::span<const std::string_view> texts) {
    const uint64_t h = hash_bytes(text, seed_);
    size_t i = h & (slots_.size() - 1);
    for (; slots_[i] != 0; i = (i + 1) & (slots_.size() - 1)) {
      if (matches(slots_[i], h, text, texts)) return false;
    }
    slots_[i] = (h >> 32 << 32) | static_cast<uint32_t>(id + 1);
    return true;
  }
  // The id, or -1.
  int32_t find(std::string_view text, std::span<const std::string_view> texts) const {
    if (slots_.empty()) return -1;
    const uint64_t h = hash_bytes(text, seed_);
    for (size_t i = h & (slots_.size() - 1); slots_[i] != 0; i = (i + 1) & (slots_.size() - 1)) {
      if (matches(slots_[i], h, text, texts)) return id_of(slots_[i]);
    }
    return -1;
  }

 private:
  static int32_t id_of(uint64_t slot) { return static_cast<int32_t>(static_cast<uint32_t>(slot) - 1); }
  static bool matches(uint64_t slot, uint64_t h, std::string_view text, std::span<const std::string_view> texts) {
    return slot >> 32 == h >> 32 && texts[static_cast<size_t>(id_of(slot))] == text;
  }

  uint64_t seed_ = 0;
  std::vector<uint64_t> slots_;
};

}  // namespace minfer
