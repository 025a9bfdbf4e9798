// Text form of shapes.
#include "tensor/shape.h"

namespace minfer {

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank; ++i) {
    if (i) s += ", ";
    s += std::to_string((*this)[i]);
  }
  return s + "]";
}

}  // namespace minfer
