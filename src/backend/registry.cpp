// Backends by name.
#include <fmt/format.h>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/select.h"
#include "backend/ref/ref_kernels.h"
#include "base/cpu_info.h"
#include "base/error.h"

namespace minfer {

namespace {

class RefBackend final : public Backend {
 public:
  const char* name() const override { return "ref"; }
  const char* isa() const override { return "ref"; }
  std::span<const Kernel> kernels(Op op) const override { return ref_kernels(op); }
  Result<std::optional<PackedWeight>> pack_weight(const TensorView&, ThreadPool&) const override {
    return std::optional<PackedWeight>();
  }
};

}  // namespace

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (IsaLevel isa : cpu::usable_isas()) names.emplace_back(isa_name(isa));
  return names;
}

Result<std::unique_ptr<Backend>> make_backend(const BackendOptions& options) {
  if (options.device == "ref") {
    if (!options.isa.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[backend] device 'ref' has no instruction sets to choose from, got '{}'", options.isa);
    }
    return std::unique_ptr<Backend>(std::make_unique<RefBackend>());
  }
  if (options.device != "cpu") {
    return make_error(ErrorCode::kInvalidArgument, "[backend] unknown device '{}'; there are: cpu, ref",
                      options.device);
  }
  const std::vector<IsaLevel> usable = cpu::usable_isas();
  if (options.isa.empty()) return cpu::make_cpu_backend(usable.front());
  const std::string here = fmt::format("{}", fmt::join(available_isas(), ", "));
  const std::optional<IsaLevel> wanted = isa_from_name(options.isa);
  if (!wanted) {
    return make_error(ErrorCode::kInvalidArgument, "[backend] unknown instruction set '{}'; there are: {}", options.isa,
                      here);
  }
  for (IsaLevel isa : usable) {
    if (isa == *wanted) return cpu::make_cpu_backend(isa);
  }
  return make_error(ErrorCode::kUnsupported, "[backend] this processor or build cannot run '{}'; it can run: {}",
                    options.isa, here);
}

}  // namespace minfer
