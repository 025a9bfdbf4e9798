// Opening models and building their graphs.
#include "model/model.h"

#include <filesystem>
#include <set>

#include "model/geometry.h"
#include "model/sources.h"
#include "quant/format.h"
#include "tokenizer/vocab_from_gguf.h"

namespace minfer {

Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::open(const std::string& path) { return open(MINFER_TRY(gguf::File::open(path))); }

Result<std::unique_ptr<Model>> Model::open(gguf::File file) {
  std::unique_ptr<Model> model(new Model);
  model->file_.emplace(std::move(file));
  const gguf::Metadata& m = model->file_->metadata();
  HParams& hp = model->hp_;
  hp.arch = MINFER_TRY(m.get<std::string>("general.architecture"));
  model->arch_ = MINFER_TRY_CTX(find_arch(hp.arch), model->file_->path());
  model->name_ = MINFER_TRY(m.get_or<std::string>("general.name", ""));
  if (model->name_.empty()) model->name_ = std::filesystem::path(model->file_->path()).stem().string();
  MINFER_TRY(read_common_hparams(m, hp));
  MINFER_TRY(model->arch_->hparams(m, hp));
  MINFER_TRY(refuse_other_graphs(m, hp, model->arch_->graph_keys));
  MINFER_TRY(model->read_vocabulary());
  MINFER_TRY_CTX(check_hparams(hp), model->file_->path());
  model->source_ = std::make_unique<GgufSource>(*model->file_);
  MINFER_TRY(model->read_tensors());
  return model;
}

namespace {

Result<Geometry> checked_geometry(const std::string& geometry, DType type) {
  auto g = find_geometry(geometry);
  if (!g) {
    std::string known;
    for (const auto& n : geometry_names()) known += (known.empty() ? "" : ", ") + n;
    return make_error(ErrorCode::kInvalidArgument, "[model] shape '{}' is not known; known: {}", geometry, known);
  }
  if (quant::find_format(type) == nullptr) {
    return make_error(ErrorCode::kInvalidArgument, "[model] type '{}' cannot hold weights", dtype_info(type).name);
  }
  return *g;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::random(const std::string& geometry, DType type, uint64_t seed) {
  const Geometry g = MINFER_TRY(checked_geometry(geometry, type));
  std::unique_ptr<Model> model(new Model);
  model->hp_ = g.hp;
  model->name_ = geometry;
  model->arch_ = MINFER_TRY(find_arch(g.hp.arch));
  model->source_ = std::make_unique<RandomSource>(geometry, type, seed, g.tied);
  MINFER_TRY(model->read_tensors());
  return model;
}

Result<int64_t> Model::random_bytes(const std::string& geometry, DType type, bool packs) {
  const Geometry g = MINFER_TRY(checked_geometry(geometry, type));
  const Arch* arch = MINFER_TRY(find_arch(g.hp.arch));
  SizeSource source(geometry, type, g.tied);
  WeightTable table(source);
  ModelWeights ids;
  arch->tensors(table, g.hp, ids);
  MINFER_TRY(table.first_error());
  int64_t packed = 0;
  for (const Weight& w : table.weights()) {
    if (packs && w.role == WeightRole::kMatMul)
      packed += w.plain.shape.rows() * dtype_row_bytes(w.plain.dtype, w.plain.shape.last());
  }
  return source.bytes() + packed;
}

std::vector<std::string> Model::geometries() { return geometry_names(); }

Status Model::read_vocabulary() {
  const gguf::Metadata& m = file_->metadata();
  const std::string kind = MINFER_TRY(m.get<std::string>("tokenizer.ggml.model"));
  if (kind == "none") {  // a model without text: its table says how many ids there are
    const gguf::TensorInfo* table = MINFER_TRY(file_->require("token_embd.weight"));
    if (table->shape[0] > INT32_MAX)
      return make_error(ErrorCode::kCorrupt, "[model] {}: tensor 'token_embd.weight' has {} rows", file_->path(),
                        table->shape[0]);
    hp_.n_vocab = static_cast<int32_t>(table->shape[0]);
    return {};
  }
  const VocabData data = MINFER_TRY(vocab_from_gguf(m));
  tokenizer_.emplace(MINFER_TRY_CTX(Tokenizer::create(data), file_->path()));
  const auto n = static_cast<int64_t>(tokenizer_->n_vocab());
  // The table may have more rows than the vocabulary has tokens (padding), never fewer.
  const gguf::TensorInfo* table = file_->find("token_embd.weight");
  if (table == nullptr || table->shape.rank != 2) {
    return make_error(ErrorCode::kNotFound,
                      "[model] {}: tensor 'token_embd.weight' is missing or not a matrix, expected [{}, {}]",
                      file_->path(), n, hp_.n_embd);
  }
  if (table->shape[0] < n || table->shape[0] > INT32_MAX) {
    return make_error(ErrorCode::kCorrupt,
                      "[model] {}: the vocabulary has {} tokens but tensor 'token_embd.weight' has {} rows",
                      file_->path(), n, table->shape[0]);
  }
  hp_.n_vocab = static_cast<int32_t>(table->shape[0]);
  if (m.has("tokenizer.chat_template")) chat_template_ = MINFER_TRY(m.get<std::string>("tokenizer.chat_template"));
  return {};
}

Status Model::read_tensors() {
  table_ = std::make_unique<WeightTable>(*source_);
  arch_->tensors(*table_, hp_, ids_);
  MINFER_TRY(table_->first_error());
  std::set<std::string> used;
  std::vector<std::string> unused;
  for (const Weight& w : table_->weights()) {
    if (w.role != WeightRole::kHost && used.insert(w.name).second) parameters_ += w.plain.shape.count();
  }
  if (file_) {
    for (const auto& t : file_->tensors()) {
      const bool stale =
          t.name.ends_with(".attn_rot_embd") || t.name.ends_with(".attn_rot_embd.weight");  // a table of old converters
      if (used.count(t.name) == 0 && !stale) unused.push_back(t.name);
    }
  }
  if (!unused.empty()) {
    return make_error(ErrorCode::kUnsupported,
                      "[model] {}: {} tensors are not part of family '{}' as minfer knows it (first: '{}'); running "
                      "without them would be wrong",
                      file_->path(), unused.size(), hp_.arch, unused[0]);
  }
  return {};
}

Result<Graph> Model::build(const GraphParams& params, const std::vector<TensorView>& views, int64_t n_slots) const {
  Builder b;
  GraphContext g{b, hp_, ids_, views, table_->weights(), params, n_slots};
  const ValueId out = arch_->graph(g);
  if (out != kNoValue) b.mark_output(out);
  return std::move(b).finish();
}

}  // namespace minfer
