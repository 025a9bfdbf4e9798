// The version of the numbers: raised whenever a bit of any operation's result, or the arrangement of K and V in memory
// (tensor/kv_layout.h), changes. What is kept across runs is kept under it: K and V from another version are refused.
#pragma once

#include <cstdint>

namespace minfer {

inline constexpr int32_t kNumericsVersion = 1;  // docs/numerics.md as it stands

}  // namespace minfer
