// minfer quantize IN OUT TYPE: the same model with all matrices in another type, written piece by piece.
// Errors:  a faulty argument (exit 2) is found before the first byte is written; after any failure or Ctrl-C there is
// no
//          OUT, and an earlier OUT is as it was.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/thread_pool.h"
#include "common.h"
#include "gguf/writer.h"
#include "options.h"
#include "quant/format.h"
#include "quant/quantize.h"

namespace minfer::cli {
namespace fs = std::filesystem;
namespace {

struct QuantizeFlags {
  std::string in, out, type, fallback;
  int threads = 0;
  bool force = false;
};

// Values converted at once: some 4 MB as f32, and a second of work at most for the slowest encoder on one thread, which
// is how long Ctrl-C may take.
constexpr int64_t kChunkValues = int64_t{1} << 20;

// general.file_type of a file whose matrices all have one type, as llama.cpp numbers it ("mostly Q4_K - small").
uint32_t file_type(DType t) {
  switch (t) {
    case DType::kF32: return 0;
    case DType::kF16: return 1;
    case DType::kQ4_0: return 2;
    case DType::kQ4_1: return 3;
    case DType::kQ8_0: return 7;
    case DType::kQ5_0: return 8;
    case DType::kQ5_1: return 9;
    case DType::kQ2_K: return 10;
    case DType::kQ3_K: return 11;
    case DType::kQ4_K: return 14;
    case DType::kQ5_K: return 16;
    case DType::kQ6_K: return 18;
    case DType::kIQ4_NL: return 25;
    case DType::kIQ4_XS: return 30;
    case DType::kBF16: return 32;
    case DType::kMXFP4: return 38;
    default: return 1024;  // the bit for "guessed"
  }
}
constexpr uint32_t kQuantizationVersion = 2;  // of the block layouts

Result<DType> weight_type(const std::string& name, const char* what) {
  const auto t = dtype_from_name(name);
  if (t && quant::find_format(*t) != nullptr) return *t;
  std::string known;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto k = static_cast<DType>(i);
    if (quant::find_format(k) != nullptr) known += (known.empty() ? "" : ", ") + std::string(dtype_info(k).name);
  }
  return make_error(ErrorCode::kInvalidArgument, "{}: found '{}', expected one of {}", what, name, known);
}

Status check_paths(const QuantizeFlags& f, const gguf::File& file) {
  std::error_code ec;
  for (size_t part = 0; part < file.n_parts(); ++part) {
    if (fs::equivalent(file.part_path(part), f.out, ec)) {
      return make_error(ErrorCode::kInvalidArgument, "OUT '{}' is the file that is read, expected another", f.out);
    }
  }
  const auto status = fs::status(f.out, ec);
  if (fs::is_directory(status)) {
    return make_error(ErrorCode::kInvalidArgument, "OUT '{}' is a folder, expected the name of a file", f.out);
  }
  if (fs::exists(status) && !f.force) {
    return make_error(ErrorCode::kInvalidArgument, "OUT '{}' is there already; --force replaces it", f.out);
  }
  return {};
}

struct Target {
  std::vector<gguf::TensorSpec> specs;  // in the order of the file's tensors
  int64_t n_converted = 0, n_kept = 0, n_fallback = 0, n_requantized = 0;
};

// Matrices (two dimensions or more, of a type with a codec) get the type asked for; vectors stay as they are.
Result<Target> choose_types(const QuantizeFlags& f, const gguf::File& file) {
  const DType type = MINFER_TRY(weight_type(f.type, "TYPE"));
  std::optional<DType> fallback;
  if (!f.fallback.empty()) fallback = MINFER_TRY(weight_type(f.fallback, "--fallback"));
  Target target;
  for (const auto& t : file.tensors()) {
    gguf::TensorSpec spec{t.name, t.dtype, t.shape};
    if (t.shape.rank < 2 || quant::find_format(t.dtype) == nullptr) {
      ++target.n_kept;
    } else {
      auto fits = [&](DType d) { return t.shape.last() % dtype_info(d).block_size == 0; };
      if (fits(type)) {
        spec.dtype = type;
      } else if (fallback && fits(*fallback)) {
        spec.dtype = *fallback;
        ++target.n_fallback;
      } else {
        const DType wanted = fallback.value_or(type);
        return make_error(ErrorCode::kInvalidArgument,
                          "tensor '{}': rows of {} values are no multiple of the {} values of a {} block; {}", t.name,
                          t.shape.last(), dtype_info(wanted).block_size, dtype_info(wanted).name,
                          t.shape.last() % 32 == 0
                              ? "give a type of smaller blocks for such tensors, as --fallback q8_0"
                              : "such tensors can be --fallback f16, bf16 or f32");
      }
      ++target.n_converted;
      if (dtype_info(t.dtype).quantized && t.dtype != spec.dtype) ++target.n_requantized;
    }
    target.specs.push_back(std::move(spec));
  }
  return target;
}

gguf::MetadataBuilder metadata_for(const gguf::File& file, DType type) {
  gguf::MetadataBuilder m;
  m.copy_all(file.metadata());
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) m.remove(key);
  m.set<uint32_t>("general.file_type", file_type(type));
  if (dtype_info(type).quantized) {
    m.set<uint32_t>("general.quantization_version", kQuantizationVersion);
  } else {
    m.remove("general.quantization_version");
  }
  return m;
}

class Converter {
 public:
  Converter(const gguf::File& file, gguf::Writer& writer, ThreadPool& pool, Progress& bar)
      : file_(file), writer_(writer), bar_(bar) {
    for (const auto& t : file.tensors()) total_ += static_cast<int64_t>(t.bytes);
    options_.parallel_for = [&pool](int64_t n, const std::function<void(int64_t, int64_t)>& body) {
      return pool.run([&](Worker& w) {
        const auto r = w.share(n);
        if (r.begin < r.end) body(r.begin, r.end);
      });
    };
  }

  Status tensor(const gguf::TensorInfo& t, DType to) {
    const int64_t cols = t.shape.last(), rows = t.shape.rows();
    const int64_t step = std::max<int64_t>(1, kChunkValues / cols);
    const int64_t from_bytes = dtype_row_bytes(t.dtype, cols), to_bytes = dtype_row_bytes(to, cols);
    const std::byte* data = file_.data(t);
    for (int64_t row = 0; row < rows; row += step) {
      if (interrupted()) return make_error(ErrorCode::kCancelled, "interrupted");
      const int64_t n = std::min(step, rows - row);
      const std::byte* from = data + row * from_bytes;
      if (to == t.dtype) {
        MINFER_TRY(writer_.write({from, static_cast<size_t>(n * from_bytes)}));
      } else {
        buffer_.resize(static_cast<size_t>(n * to_bytes));
        MINFER_TRY_CTX(quant::convert_rows(t.dtype, from, to, buffer_.data(), n, cols, options_),
                       fmt::format("tensor '{}', rows from {}", t.name, row));
        MINFER_TRY(writer_.write(buffer_));
      }
      done_ += n * from_bytes;
      bar_.update(done_, total_);
    }
    file_.drop_pages(t);
    return {};
  }

 private:
  const gguf::File& file_;
  gguf::Writer& writer_;
  Progress& bar_;
  quant::ConvertOptions options_;
  std::vector<std::byte> buffer_;
  int64_t done_ = 0, total_ = 0;
};

// What fails from here on is no fault of the arguments.
Status convert(const QuantizeFlags& f, const gguf::File& file, const Target& target, ThreadPool& pool, DType type) {
  gguf::Writer writer = MINFER_TRY(gguf::Writer::create(f.out, metadata_for(file, type), target.specs));
  Progress bar("quantizing", "B");
  Converter converter(file, writer, pool, bar);
  for (size_t i = 0; i < target.specs.size(); ++i) {
    MINFER_TRY(converter.tensor(file.tensors()[i], target.specs[i].dtype));
  }
  if (interrupted()) return make_error(ErrorCode::kCancelled, "interrupted");
  return writer.finish();
}

Result<int> run(const QuantizeFlags& f) {
  const DType type = MINFER_TRY(weight_type(f.type, "TYPE"));
  const gguf::File file = MINFER_TRY(of_file(gguf::File::open(MINFER_TRY(resolve_model(f.in)))));
  MINFER_TRY(check_paths(f, file));
  const Target target = MINFER_TRY(choose_types(f, file));
  const auto pool = MINFER_TRY(ThreadPool::create(f.threads == 0 ? usable_cores() : f.threads));
  if (target.n_converted == target.n_fallback) {
    std::fprintf(stderr, "minfer: warning: no matrix becomes %s: %s\n", std::string(dtype_info(type).name).c_str(),
                 target.n_converted == 0 ? "the file has none that could be converted"
                                         : "the rows of all of them need --fallback");
  }
  if (target.n_requantized > 0) {
    std::fprintf(stderr, "minfer: note: %lld matrices are quantized already; what they lost stays lost\n",
                 static_cast<long long>(target.n_requantized));
  }
  const Status status = convert(f, file, target, *pool, type);
  if (!status.ok()) {
    return fault_of_file(status.error());
  }
  std::error_code ec;
  std::fprintf(stderr, "%s: %.1f MB (was %.1f MB), %lld matrices as %s", f.out.c_str(),
               static_cast<double>(fs::file_size(f.out, ec)) * 1e-6, static_cast<double>(file.total_bytes()) * 1e-6,
               static_cast<long long>(target.n_converted - target.n_fallback),
               std::string(dtype_info(type).name).c_str());
  if (target.n_fallback > 0) {
    std::fprintf(stderr, ", %lld as %s", static_cast<long long>(target.n_fallback), f.fallback.c_str());
  }
  std::fprintf(stderr, ", %lld tensors as they were\n", static_cast<long long>(target.n_kept));
  return kOk;
}

}  // namespace

void add_quantize(CLI::App& app, Exit exit) {
  auto f = std::make_shared<QuantizeFlags>();
  CLI::App* sub = app.add_subcommand("quantize", "write a model in another type");
  add_text(*sub, "in", f->in, "a GGUF file (of a split one the first part) or the name of a cached model")->required();
  add_text(*sub, "out", f->out, "the file to write")->required();
  add_any_text(
      *sub, "type", f->type,
      "type of all matrices: f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4")
      ->required();
  add_text(*sub, "--fallback", f->fallback, "type of the matrices whose rows the type's blocks do not divide");
  add_integer(*sub, "--threads,-t", f->threads, kThreads, "threads (default: the physical cores this process may use)");
  sub->add_flag("--force", f->force, "replace OUT if it is there");
  sub->footer(
      "Vectors (norms, biases) stay as they are.\nExamples:\n  minfer quantize model-f16.gguf model-q8_0.gguf q8_0\n"
      "  minfer quantize smollm2 smollm2-q4_k.gguf q4_k --fallback q8_0");
  on_run(
      *sub, exit, [f] { return run(*f); }, /*polls_interrupt=*/true);
}

}  // namespace minfer::cli
