// Shape rules and definitions of all ops, one file each. Internal to src/graph; the table in op_table.cpp lists them.
#pragma once

#include "graph/ops/decompose.h"
#include "graph/ops/rule.h"

namespace minfer {

Result<Descs> infer_embed(const Attrs& attrs, const Descs& in);
Result<Descs> infer_get_rows(const Attrs& attrs, const Descs& in);
Result<Descs> infer_matmul(const Attrs& attrs, const Descs& in);
Result<Descs> infer_add(const Attrs& attrs, const Descs& in);
Result<Descs> infer_mul(const Attrs& attrs, const Descs& in);
Result<Descs> infer_scale(const Attrs& attrs, const Descs& in);
Result<Descs> infer_rms_norm(const Attrs& attrs, const Descs& in);
Result<Descs> infer_unary(const Attrs& attrs, const Descs& in);
Result<Descs> infer_softcap(const Attrs& attrs, const Descs& in);
Result<Descs> infer_rope_table(const Attrs& attrs, const Descs& in);
Result<Descs> infer_rope(const Attrs& attrs, const Descs& in);
Result<Descs> infer_kv_store_k(const Attrs& attrs, const Descs& in);
Result<Descs> infer_kv_store_v(const Attrs& attrs, const Descs& in);
Result<Descs> infer_attn_scores(const Attrs& attrs, const Descs& in);
Result<Descs> infer_attn_softmax(const Attrs& attrs, const Descs& in);
Result<Descs> infer_attn_mix(const Attrs& attrs, const Descs& in);
Result<Descs> infer_moe_route(const Attrs& attrs, const Descs& in);
Result<Descs> infer_moe_matmul(const Attrs& attrs, const Descs& in);
Result<Descs> infer_moe_combine(const Attrs& attrs, const Descs& in);
Result<Descs> infer_rms_norm_mul(const Attrs& attrs, const Descs& in);
// The rule of a group of matmuls whose weights begin at input `first`, after those that `leading` names.
Result<Descs> infer_group(Rule& rule, size_t first, const char* leading);
Result<Descs> infer_matmul_group(const Attrs& attrs, const Descs& in);
Result<Descs> infer_matmul_add(const Attrs& attrs, const Descs& in);
Result<Descs> infer_gated_act(const Attrs& attrs, const Descs& in);
Result<Descs> infer_rope_store(const Attrs& attrs, const Descs& in);
Result<Descs> infer_attention(const Attrs& attrs, const Descs& in);
Result<Descs> infer_norm_matmul_group(const Attrs& attrs, const Descs& in);

void define_rms_norm_mul(Definition& d);
void define_matmul_group(Definition& d);
void define_matmul_add(Definition& d);
void define_gated_act(Definition& d);
void define_rope_store(Definition& d);
void define_attention(Definition& d);
void define_norm_matmul_group(Definition& d);

}  // namespace minfer
