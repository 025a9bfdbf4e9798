// Shape of a tensor: up to four dimensions, outermost first, the last one contiguous (like NumPy).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace minfer {

struct Shape {
  static constexpr int kMaxRank = 4;
  int rank = 0;
  std::array<int64_t, kMaxRank> dims{};

  Shape() = default;
  Shape(std::initializer_list<int64_t> d) {  // Requires: at most four dimensions
    for (int64_t x : d) dims[static_cast<size_t>(rank++)] = x;
  }

  int64_t operator[](int i) const { return dims[static_cast<size_t>(i)]; }
  int64_t last() const { return rank == 0 ? 1 : dims[static_cast<size_t>(rank - 1)]; }
  // Product of all dimensions but the last: the number of rows.
  int64_t rows() const {
    int64_t n = 1;
    for (int i = 0; i + 1 < rank; ++i) n *= dims[static_cast<size_t>(i)];
    return n;
  }
  int64_t count() const { return rows() * last(); }
  bool operator==(const Shape& o) const { return rank == o.rank && dims == o.dims; }
  std::string str() const;  // "[512, 1024]"
};

}  // namespace minfer
