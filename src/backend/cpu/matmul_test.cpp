// Conformance of the packed matmul kernels: every format, instruction set, tile width, row tail and segment tail
// against the reference, bit by bit (a NaN equals any NaN).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backend/cpu/matmul/matmul_ops.h"
#include "backend/cpu/ops/op_lists.h"
#include "backend/ref/ref_kernels.h"
#include "base/f16.h"

namespace minfer::cpu {
namespace {

const DType kTypes[] = {DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                        DType::kQ5_1, DType::kQ8_0,   DType::kQ2_K,   DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                        DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};

std::vector<IsaLevel> isas() {
  std::vector<IsaLevel> out;
  for (const IsaLevel isa :
       {IsaLevel::kScalar, IsaLevel::kAvx2, IsaLevel::kAvxVnni, IsaLevel::kAvx512, IsaLevel::kNeon}) {
    if (isa_supported(isa) && !matmul_op_kernels(Op::kMatMul, isa).empty()) out.push_back(isa);
  }
  return out;
}

ThreadPool& pool(int threads) {
  static std::unique_ptr<ThreadPool> pools[4];
  auto& p = pools[threads];
  if (!p) p = ThreadPool::create(threads).value();
  return *p;
}

// A tensor that owns its bytes, with guard bytes after the end.
struct Tensor {
  static constexpr size_t kGuard = 64;
  std::vector<std::byte> bytes;
  TensorView view;
  Tensor() = default;
  Tensor(DType t, Shape shape) {
    view.dtype = t;
    view.shape = shape;
    view.row_bytes = dtype_row_bytes(t, shape.last());
    bytes.assign(static_cast<size_t>(view.row_bytes * shape.rows()) + kGuard, std::byte{0x5a});
    view.data = bytes.data();
  }
  float* f32() { return view.as<float>(); }
  bool guarded() const {
    for (size_t i = bytes.size() - kGuard; i < bytes.size(); ++i) {
      if (bytes[i] != std::byte{0x5a}) return false;
    }
    return true;
  }
};

// Offsets of a block's f16 fields, ended by -1.
std::vector<int> f16_fields(DType t) {
  switch (t) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: return {0, 2};
    case DType::kQ2_K: return {80, 82};
    case DType::kQ3_K: return {108};
    case DType::kQ6_K: return {208};
    case DType::kF32:
    case DType::kBF16:
    case DType::kMXFP4: return {};
    default: return {0};
  }
}

// Random bytes, so that every code appears; scales mostly sane, now and then an infinity, a NaN or a denormal.
void fill_weights(Tensor& w, std::mt19937& rng, bool wild) {
  const DTypeInfo& info = dtype_info(w.view.dtype);
  std::uniform_int_distribution<int> byte(0, 255);
  std::normal_distribution<float> normal;
  const size_t size = static_cast<size_t>(w.view.row_bytes * w.view.shape.rows());
  for (size_t i = 0; i < size; ++i) w.bytes[i] = static_cast<std::byte>(byte(rng));
  const float special[] = {0.0f, -0.0f, 6e-8f, 65504.0f, std::numeric_limits<float>::infinity(), std::nanf("")};
  const auto value = [&] { return wild && rng() % 200 == 0 ? special[rng() % 6] : normal(rng); };
  const size_t step = static_cast<size_t>(info.block_bytes);
  const auto fields = f16_fields(w.view.dtype);
  for (size_t i = 0; i < size; i += step) {
    if (w.view.dtype == DType::kF32) {
      const float v = value();
      std::memcpy(&w.bytes[i], &v, 4);
    } else if (w.view.dtype == DType::kBF16) {
      const uint16_t v = f32_to_bf16(value());
      std::memcpy(&w.bytes[i], &v, 2);
    } else if (w.view.dtype == DType::kMXFP4) {
      w.bytes[i] = static_cast<std::byte>(wild && rng() % 50 == 0 ? rng() % 3 : 100 + rng() % 50);
    }
    for (const int f : fields) {
      const uint16_t v = f32_to_f16(value());
      std::memcpy(&w.bytes[i + static_cast<size_t>(f)], &v, 2);
    }
  }
}

void fill_activations(Tensor& x, std::mt19937& rng, bool wild) {
  std::normal_distribution<float> normal;
  const float special[] = {0.0f, -0.0f, 1e-42f, 3e38f, std::numeric_limits<float>::infinity(), std::nanf(""), 1e-31f};
  for (int64_t r = 0; r < x.view.shape.rows(); ++r) {
    float* row = x.view.row<float>(r);
    const bool quiet = wild && r % 3 == 2;  // a row of tiny values, with zero blocks
    for (int64_t i = 0; i < x.view.shape.last(); ++i) {
      row[i] = quiet ? normal(rng) * 1e-31f : normal(rng);
      if (wild && r % 3 == 0 && rng() % 300 == 0) row[i] = special[rng() % 7];
      if (quiet && i / 32 % 4 == 1) row[i] = i % 2 ? 0.0f : -0.0f;
    }
  }
}

Tensor take_rows(const Tensor& x, int64_t n) {
  Tensor out(x.view.dtype, {n, x.view.shape.last()});
  std::memcpy(out.bytes.data(), x.bytes.data(), static_cast<size_t>(n * x.view.row_bytes));
  return out;
}

PackedWeight pack(const Tensor& w, int threads = 1) {
  auto packed = pack_weight(w.view, pool(threads));
  EXPECT_TRUE(packed.ok()) << packed.error().message;
  return std::move(*packed.value());
}

Status run_kernel(const Kernel& kernel, Op op, const Attrs& attrs, const std::vector<TensorView>& in,
                  const std::vector<TensorView>& out, int threads) {
  KernelArgs args;
  args.attrs = &attrs;
  args.n_in = static_cast<int>(in.size());
  args.n_out = static_cast<int>(out.size());
  bool present[kMaxInputs] = {};
  for (size_t i = 0; i < in.size(); ++i) {
    args.in[i] = in[i];
    present[i] = !in[i].absent();
  }
  for (size_t i = 0; i < out.size(); ++i) args.out[i] = out[i];
  const NodeDesc desc{op, attrs, in, out, std::span(present, in.size())};
  EXPECT_EQ(kernel.accepts(desc), "");
  const size_t bytes = kernel.scratch_bytes ? kernel.scratch_bytes(desc, threads) : 0;
  Buffer scratch = Buffer::allocate(bytes + 64).value();
  std::memset(scratch.data(), 0xff, bytes + 64);  // contents are undefined: NaN floats, codes of -1
  std::memset(scratch.data() + bytes, 0x5a, 64);
  std::atomic<int64_t> counter{0}, counter2{0};
  args.scratch = scratch.data();
  args.scratch_bytes = bytes;
  args.counter = &counter;
  args.counter2 = &counter2;
  Status status = pool(threads).run([&](Worker& worker) { kernel.run(args, worker); });
  for (size_t i = bytes; i < bytes + 64; ++i) EXPECT_EQ(scratch.data()[i], std::byte{0x5a}) << "past the scratch";
  return status;
}

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// Compares the first rows of two f32 tensors; says where they first differ.
::testing::AssertionResult equal_rows(const Tensor& got, const Tensor& want, int64_t n) {
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t i = 0; i < got.view.shape.last(); ++i) {
      const float a = got.view.row<float>(r)[i], b = want.view.row<float>(r)[i];
      if (!same(a, b)) {
        return ::testing::AssertionFailure() << "token " << r << " row " << i << ": found " << a << ", expected " << b;
      }
    }
  }
  if (!got.guarded()) return ::testing::AssertionFailure() << "wrote past the output";
  return ::testing::AssertionSuccess();
}

Tensor reference(const Tensor& x, const Tensor& w) {
  Tensor y(DType::kF32, {x.view.shape.rows(), w.view.shape[0]});
  const Attrs attrs;
  EXPECT_TRUE(run_kernel(ref_kernels(Op::kMatMul)[0], Op::kMatMul, attrs, {x.view, w.view}, {y.view}, 2).ok());
  return y;
}

std::string label(DType t, IsaLevel isa, int64_t n, int64_t m, int64_t k, int threads) {
  return std::string(dtype_info(t).name) + " " + isa_name(isa) + " n=" + std::to_string(n) + " m=" + std::to_string(m) +
         " k=" + std::to_string(k) + " threads=" + std::to_string(threads);
}

class MatMul : public ::testing::TestWithParam<DType> {};

TEST_P(MatMul, EveryTileWidthRowTailAndSegment) {
  const DType t = GetParam();
  const int64_t block = dtype_info(t).block_size;
  std::vector<int64_t> ks;
  if (block == 1) ks = {1, 5, 33, 1024, 1027, 2050};
  if (block == 32) ks = {32, 96, 1024, 1056, 2080};
  if (block == 256) ks = {256, 768, 1024, 1280, 2304};
  const int64_t ms[] = {1, 15, 16, 17, 65, 130};
  const int64_t ns[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 33};
  std::mt19937 rng(7);
  int turn = 0;
  for (const int64_t k : ks) {
    for (const int64_t m : ms) {
      if (turn++ % 2 != 0 && k != 1056 && k != 1280 && k != 1027) continue;  // half the table, all of it for one tail
      const bool wild = turn % 3 == 0;
      Tensor w(t, {m, k}), x(DType::kF32, {33, k});
      fill_weights(w, rng, wild);
      fill_activations(x, rng, wild);
      const Tensor want = reference(x, w);
      const PackedWeight packed = pack(w, 1 + turn % 2);
      for (const IsaLevel isa : isas()) {
        for (const int64_t n : ns) {
          if (isa == IsaLevel::kScalar && n != 1 && n != 5 && n != 33) continue;
          const int threads = 1 + turn++ % 3;
          const Tensor xn = take_rows(x, n);
          Tensor y(DType::kF32, {n, m});
          const Attrs attrs;
          ASSERT_TRUE(run_kernel(matmul_op_kernels(Op::kMatMul, isa)[0], Op::kMatMul, attrs, {xn.view, packed.view},
                                 {y.view}, threads)
                          .ok());
          ASSERT_TRUE(equal_rows(y, want, n)) << label(t, isa, n, m, k, threads);
        }
      }
    }
  }
}

// Several token blocks and several tiles in each.
TEST_P(MatMul, ManyTokens) {
  const DType t = GetParam();
  const int64_t k = dtype_info(t).block_size == 1 ? 70 : dtype_info(t).block_size, m = 50, n = 801;
  std::mt19937 rng(8);
  Tensor w(t, {m, k}), x(DType::kF32, {n, k});
  fill_weights(w, rng, false);
  fill_activations(x, rng, true);
  const Tensor want = reference(x, w);
  const PackedWeight packed = pack(w);
  for (const IsaLevel isa : isas()) {
    for (int threads = 1; threads <= 3; ++threads) {
      Tensor y(DType::kF32, {n, m});
      const Attrs attrs;
      ASSERT_TRUE(run_kernel(matmul_op_kernels(Op::kMatMul, isa)[0], Op::kMatMul, attrs, {x.view, packed.view},
                             {y.view}, threads)
                      .ok());
      ASSERT_TRUE(equal_rows(y, want, n)) << label(t, isa, n, m, k, threads);
    }
  }
}

TEST_P(MatMul, AddAndGroup) {
  const DType t = GetParam();
  const int64_t k = 1280;
  std::mt19937 rng(9);
  // The group mixes the type with others, so that both activation forms are needed.
  Tensor w0(t, {40, k}), w1(DType::kF16, {17, k}), w2(DType::kQ8_0, {33, k});
  Tensor b0(DType::kF32, {40}), b2(DType::kF32, {33}), residual(DType::kF32, {21, 40});
  for (Tensor* w : {&w0, &w1, &w2}) fill_weights(*w, rng, false);
  for (Tensor* b : {&b0, &b2, &residual}) fill_activations(*b, rng, false);
  Tensor x(DType::kF32, {21, k});
  fill_activations(x, rng, false);
  const Tensor y0 = reference(x, w0), y1 = reference(x, w1), y2 = reference(x, w2);
  const PackedWeight p0 = pack(w0), p1 = pack(w1), p2 = pack(w2);
  const TensorView absent;
  for (const IsaLevel isa : isas()) {
    for (const int64_t n : {1, 4, 21}) {
      const int threads = n == 4 ? 2 : 3;
      const Tensor xn = take_rows(x, n), rn = take_rows(residual, n);
      for (int mode = 0; mode < 4; ++mode) {  // bit 0: bias, bit 1: residual
        Tensor want(DType::kF32, {n, 40}), got(DType::kF32, {n, 40});
        for (int64_t r = 0; r < n; ++r) {
          for (int64_t i = 0; i < 40; ++i) {
            float v = y0.view.row<float>(r)[i];
            if (mode & 1) v = v + b0.f32()[i];
            if (mode & 2) v = v + rn.view.row<float>(r)[i];
            want.view.row<float>(r)[i] = v;
          }
        }
        const Attrs attrs;
        ASSERT_TRUE(run_kernel(matmul_op_kernels(Op::kMatMulAdd, isa)[0], Op::kMatMulAdd, attrs,
                               {xn.view, p0.view, mode & 1 ? b0.view : absent, mode & 2 ? rn.view : absent}, {got.view},
                               threads)
                        .ok());
        ASSERT_TRUE(equal_rows(got, want, n)) << label(t, isa, n, 40, k, threads) << " mode=" << mode;
      }
      Attrs attrs;
      attrs.n_group = 3;
      Tensor g0(DType::kF32, {n, 40}), g1(DType::kF32, {n, 17}), g2(DType::kF32, {n, 33});
      ASSERT_TRUE(run_kernel(matmul_op_kernels(Op::kMatMulGroup, isa)[0], Op::kMatMulGroup, attrs,
                             {xn.view, p0.view, p1.view, p2.view, absent, absent, b2.view}, {g0.view, g1.view, g2.view},
                             threads)
                      .ok());
      Tensor want2(DType::kF32, {n, 33});
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t i = 0; i < 33; ++i) want2.view.row<float>(r)[i] = y2.view.row<float>(r)[i] + b2.f32()[i];
      }
      ASSERT_TRUE(equal_rows(g0, y0, n)) << label(t, isa, n, 40, k, threads);
      ASSERT_TRUE(equal_rows(g1, y1, n)) << label(t, isa, n, 17, k, threads);
      ASSERT_TRUE(equal_rows(g2, want2, n)) << label(t, isa, n, 33, k, threads);
    }
  }
}

// The bits of rms_norm_mul and matmul_group one after the other, for one token and for many, whatever the split.
TEST_P(MatMul, NormedGroup) {
  const DType t = GetParam();
  std::mt19937 rng(11);
  for (const int64_t k : {int64_t{256}, int64_t{1280}, int64_t{9216}}) {
    Tensor w0(t, {40, k}), w1(DType::kF16, {17, k}), b1(DType::kF32, {17}), gains(DType::kF32, {k});
    Tensor x(DType::kF32, {21, k});
    for (Tensor* w : {&w0, &w1}) fill_weights(*w, rng, false);
    for (Tensor* a : {&x, &b1, &gains}) fill_activations(*a, rng, false);
    const PackedWeight p0 = pack(w0), p1 = pack(w1);
    const TensorView absent;
    Attrs norm, group;
    norm.eps = group.eps = 1e-5f;
    group.n_group = 2;
    for (const IsaLevel isa : isas()) {
      for (const int64_t n : {1, 3, 21}) {
        const int threads = n == 3 ? 2 : 3;
        const Tensor xn = take_rows(x, n);
        Tensor y(DType::kF32, {n, k}), want0(DType::kF32, {n, 40}), want1(DType::kF32, {n, 17}),
            got0(DType::kF32, {n, 40}), got1(DType::kF32, {n, 17});
        ASSERT_TRUE(run_kernel(row_kernels(Op::kRmsNormMul, isa)[0], Op::kRmsNormMul, norm, {xn.view, gains.view},
                               {y.view}, threads)
                        .ok());
        ASSERT_TRUE(run_kernel(matmul_op_kernels(Op::kMatMulGroup, isa)[0], Op::kMatMulGroup, group,
                               {y.view, p0.view, p1.view, absent, b1.view}, {want0.view, want1.view}, threads)
                        .ok());
        ASSERT_TRUE(run_kernel(matmul_op_kernels(Op::kNormMatMulGroup, isa)[0], Op::kNormMatMulGroup, group,
                               {xn.view, gains.view, p0.view, p1.view, absent, b1.view}, {got0.view, got1.view},
                               threads)
                        .ok());
        ASSERT_TRUE(equal_rows(got0, want0, n)) << label(t, isa, n, 40, k, threads);
        ASSERT_TRUE(equal_rows(got1, want1, n)) << label(t, isa, n, 17, k, threads);
      }
    }
  }
}

TEST_P(MatMul, Experts) {
  const DType t = GetParam();
  const int64_t k = dtype_info(t).block_size == 1 ? 1030 : 1280, m = 35, n_expert = 5, top_k = 2;
  std::mt19937 rng(10);
  Tensor w(t, {n_expert, m, k});
  fill_weights(w, rng, false);
  const PackedWeight packed = pack(w, 2);
  for (const int64_t n : {1, 3, 40}) {
    for (const bool per_slot : {false, true}) {
      Tensor x(DType::kF32, per_slot ? Shape{n, top_k, k} : Shape{n, k});
      Tensor ids(DType::kI32, {n, top_k}), want(DType::kF32, {n, top_k, m});
      fill_activations(x, rng, false);
      for (int64_t i = 0; i < n * top_k; ++i) {  // expert 3 gets none, expert 0 most
        const int32_t e = static_cast<int32_t>(rng() % 4);
        ids.view.as<int32_t>()[i] = rng() % 2 ? 0 : e == 3 ? 4 : e;
      }
      Attrs attrs;
      attrs.top_k = static_cast<int32_t>(top_k);
      const std::vector<TensorView> plain = {x.view, w.view, ids.view}, in = {x.view, packed.view, ids.view};
      ASSERT_TRUE(run_kernel(ref_kernels(Op::kMoeMatMul)[0], Op::kMoeMatMul, attrs, plain, {want.view}, 2).ok());
      for (const IsaLevel isa : isas()) {
        for (int threads = 1; threads <= 3; threads += 2) {
          Tensor y(DType::kF32, {n, top_k, m});
          ASSERT_TRUE(
              run_kernel(matmul_op_kernels(Op::kMoeMatMul, isa)[0], Op::kMoeMatMul, attrs, in, {y.view}, threads).ok());
          ASSERT_TRUE(equal_rows(y, want, n * top_k)) << label(t, isa, n, m, k, threads) << " per_slot=" << per_slot;
        }
      }
      ids.view.as<int32_t>()[n * top_k - 1] = 5;
      Tensor y(DType::kF32, {n, top_k, m});
      const Status status =
          run_kernel(matmul_op_kernels(Op::kMoeMatMul, isas()[0])[0], Op::kMoeMatMul, attrs, in, {y.view}, 2);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::kOutOfRange);
    }
  }
}

// Memory that ends at a page no one may touch.
class Fenced {
 public:
  explicit Fenced(size_t bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t whole = (bytes + page - 1) / page * page;
    mapped_ = whole + page;
    base_ = static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_EQ(mprotect(base_ + whole, page, PROT_NONE), 0);
    data_ = base_ + (whole - bytes);
  }
  Fenced(const void* from, size_t bytes) : Fenced(bytes) { std::memcpy(data_, from, bytes); }
  ~Fenced() { munmap(base_, mapped_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte *base_, *data_;
  size_t mapped_;
};

// Every input, the output and the scratch end at a fence: a read or write past one of them crashes.
TEST_P(MatMul, StaysInsideItsBuffers) {
  const DType t = GetParam();
  const int64_t block = dtype_info(t).block_size, m = 33;
  std::mt19937 rng(11);
  const int64_t ks[] = {block == 1 ? 7 : block, block == 1 ? 1025 : 1280};
  for (const int64_t k : ks) {
    Tensor w(t, {m, k});
    fill_weights(w, rng, false);
    Fenced source(w.bytes.data(), w.bytes.size() - Tensor::kGuard);
    TensorView plain = w.view;
    plain.data = source.data();
    PackedWeight packed = std::move(*pack_weight(plain, pool(1)).value());
    Fenced weights(packed.storage.data(), packed.storage.bytes());
    packed.view.data = weights.data();
    for (const int64_t n : {1, 2, 3, 6, 8, 11, 16, 17}) {
      Tensor x(DType::kF32, {n, k}), y(DType::kF32, {n, m});
      fill_activations(x, rng, false);
      Fenced x_fenced(x.bytes.data(), x.bytes.size() - Tensor::kGuard), y_fenced(y.bytes.size() - Tensor::kGuard);
      KernelArgs args;
      const Attrs attrs;
      args.attrs = &attrs;
      args.n_in = 2;
      args.n_out = 1;
      args.in[0] = x.view;
      args.in[1] = packed.view;
      args.out[0] = y.view;
      args.in[0].data = x_fenced.data();
      args.out[0].data = y_fenced.data();
      const bool present[] = {true, true};
      for (const IsaLevel isa : isas()) {
        const Kernel& kernel = matmul_op_kernels(Op::kMatMul, isa)[0];
        const NodeDesc desc{Op::kMatMul, attrs, std::span(args.in, 2), std::span(args.out, 1), present};
        args.scratch_bytes = (kernel.scratch_bytes(desc, 1) + 63) / 64 * 64;
        Fenced scratch(args.scratch_bytes);
        args.scratch = scratch.data();
        std::atomic<int64_t> counter{0};
        args.counter = &counter;
        ASSERT_TRUE(pool(1).run([&](Worker& worker) { kernel.run(args, worker); }).ok());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, MatMul, ::testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(dtype_info(info.param).name); });

TEST(PackWeight, RefusesWhatItCannotPack) {
  Tensor ints(DType::kI32, {4, 32});
  EXPECT_EQ(pack_weight(ints.view, pool(1)).error().code, ErrorCode::kUnsupported);
  Tensor row(DType::kF32, {32});
  EXPECT_EQ(pack_weight(row.view, pool(1)).error().code, ErrorCode::kInvalidArgument);
  Tensor w(DType::kF32, {4, 32});
  const PackedWeight packed = pack(w);
  EXPECT_EQ(pack_weight(packed.view, pool(1)).error().code, ErrorCode::kInvalidArgument);
}

TEST(PackWeight, TakesTheBytesOfItsRows) {
  for (const DType t : kTypes) {
    const Tensor w(t, {32, 512});
    EXPECT_EQ(pack(w).storage.bytes(), static_cast<size_t>(32 * dtype_row_bytes(t, 512))) << dtype_info(t).name;
  }
}

TEST(MatMulKernels, RefusePlainWeights) {
  const Tensor x(DType::kF32, {1, 32}), w(DType::kF32, {4, 32}), y(DType::kF32, {1, 4});
  const Attrs attrs;
  const TensorView in[] = {x.view, w.view}, out[] = {y.view};
  const bool present[] = {true, true};
  for (const IsaLevel isa : isas()) {
    EXPECT_NE(matmul_op_kernels(Op::kMatMul, isa)[0].accepts({Op::kMatMul, attrs, in, out, present}), "");
  }
}

TEST(MatMulKernels, EmptyBatch) {
  const Tensor w(DType::kQ8_0, {4, 32});
  Tensor x(DType::kF32, {0, 32}), y(DType::kF32, {0, 4});
  const PackedWeight packed = pack(w);
  const Attrs attrs;
  for (const IsaLevel isa : isas()) {
    EXPECT_TRUE(
        run_kernel(matmul_op_kernels(Op::kMatMul, isa)[0], Op::kMatMul, attrs, {x.view, packed.view}, {y.view}, 2)
            .ok());
    EXPECT_TRUE(y.guarded());
  }
}

}  // namespace
}  // namespace minfer::cpu
