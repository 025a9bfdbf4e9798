#include "backend/testing/conformance.h"

#include <limits>

#include "backend/backend.h"

namespace minfer::testing {

namespace {

Inputs pointers(std::vector<TestTensor>& copies, const Inputs& in) {
  Inputs out;
  for (size_t i = 0; i < in.size(); ++i) {
    copies[i] = in[i] != nullptr ? *in[i] : TestTensor();
    out.push_back(in[i] != nullptr ? &copies[i] : nullptr);
  }
  return out;
}

std::string compare_regions(const std::vector<TestTensor>& got, const std::vector<TestTensor>& want) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].view().data == nullptr || got[i].view().layout == Layout::kPlain) continue;
    if (std::string d = first_difference(got[i], want[i]); !d.empty())
      return "region of input " + std::to_string(i) + ": " + d;
  }
  return {};
}

}  // namespace

std::string check_conformance(Op op, const Attrs& attrs, const Inputs& in, const ConformanceOptions& options) {
  std::vector<TestTensor> want_in(in.size()), got_in(in.size());
  const auto want = run_ref(op, attrs, pointers(want_in, in));
  for (const std::string& isa : available_isas()) {
    auto backend = make_backend({"cpu", isa});
    if (!backend.ok()) return backend.error().message;
    const auto kernels = (*backend)->kernels(op);
    bool found = false;
    for (const Kernel& kernel : kernels) {
      if (std::string(kernel.isa) == "ref") break;
      bool refused = false;
      for (int threads : options.threads) {
        for (bool in_place : {false, true}) {
          if (in_place &&
              (!options.in_place || kernel.in_place < 0 || in[static_cast<size_t>(kernel.in_place)] == nullptr))
            continue;
          const std::string where = std::string(kernel.name) + "/" + kernel.isa + " at " + std::to_string(threads) +
                                    " threads" + (in_place ? " in place: " : ": ");
          const auto got = run_kernel(kernel, op, attrs, pointers(got_in, in),
                                      {.n_threads = threads, .row_pad = in_place ? 0 : 64, .in_place = in_place});
          if (!got.ok() && got.error().code == ErrorCode::kUnsupported) {
            refused = true;
            break;
          }
          if (!want.ok()) {
            if (got.ok()) return where + "ran, but the definition fails: " + want.error().message;
            if (got.error().code != want.error().code)
              return where + got.error().message + "; the definition: " + want.error().message;
            continue;
          }
          if (!got.ok()) return where + got.error().message;
          if (std::string d = first_difference(*got, *want); !d.empty()) return where + d;
          if (std::string d = compare_regions(got_in, want_in); !d.empty()) return where + d;
        }
        if (refused) break;
      }
      found = found || !refused;
      if (found && !options.all_kernels) break;
    }
    if (!found) return "no kernel of " + isa + " accepts the node";
  }
  return {};
}

TestTensor odd_f32(Random& random, Shape shape) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float odd[] = {
      0.0f,     -0.0f,     1e-40f,    -1e-45f,   kInf,   -kInf,    std::numeric_limits<float>::quiet_NaN(),
      3e38f,    -3e38f,    88.72283f, 88.7229f,  -87.4f, -103.97f, -103.98f,
      0x1p-12f, -0x1p-13f, 0x1p-100f, 0x1p-101f, 1e19f,  65520.0f};
  TestTensor t = random.normal_f32(shape, 3.0f);
  for (int64_t i = 0; i < shape.count(); ++i) {
    if (random.below(3) == 0) t.row(0)[i] = odd[random.below(static_cast<int32_t>(std::size(odd)))];
  }
  return t;
}

}  // namespace minfer::testing
