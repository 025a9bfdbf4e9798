// Test harness for single nodes.
#include "backend/testing/run_op.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "backend/ref/ref_kernels.h"
#include "base/f16.h"
#include "graph/graph.h"
#include "graph/passes/pass.h"
#include "tensor/kv_layout.h"

namespace minfer::testing {
namespace {

constexpr std::byte kGuardByte{0xa5};
constexpr std::byte kGarbage{0xcd};

ThreadPool& pool_of(int n_threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  auto& pool = pools[n_threads];
  if (pool == nullptr) {
    auto made = ThreadPool::create(n_threads);
    MINFER_CHECK(made.ok());
    pool = std::move(made).value();
  }
  return *pool;
}

ValueDesc desc_of(const TestTensor* t) {
  if (t == nullptr) return ValueDesc{DType::kF32, {}, true};
  return ValueDesc{t->view().dtype, t->view().shape, false};
}

}  // namespace

TestTensor TestTensor::make(TensorView view, size_t bytes) {
  TestTensor t;
  auto memory = Buffer::allocate(bytes + 2 * kGuard);
  MINFER_CHECK(memory.ok());
  t.memory_ = std::move(memory).value();
  t.bytes_ = bytes;
  t.view_ = view;
  t.view_.data = t.memory_.data() + kGuard;
  std::memset(t.memory_.data(), static_cast<int>(kGuardByte), kGuard);
  std::memset(t.view_.data + bytes, static_cast<int>(kGuardByte), kGuard);
  return t;
}

TestTensor TestTensor::zeros(DType t, Shape shape, int64_t row_pad) {
  TensorView v;
  v.dtype = t;
  v.shape = shape;
  v.row_bytes = dtype_row_bytes(t, shape.last()) + row_pad;
  return make(v, static_cast<size_t>(v.row_bytes * shape.rows()));
}

TestTensor TestTensor::f32(Shape shape, const std::vector<float>& values) {
  TestTensor t = zeros(DType::kF32, shape);
  MINFER_CHECK(static_cast<int64_t>(values.size()) == shape.count());
  std::memcpy(t.view_.data, values.data(), t.bytes_);
  return t;
}

TestTensor TestTensor::i32(Shape shape, const std::vector<int32_t>& values) {
  TestTensor t = zeros(DType::kI32, shape);
  MINFER_CHECK(static_cast<int64_t>(values.size()) == shape.count());
  std::memcpy(t.view_.data, values.data(), t.bytes_);
  return t;
}

TestTensor TestTensor::f64(Shape shape, const std::vector<double>& values) {
  TestTensor t = zeros(DType::kF64, shape);
  MINFER_CHECK(static_cast<int64_t>(values.size()) == shape.count());
  std::memcpy(t.view_.data, values.data(), t.bytes_);
  return t;
}

TestTensor TestTensor::region(bool is_v, DType t, int64_t n_slots, int64_t n_head_kv, int64_t head_dim) {
  TensorView v;
  v.dtype = t;
  v.layout = is_v ? Layout::kKvV : Layout::kKvK;
  v.shape = {n_slots, n_head_kv * head_dim};
  v.row_bytes = dtype_row_bytes(t, n_head_kv * head_dim);
  return make(v, static_cast<size_t>(kv_region_bytes(t, n_slots, n_head_kv, head_dim)));
}

TestTensor::TestTensor(const TestTensor& o) { *this = o; }

TestTensor& TestTensor::operator=(const TestTensor& o) {
  if (this == &o) return *this;
  TestTensor copy;
  if (o.view_.data != nullptr) {
    copy = make(o.view_, o.bytes_);
    std::memcpy(copy.view_.data, o.view_.data, o.bytes_);
  }
  return *this = std::move(copy);
}

std::vector<float> TestTensor::floats() const {
  MINFER_CHECK(view_.dtype == DType::kF32);
  std::vector<float> out;
  for (int64_t r = 0; r < view_.shape.rows(); ++r) out.insert(out.end(), row(r), row(r) + view_.shape.last());
  return out;
}

std::vector<int32_t> TestTensor::ints() const {
  MINFER_CHECK(view_.dtype == DType::kI32);
  std::vector<int32_t> out;
  for (int64_t r = 0; r < view_.shape.rows(); ++r) {
    out.insert(out.end(), view_.row<int32_t>(r), view_.row<int32_t>(r) + view_.shape.last());
  }
  return out;
}

void TestTensor::fill(std::byte value) { std::memset(view_.data, static_cast<int>(value), bytes_); }

bool TestTensor::guards_intact() const {
  for (size_t i = 0; i < kGuard; ++i) {
    if (memory_.data()[i] != kGuardByte || view_.data[bytes_ + i] != kGuardByte) return false;
  }
  return true;
}

Result<std::vector<TestTensor>> run_kernel(const Kernel& kernel, Op op, const Attrs& attrs, const Inputs& in,
                                           RunOptions options) {
  std::vector<ValueDesc> descs;
  for (const TestTensor* t : in) descs.push_back(desc_of(t));
  const std::vector<ValueDesc> inferred = MINFER_TRY(infer_outputs(op, attrs, descs));

  KernelArgs args;
  args.attrs = &attrs;
  args.n_in = static_cast<int>(in.size());
  args.n_out = static_cast<int>(inferred.size());
  bool present[kMaxInputs] = {};
  for (size_t i = 0; i < in.size(); ++i) {
    present[i] = in[i] != nullptr;
    if (present[i]) args.in[i] = in[i]->view();
  }
  std::vector<TestTensor> out;
  for (size_t i = 0; i < inferred.size(); ++i) {
    out.push_back(TestTensor::zeros(inferred[i].dtype, inferred[i].shape, options.row_pad));
    out[i].fill(kGarbage);
    args.out[i] = out[i].view();
  }
  const NodeDesc node{op, attrs, {args.in, in.size()}, {args.out, out.size()}, {present, in.size()}};
  const Refusal refusal = kernel.accepts(node);
  if (!refusal.empty()) return make_error(ErrorCode::kUnsupported, "{}/{}: {}", kernel.name, kernel.isa, refusal);
  if (options.in_place) {
    if (kernel.in_place < 0) return make_error(ErrorCode::kUnsupported, "{}/{}: not in place", kernel.name, kernel.isa);
    args.out[0] = args.in[kernel.in_place];
  }

  TestTensor scratch;
  if (kernel.scratch_bytes != nullptr) {
    args.scratch_bytes = kernel.scratch_bytes(node, options.n_threads);
    scratch = TestTensor::zeros(DType::kI8, {static_cast<int64_t>(args.scratch_bytes)});
    scratch.fill(kGarbage);
    args.scratch = scratch.view().data;
  }
  std::atomic<int64_t> counter{0}, counter2{0};
  args.counter = &counter;
  args.counter2 = &counter2;
  MINFER_TRY(pool_of(options.n_threads).run([&](Worker& w) { kernel.run(args, w); }));

  const auto damaged = [&](const char* what, size_t i) {
    return make_error(ErrorCode::kInternal, "{}/{}: bytes outside {} {} were written", kernel.name, kernel.isa, what,
                      i);
  };
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].guards_intact()) return damaged("output", i);
    if (options.row_pad == 0) continue;
    const TensorView& v = out[i].view();
    for (int64_t r = 0; r < v.shape.rows(); ++r) {
      for (int64_t b = v.row_bytes - options.row_pad; b < v.row_bytes; ++b) {
        if (v.row<std::byte>(r)[b] != kGarbage) return damaged("the rows of output", i);
      }
    }
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] != nullptr && !in[i]->guards_intact()) return damaged("input", i);
  }
  if (scratch.view().data != nullptr && !scratch.guards_intact()) return damaged("scratch", 0);
  if (options.in_place) out[0] = *in[static_cast<size_t>(kernel.in_place)];
  return out;
}

Result<std::vector<TestTensor>> run_kernels(std::span<const Kernel> kernels, Op op, const Attrs& attrs,
                                            const Inputs& in, RunOptions options, std::string* used) {
  std::string refusals;
  for (const Kernel& kernel : kernels) {
    auto out = run_kernel(kernel, op, attrs, in, options);
    if (!out.ok() && out.error().code == ErrorCode::kUnsupported) {
      refusals += "; " + out.error().message;
      continue;
    }
    if (used != nullptr) *used = std::string(kernel.name) + "/" + kernel.isa;
    return out;
  }
  return make_error(ErrorCode::kUnsupported, "{}: no kernel of {} accepts it{}", op_info(op).name, kernels.size(),
                    refusals);
}

Result<std::vector<TestTensor>> run_ref(Op op, const Attrs& attrs, const Inputs& in, RunOptions options) {
  if (!op_info(op).composite) return run_kernels(ref_kernels(op), op, attrs, in, options);
  // A graph of this one node; all inputs are external values.
  Graph graph;
  Node node{op, attrs, {}, {}};
  std::vector<ValueDesc> descs;
  std::map<ValueId, TestTensor*> tensors;
  for (size_t i = 0; i < in.size(); ++i) {
    descs.push_back(desc_of(in[i]));
    if (in[i] == nullptr) {
      node.inputs.push_back(kNoValue);
      continue;
    }
    Value v;
    const bool is_v = static_cast<int>(i) == op_info(op).region_v;
    const bool region = is_v || static_cast<int>(i) == op_info(op).region_k;
    v.name = "in" + std::to_string(i);
    v.kind = region ? ValueKind::kKvRegion : ValueKind::kWeight;
    v.dtype = in[i]->view().dtype;
    v.shape = in[i]->view().shape;
    v.external = region ? (is_v ? 1 : 0) : static_cast<int32_t>(i);
    tensors[static_cast<ValueId>(graph.values.size())] = in[i];
    node.inputs.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.push_back(std::move(v));
  }
  const std::vector<ValueDesc> inferred = MINFER_TRY(infer_outputs(op, attrs, descs));
  for (const ValueDesc& d : inferred) {
    Value v;
    v.name = "out" + std::to_string(node.outputs.size());
    v.dtype = d.dtype;
    v.shape = d.shape;
    v.producer = 0;
    node.outputs.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.push_back(std::move(v));
  }
  graph.outputs = node.outputs;
  graph.nodes.push_back(std::move(node));
  MINFER_TRY(verify(graph));
  MINFER_TRY(decompose(graph, [](const Graph&, const Node& n) { return !op_info(n.op).composite; }));
  MINFER_TRY(verify(graph));

  std::map<ValueId, TestTensor> made;
  for (const Node& n : graph.nodes) {
    Inputs inputs;
    for (ValueId v : n.inputs) {
      inputs.push_back(v == kNoValue ? nullptr : tensors.count(v) != 0 ? tensors[v] : &made[v]);
    }
    auto out = MINFER_TRY(run_kernels(ref_kernels(n.op), n.op, n.attrs, inputs, options));
    for (size_t i = 0; i < out.size(); ++i) made[n.outputs[i]] = std::move(out[i]);
  }
  std::vector<TestTensor> results;
  for (ValueId v : graph.outputs) results.push_back(std::move(made[v]));
  return results;
}

Result<TestTensor> run_packed_matmul(const Kernel& kernel, const TestTensor& x, const TensorView& packed,
                                     int n_threads) {
  TestTensor y = TestTensor::zeros(DType::kF32, {x.view().shape.rows(), packed.shape[0]});
  y.fill(kGarbage);
  const Attrs attrs;
  KernelArgs args;
  args.attrs = &attrs, args.n_in = 2, args.n_out = 1;
  args.in[0] = x.view(), args.in[1] = packed, args.out[0] = y.view();
  const bool present[] = {true, true};
  const NodeDesc node{Op::kMatMul, attrs, {args.in, 2}, {args.out, 1}, present};
  if (const Refusal why = kernel.accepts(node); !why.empty()) return make_error(ErrorCode::kUnsupported, "{}", why);
  args.scratch_bytes = kernel.scratch_bytes(node, n_threads);
  TestTensor scratch = TestTensor::zeros(DType::kI8, {static_cast<int64_t>(args.scratch_bytes)});
  args.scratch = scratch.view().data;
  std::atomic<int64_t> counter{0};
  args.counter = &counter;
  MINFER_TRY(pool_of(n_threads).run([&](Worker& w) { kernel.run(args, w); }));
  if (!y.guards_intact() || !scratch.guards_intact()) {
    return make_error(ErrorCode::kInternal, "{}/{}: bytes outside the output or the scratch were written", kernel.name,
                      kernel.isa);
  }
  return y;
}

std::string first_difference(const TestTensor& got, const TestTensor& want) {
  const TensorView &g = got.view(), &w = want.view();
  if (g.dtype != w.dtype || !(g.shape == w.shape) || g.layout != w.layout) {
    return fmt::format("found {} {}, expected {} {}", dtype_info(g.dtype).name, g.shape.str(), dtype_info(w.dtype).name,
                       w.shape.str());
  }
  if (g.layout != Layout::kPlain) {
    for (size_t i = 0; i < want.bytes().size(); ++i) {
      if (got.bytes()[i] != want.bytes()[i]) {
        return fmt::format("byte {} of the region: found {:#04x}, expected {:#04x}", i,
                           static_cast<int>(got.bytes()[i]), static_cast<int>(want.bytes()[i]));
      }
    }
    return "";
  }
  const bool f32 = g.dtype == DType::kF32;
  const int64_t width = f32 ? g.shape.last() : dtype_row_bytes(g.dtype, g.shape.last());
  for (int64_t r = 0; r < g.shape.rows(); ++r) {
    for (int64_t i = 0; i < width; ++i) {
      if (f32) {
        const float a = g.row<float>(r)[i], b = w.row<float>(r)[i];
        if (std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b))) continue;
        return fmt::format("row {} of {}, column {}: found {} ({:#010x}), expected {} ({:#010x})", r, g.shape.str(), i,
                           a, std::bit_cast<uint32_t>(a), b, std::bit_cast<uint32_t>(b));
      }
      if (g.row<std::byte>(r)[i] != w.row<std::byte>(r)[i])
        return fmt::format("row {} of {}, byte {}", r, g.shape.str(), i);
    }
  }
  return "";
}

std::string first_difference(const std::vector<TestTensor>& got, const std::vector<TestTensor>& want) {
  if (got.size() != want.size()) return fmt::format("{} outputs, expected {}", got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string d = first_difference(got[i], want[i]);
    if (!d.empty()) return fmt::format("output {}: {}", i, d);
  }
  return "";
}

TestTensor Random::normal_f32(Shape shape, float scale) {
  TestTensor t = TestTensor::zeros(DType::kF32, shape);
  for (int64_t i = 0; i < shape.count(); ++i) t.row(0)[i] = normal() * scale;
  return t;
}

TestTensor Random::raw_weight(DType t, Shape shape) {
  TestTensor w = TestTensor::zeros(t, shape);
  for (std::byte& b : w.bytes()) b = static_cast<std::byte>(rng_() & 0xff);
  return w;
}

namespace {

// Where the f16 scales of a block lie, -1 = none. (mxfp4 has an exponent byte instead.)
struct ScaleOffsets {
  int a, b;
};
ScaleOffsets scale_offsets(DType t) {
  switch (t) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: return {0, 2};
    case DType::kQ2_K: return {80, 82};
    case DType::kQ3_K: return {108, -1};
    case DType::kQ6_K: return {208, -1};
    case DType::kMXFP4: return {-1, -1};
    default: return {0, -1};
  }
}

}  // namespace

TestTensor Random::weight(DType t, Shape shape) {
  if (!dtype_info(t).quantized) {
    TestTensor w = TestTensor::zeros(t, shape);
    for (int64_t i = 0; i < shape.count(); ++i) {
      const float x = normal() * 0.1f;
      if (t == DType::kF32) {
        w.view().as<float>()[i] = x;
      } else {
        w.view().as<uint16_t>()[i] = t == DType::kF16 ? f32_to_f16(x) : f32_to_bf16(x);
      }
    }
    return w;
  }
  TestTensor w = raw_weight(t, shape);
  set_scales(&w);
  return w;
}

TestTensor Random::weight_of(DType t, Shape shape, std::byte value) {
  TestTensor w = TestTensor::zeros(t, shape);
  w.fill(value);
  set_scales(&w);
  return w;
}

void Random::set_scales(TestTensor* w) {
  const DType t = w->view().dtype;
  const auto block = static_cast<size_t>(dtype_info(t).block_bytes);
  const ScaleOffsets at = scale_offsets(t);
  for (size_t b = 0; b < w->bytes().size(); b += block) {
    std::byte* p = w->bytes().data() + b;
    for (int offset : {at.a, at.b}) {
      const uint16_t scale = f32_to_f16(normal() * 0.01f);
      if (offset >= 0) std::memcpy(p + offset, &scale, sizeof scale);
    }
    if (t == DType::kMXFP4) p[0] = static_cast<std::byte>(120 + below(6));
  }
}

}  // namespace minfer::testing
