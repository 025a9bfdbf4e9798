// Test harness: runs one node with given inputs, by one kernel, by a list of kernels or by its reference definition.
// Every tensor has guard bytes around it that are checked after a run; outputs start as garbage.
//
//   auto x = TestTensor::f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
//   auto y = run_ref(Op::kRmsNorm, attrs, {&x}, {.n_threads = 2});
//   ASSERT_TRUE(y.ok()) << y.error().message;
//   EXPECT_EQ(first_difference((*y)[0], expected), "");
#pragma once

#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/kernel.h"
#include "tensor/buffer.h"

namespace minfer::testing {

// A tensor that owns its bytes. Copies are deep.
class TestTensor {
 public:
  static constexpr size_t kGuard = 64;

  TestTensor() = default;
  // All bytes zero. row_pad: extra bytes between the rows of a plain tensor.
  static TestTensor zeros(DType t, Shape shape, int64_t row_pad = 0);
  static TestTensor f32(Shape shape, const std::vector<float>& values);
  static TestTensor i32(Shape shape, const std::vector<int32_t>& values);
  static TestTensor f64(Shape shape, const std::vector<double>& values);
  // A K or V region [n_slots, n_head_kv * head_dim] in the layout of tensor/kv_layout.h, zeroed.
  static TestTensor region(bool is_v, DType t, int64_t n_slots, int64_t n_head_kv, int64_t head_dim);

  TestTensor(const TestTensor& o);
  TestTensor& operator=(const TestTensor& o);
  TestTensor(TestTensor&&) = default;
  TestTensor& operator=(TestTensor&&) = default;

  const TensorView& view() const { return view_; }
  std::span<std::byte> bytes() const { return {view_.data, bytes_}; }
  std::vector<float> floats() const;  // f32 tensors, rows in order without padding
  std::vector<int32_t> ints() const;  // i32 tensors
  float* row(int64_t r) const { return view_.row<float>(r); }
  void fill(std::byte value);
  bool guards_intact() const;

 private:
  static TestTensor make(TensorView view, size_t bytes);
  Buffer memory_;
  TensorView view_;
  size_t bytes_ = 0;
};

struct RunOptions {
  int n_threads = 1;
  int64_t row_pad = 0;    // bytes between the rows of the outputs
  bool in_place = false;  // output 0 is the input the kernel names in Kernel::in_place (which is then overwritten)
};

using Inputs = std::vector<TestTensor*>;  // nullptr = absent; regions are written to by stores

// Infers the outputs, asks the kernel whether it accepts, and runs it on n_threads.
// Errors: the shape rule's, a refusal (kUnsupported), what the kernel reports, a damaged guard (kInternal).
Result<std::vector<TestTensor>> run_kernel(const Kernel& kernel, Op op, const Attrs& attrs, const Inputs& in,
                                           RunOptions options = {});

// The first kernel of the list that accepts the node; `used` gets its name.
Result<std::vector<TestTensor>> run_kernels(std::span<const Kernel> kernels, Op op, const Attrs& attrs,
                                            const Inputs& in, RunOptions options = {}, std::string* used = nullptr);

// What the op means: the reference kernel of a primitive, the decomposed graph on reference kernels of a composite.
Result<std::vector<TestTensor>> run_ref(Op op, const Attrs& attrs, const Inputs& in, RunOptions options = {});

// y of a matmul kernel over packed weights (Op::kMatMul): x [n, k], packed [m, k].
Result<TestTensor> run_packed_matmul(const Kernel& kernel, const TestTensor& x, const TensorView& packed,
                                     int n_threads);

// Empty when all values have the same bits (any NaN equals any NaN in f32 tensors); otherwise where the first
// difference is.
std::string first_difference(const TestTensor& got, const TestTensor& want);
std::string first_difference(const std::vector<TestTensor>& got, const std::vector<TestTensor>& want);

// Deterministic random fills.
class Random {
 public:
  explicit Random(uint64_t seed) : rng_(seed) {}
  int32_t below(int32_t n) { return static_cast<int32_t>(rng_() % static_cast<uint64_t>(n)); }
  float normal() { return normal_(rng_); }
  TestTensor normal_f32(Shape shape, float scale = 1.0f);
  // Weights of any storage type. Block formats: random codes and sub-scales under moderate f16 scales (no NaN, no
  // infinity); floats: normal values.
  TestTensor weight(DType t, Shape shape);
  // Block formats: every byte `value` but the f16 scales, which are moderate: the extreme codes and sub-scales.
  TestTensor weight_of(DType t, Shape shape, std::byte value);
  // Weights whose every byte is random: infinite and NaN scales, denormals, all codes.
  TestTensor raw_weight(DType t, Shape shape);

 private:
  void set_scales(TestTensor* w);
  std::mt19937_64 rng_;
  std::normal_distribution<float> normal_{0.0f, 1.0f};
};

}  // namespace minfer::testing
