// The store beside the prefix tree: a page that leaves the tree is kept, a prefix that goes on in the store comes back.
#include "engine/engine_store.h"

#include <algorithm>

#include "base/file_hash.h"
#include "base/numerics_version.h"
#include "engine/engine_impl.h"

namespace minfer {

Result<std::string> model_sha256(const Model& model) {
  const gguf::File* file = model.file();
  if (file == nullptr)
    return make_error(ErrorCode::kUnsupported, "[engine] model '{}' is in no file, so nothing names it", model.name());
  std::vector<std::string> parts;
  for (size_t i = 0; i < file->n_parts(); ++i) parts.push_back(file->part_path(i));
  return sha256_files(parts);
}

Result<std::string> cache_identity(const Model& model, const Runner& runner, const std::string& sha256) {
  const KvShape& kv = runner.kv_shape();
  return fmt::format("model sha256 {}\nnumerics {}\nlayers {}\nkv heads {} of {}\npage {}\ntypes {} {}\n",
                     sha256.empty() ? MINFER_TRY(model_sha256(model)) : sha256, kNumericsVersion, kv.n_layer,
                     kv.n_head_kv, kv.head_dim, kv.page_size, dtype_info(kv.type_k).name, dtype_info(kv.type_v).name);
}

Result<PageStore> open_page_store(const Model& model, const Runner& runner, const EngineOptions& options) {
  PageStoreOptions o;
  o.dir = options.kv_store;
  o.identity = MINFER_TRY(cache_identity(model, runner, options.model_sha256));
  o.page_size = runner.kv_shape().page_size;
  o.payload_bytes = runner.kv_shape().page_bytes();
  o.max_bytes = options.kv_store_bytes;
  return PageStore::open(std::move(o));
}

Result<std::string> EngineImpl::identity() {
  const std::lock_guard lock(identity_mutex_);
  if (identity_.empty()) identity_ = MINFER_TRY(cache_identity(*model_, *runner_, options_.model_sha256));
  return identity_;
}

void EngineImpl::restore(Run& run) {
  KvTables& tables = runner_->tables();
  const int32_t size = tables.page_size();
  const auto first = run.stored / size;
  const auto all = std::span<const int32_t>(run.ids);
  PageStore::Key before = store_->root();
  for (int32_t p = 0; p < first; ++p)
    before = store_->key_of(before, all.subspan(static_cast<size_t>(p * size), static_cast<size_t>(size)));
  // At least one id is left to compute.
  auto ids = all.first(static_cast<size_t>(run.known - 1)).subspan(static_cast<size_t>(first * size));
  const int32_t n = std::min(store_->count(before, ids), tables.pages_available());
  if (n == 0 || !tables.reserve(run.seq, (first + n) * size).ok()) return;
  ids = ids.first(static_cast<size_t>(n * size));
  const auto pages = tables.pages(run.seq).subspan(static_cast<size_t>(first));
  const PageStore::Loaded loaded =
      store_->load(before, ids, runner_->pool(), [&](int32_t i, std::span<const std::byte> payload) {
        runner_->kv().write_page(pages[static_cast<size_t>(i)], payload);
      });
  counts_.kv_store_refused += loaded.n_damaged;
  counts_.kv_store_read += loaded.n;
  run.stored = (first + loaded.n) * size;
  tables.set_length(run.seq, run.stored);
  tables.truncate(run.seq, run.stored);  // pages that were reserved in vain
  if (loaded.n > 0) tables.remember(run.seq, run.ids);
}

void EngineImpl::keep(RadixTree::Node node) {
  const RadixTree& tree = runner_->tables().tree();
  if (KvTables::is_tail(tree.ids(node))) return;  // files hold whole pages
  std::vector<RadixTree::Node> path;
  for (auto up = tree.parent(node); up != RadixTree::kRoot; up = tree.parent(up)) path.push_back(up);
  PageStore::Key before = store_->root();
  for (; !path.empty(); path.pop_back()) before = store_->key_of(before, tree.ids(path.back()));
  if (store_->has(store_->key_of(before, tree.ids(node)))) return;
  runner_->kv().read_page(tree.page(node), page_);
  const bool kept = store_->save(before, tree.ids(node), page_).ok();
  ++(kept ? counts_.kv_store_written : counts_.kv_store_refused);
}

void EngineImpl::keep_all() {
  if (!store_) return;
  for (RadixTree::Node node : runner_->tables().tree().all()) keep(node);
}

}  // namespace minfer
