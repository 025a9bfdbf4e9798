// kv_store_k, kv_store_v: x f32[n, n_head_kv * head_dim], region, slots i32[n] -> nothing.
#include "graph/ops/rules.h"

namespace minfer {

namespace {

Result<Descs> infer_store(Op op, const Attrs& attrs, const Descs& in) {
  Rule rule(op, attrs, in);
  MINFER_TRY(rule.want_region(1, "region"));
  MINFER_TRY(rule.want(0, "x", DType::kF32, {kAnyRows, rule.shape(1)[1]}));
  MINFER_TRY(rule.want(2, "slots", DType::kI32, {rule.shape(0)[0]}));
  return Descs{};
}

}  // namespace

Result<Descs> infer_kv_store_k(const Attrs& attrs, const Descs& in) { return infer_store(Op::kKvStoreK, attrs, in); }
Result<Descs> infer_kv_store_v(const Attrs& attrs, const Descs& in) { return infer_store(Op::kKvStoreV, attrs, in); }

}  // namespace minfer
