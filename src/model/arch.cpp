// The registry of families.
#include "model/arch/archs.h"

namespace minfer {

std::span<const Arch> all_archs() {
  static const std::vector<Arch> list = {
#define MINFER_ARCH(name) archs::name(),
#include "model/arch_list.inc"
#undef MINFER_ARCH
  };
  return list;
}

Result<const Arch*> find_arch(const std::string& name) {
  std::string known;
  for (const Arch& a : all_archs()) {
    if (name == a.name) return &a;
    known += (known.empty() ? "" : ", ") + std::string(a.name);
  }
  return make_error(ErrorCode::kUnsupported, "[model] architecture '{}' is not supported; known: {}", name, known);
}

}  // namespace minfer
