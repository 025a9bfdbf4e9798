// minfer inspect MODEL: what is in a file and what running it takes. A file that is sound but that minfer cannot run is
// shown too, with the reason on stderr and exit code 1.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "common.h"
#include "metadata_text.h"
#include "options.h"

namespace minfer::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kJsonElementsMax = 16;  // longer arrays appear with their first 16 elements
constexpr DType kCacheTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0};

struct InspectFlags {
  EngineFlags engine;
  std::string model;
  bool json = false, kernels = false;
};

struct TypeTotal {
  DType dtype;
  int64_t tensors = 0, bytes = 0, values = 0;
};

std::vector<TypeTotal> type_totals(const gguf::File& file) {
  std::map<DType, TypeTotal> totals;
  for (const auto& t : file.tensors()) {
    TypeTotal& total = totals.try_emplace(t.dtype, TypeTotal{t.dtype}).first->second;
    ++total.tensors;
    total.bytes += static_cast<int64_t>(t.bytes);
    total.values += t.shape.count();
  }
  std::vector<TypeTotal> list;
  for (const auto& [dtype, total] : totals) list.push_back(total);
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return list;
}

int64_t tensor_bytes(const gguf::File& file) {
  int64_t sum = 0;
  for (const auto& t : file.tensors()) sum += static_cast<int64_t>(t.bytes);
  return sum;
}

// Bytes of one position in a cache of this type; nullopt where its blocks do not fit the head size.
std::optional<int64_t> kv_bytes(const HParams& hp, DType type) {
  if (hp.head_dim % dtype_info(type).block_size != 0) return std::nullopt;
  return kv_bytes_per_token(hp, type, type);
}

std::string size_text(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) * 1e-3);
  if (bytes < int64_t{10'000'000'000}) return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9);
}

// --- kernels -------------------------------------------------------------------------------------------------------

struct OpKernels {
  Op op;
  std::vector<std::string> available;          // best first
  std::map<std::string, int> decode, prefill;  // kernel -> nodes of a step
};

void count_steps(const Plan& plan, std::vector<OpKernels>& ops, std::map<std::string, int> OpKernels::*where) {
  for (const auto& step : plan.steps()) ++(ops[static_cast<size_t>(step.op)].*where)[step.kernel_name];
}

// Loads the model: which kernel serves a node depends on how its weights were packed.
Result<std::vector<OpKernels>> find_kernels(const InspectFlags& f, std::string* backend_name) {
  EngineFlags engine = f.engine;
  auto model = MINFER_TRY(open_model(f.model));
  constexpr int32_t kContext = 256;  // one attention tile: the choice of kernels does not depend on it
  constexpr int32_t kPrefill = 64;
  engine.ctx = std::min(model->hparams().n_ctx_train, kContext);
  const Loaded loaded = MINFER_TRY(load(std::move(model), engine));
  Runner& runner = *loaded.runner;
  *backend_name = fmt::format("{} ({})", runner.backend().name(), runner.backend().isa());
  std::vector<OpKernels> ops;
  for (int i = 0; i < kOpCount; ++i) {
    OpKernels o{static_cast<Op>(i), {}, {}, {}};
    for (const Kernel& k : runner.backend().kernels(o.op)) o.available.push_back(std::string(k.name) + "/" + k.isa);
    ops.push_back(std::move(o));
  }
  const int32_t n_prefill = std::min(kPrefill, runner.n_ctx());
  count_steps(*MINFER_TRY(runner.plan_for(1, 1, 1, 0)), ops, &OpKernels::decode);
  count_steps(*MINFER_TRY(runner.plan_for(n_prefill, 1, 1, n_prefill - 1)), ops, &OpKernels::prefill);
  return ops;
}

// --- output --------------------------------------------------------------------------------------------------------

Json model_json(const Model& m) {
  const HParams& hp = m.hparams();
  return {{"family", hp.arch},
          {"name", m.name()},
          {"parameters", m.parameters()},
          {"n_layer", hp.n_layer},
          {"n_embd", hp.n_embd},
          {"n_head", hp.n_head},
          {"n_head_kv", hp.n_head_kv},
          {"head_dim", hp.head_dim},
          {"n_ff", hp.n_ff},
          {"n_vocab", hp.n_vocab},
          {"n_ctx_train", hp.n_ctx_train},
          {"n_expert", hp.n_expert},
          {"n_expert_used", hp.n_expert_used},
          {"chat_template", !m.chat_template().empty()}};
}

Json memory_json(const gguf::File& file, const Model* model) {
  Json j = {{"weights_bytes", tensor_bytes(file)}};
  if (model == nullptr) return j;
  Json per_token = Json::object(), whole = Json::object();
  for (const DType type : kCacheTypes) {
    const auto bytes = kv_bytes(model->hparams(), type);
    const std::string name(dtype_info(type).name);
    per_token[name] = bytes ? Json(*bytes) : Json(nullptr);
    whole[name] = bytes ? Json(*bytes * model->hparams().n_ctx_train) : Json(nullptr);
  }
  j["kv_bytes_per_token"] = std::move(per_token);
  j["kv_bytes_whole_context"] = std::move(whole);
  return j;
}

void print_json(const gguf::File& file, const Model* model, const std::string& problem,
                const std::vector<OpKernels>* ops, const std::string& backend) {
  Json j;
  j["file"] = {{"path", file.path()},
               {"bytes", file.total_bytes()},
               {"parts", file.n_parts()},
               {"version", file.version()},
               {"alignment", file.alignment()}};
  j["runnable"] = model != nullptr;
  if (!problem.empty()) j["problem"] = problem;
  if (model != nullptr) j["model"] = model_json(*model);
  j["memory"] = memory_json(file, model);
  j["types"] = Json::array();
  for (const auto& t : type_totals(file)) {
    j["types"].push_back({{"type", dtype_info(t.dtype).name}, {"tensors", t.tensors}, {"bytes", t.bytes}});
  }
  j["metadata"] = Json::object();
  for (const auto& e : file.metadata().entries()) {
    j["metadata"][std::string(e.key)] = metadata_json(e.value, kJsonElementsMax);
  }
  j["tensors"] = Json::array();
  for (const auto& t : file.tensors()) {
    Json shape = Json::array();
    for (int d = 0; d < t.shape.rank; ++d) shape.push_back(t.shape[d]);
    j["tensors"].push_back({{"name", t.name},
                            {"type", dtype_info(t.dtype).name},
                            {"shape", std::move(shape)},
                            {"bytes", t.bytes},
                            {"offset", t.offset},
                            {"part", t.part}});
  }
  if (ops != nullptr) {
    j["backend"] = backend;
    j["kernels"] = Json::array();
    for (const auto& o : *ops) {
      j["kernels"].push_back(
          {{"op", op_info(o.op).name}, {"available", o.available}, {"decode", o.decode}, {"prefill", o.prefill}});
    }
  }
  std::printf("%s\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_summary(const gguf::File& file, const Model* model) {
  std::printf("file        %s (%s, GGUF v%u%s)\n", file.path().c_str(),
              size_text(static_cast<int64_t>(file.total_bytes())).c_str(), file.version(),
              file.n_parts() > 1 ? fmt::format(", {} parts", file.n_parts()).c_str() : "");
  if (model != nullptr) {
    const HParams& hp = model->hparams();
    std::printf("name        %s\n", model->name().c_str());
    std::printf("family      %s\n", hp.arch.c_str());
    std::printf("parameters  %.1f M\n", static_cast<double>(model->parameters()) * 1e-6);
    std::printf(
        "sizes       %d layers of width %d, %d heads (%d KV) of %d, feed-forward %d, vocabulary %d, context %d\n",
        hp.n_layer, hp.n_embd, hp.n_head, hp.n_head_kv, hp.head_dim, hp.n_ff, hp.n_vocab, hp.n_ctx_train);
    if (hp.n_expert > 0) std::printf("experts     %d, of which %d per token\n", hp.n_expert, hp.n_expert_used);
    std::printf("template    %s\n", model->chat_template().empty() ? "none" : "yes");
  }
  std::printf("types      ");
  if (file.tensors().empty()) std::printf(" none (no tensors)");
  bool first = true;
  for (const auto& t : type_totals(file)) {
    std::printf("%s %s: %lld tensor%s, %s", first ? "" : ";", std::string(dtype_info(t.dtype).name).c_str(),
                static_cast<long long>(t.tensors), t.tensors == 1 ? "" : "s", size_text(t.bytes).c_str());
    first = false;
  }
  std::printf("\n");
  if (model == nullptr) return;
  const HParams& hp = model->hparams();
  std::printf("memory      weights %s; KV cache:\n", size_text(tensor_bytes(file)).c_str());
  for (const DType type : kCacheTypes) {
    const std::string name(dtype_info(type).name);
    if (const auto bytes = kv_bytes(hp, type)) {
      std::printf("  %-5s %9lld bytes per token, %10s for the whole context\n", name.c_str(),
                  static_cast<long long>(*bytes), size_text(*bytes * hp.n_ctx_train).c_str());
    } else {
      std::printf("  %-5s not possible: a head of %d values is no multiple of %d\n", name.c_str(), hp.head_dim,
                  dtype_info(type).block_size);
    }
  }
}

void print_text(const gguf::File& file, const Model* model) {
  print_summary(file, model);
  size_t width = 0;
  for (const auto& e : file.metadata().entries()) width = std::max(width, std::min<size_t>(e.key.size(), 48));
  std::printf("\nmetadata (%zu)\n", file.metadata().entries().size());
  for (const auto& e : file.metadata().entries()) {
    const std::string key = gguf::printable(e.key);  // quoted
    std::printf("  %-*s  %s\n", static_cast<int>(width), key.substr(1, key.size() - 2).c_str(),
                metadata_line(e.value).c_str());
  }
  if (file.tensors().empty()) return;
  std::printf("\ntensors (%zu)\n", file.tensors().size());
  width = 0;
  for (const auto& t : file.tensors()) width = std::max(width, t.name.size());
  for (const auto& t : file.tensors()) {
    const std::string name = gguf::printable(t.name);
    std::printf("  %-*s  %-6s  %10s  %s\n", static_cast<int>(width), name.substr(1, name.size() - 2).c_str(),
                std::string(dtype_info(t.dtype).name).c_str(), size_text(static_cast<int64_t>(t.bytes)).c_str(),
                t.shape.str().c_str());
  }
}

std::string counts_text(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, n] : counts) text += fmt::format("{}{} x{}", text.empty() ? "" : ", ", name, n);
  return text.empty() ? "-" : text;
}

void print_kernels(const std::vector<OpKernels>& ops, const std::string& backend) {
  std::printf("\nkernels on %s: those there are, best first, and the nodes of one step that each serves\n",
              backend.c_str());
  for (const auto& o : ops) {
    std::string available;
    for (const auto& k : o.available) available += (available.empty() ? "" : ", ") + k;
    if (available.empty()) available = op_info(o.op).composite ? "none: runs as its primitives" : "none";
    std::printf("  %-16s %s\n", op_info(o.op).name, available.c_str());
    if (!o.decode.empty()) std::printf("    decode         %s\n", counts_text(o.decode).c_str());
    if (!o.prefill.empty()) std::printf("    prefill        %s\n", counts_text(o.prefill).c_str());
  }
}

Result<int> run(const InspectFlags& f) {
  const std::string path = MINFER_TRY(resolve_model(f.model));
  if (f.kernels) MINFER_TRY(f.engine.check());
  const gguf::File file = MINFER_TRY(of_file(gguf::File::open(path)));
  const bool vocabulary_only = file.tensors().empty() && file.metadata().has("tokenizer.ggml.tokens");
  std::unique_ptr<Model> model;
  std::string problem;
  if (vocabulary_only) {
    problem = "the file holds a vocabulary and no tensors";
  } else {
    auto opened = Model::open(path);
    if (opened.ok()) {
      model = std::move(opened).value();
    } else {
      problem = opened.error().message;
    }
  }
  std::vector<OpKernels> ops;
  std::string backend;
  if (f.kernels && model != nullptr) ops = MINFER_TRY(find_kernels(f, &backend));
  if (f.json) {
    print_json(file, model.get(), problem, ops.empty() ? nullptr : &ops, backend);
  } else {
    print_text(file, model.get());
    if (!ops.empty()) print_kernels(ops, backend);
  }
  if (problem.empty()) return kOk;
  std::fflush(stdout);
  std::fprintf(stderr, "minfer: %s\n", for_terminal(problem).c_str());
  return vocabulary_only && !f.kernels ? kOk : kFailed;
}

}  // namespace

void add_inspect(CLI::App& app, Exit exit) {
  auto f = std::make_shared<InspectFlags>();
  CLI::App* sub = app.add_subcommand("inspect", "what is in a model file and how much memory it needs");
  add_model(*sub, f->model);
  sub->add_flag("--json", f->json, "one JSON object");
  auto* kernels = sub->add_flag("--kernels", f->kernels, "load the model and show which kernel runs each op");
  add_text(*sub, "--device,--backend", f->engine.place.device, "device for --kernels: cpu (default) or ref")
      ->needs(kernels);
  add_isa(*sub, f->engine.place.isa, "instruction set for --kernels: scalar, avx2, avxvnni, avx512, neon")
      ->needs(kernels);
  sub->footer(
      "Examples:\n  minfer inspect smollm2\n  minfer inspect model.gguf --json\n  minfer inspect smollm2 "
      "--kernels --isa avx2");
  on_run(*sub, exit, [f] { return run(*f); });
}

}  // namespace minfer::cli
