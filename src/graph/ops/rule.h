// Rule: the checks that shape rules are made of. Internal to src/graph/ops.
// Errors: "[rms_norm] input 0 (x): found f16 [3, 4], expected f32 [n, d]"; kInvalidArgument throughout.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/op.h"

namespace minfer {

using Descs = std::vector<ValueDesc>;

inline constexpr int64_t kAnyRows = -1;  // a dimension of zero or more: tokens
inline constexpr int64_t kAnyDim = -2;   // a dimension of one or more

class Rule {
 public:
  Rule(Op op, const Attrs& attrs, const Descs& in) : name_(op_info(op).name), attrs_(attrs), in_(in) {}

  const Attrs& attrs() const { return attrs_; }
  size_t n_inputs() const { return in_.size(); }
  bool has(size_t i) const { return i < in_.size() && !in_[i].absent; }
  const Shape& shape(size_t i) const { return in_[i].shape; }

  // Input i is there, has type t and these dimensions (kAnyRows, kAnyDim or a number).
  Status want(size_t i, const char* what, DType t, std::initializer_list<int64_t> dims) const;
  // Input i is f32 of rank two or more: rows of d >= 1 values.
  Status want_rows(size_t i, const char* what) const;
  // Input i is a matrix of any storage type (float or block format) whose rows are whole blocks.
  Status want_weight(size_t i, const char* what, std::initializer_list<int64_t> dims) const;
  // Input i is a KV region: [n_slots, n_head_kv * head_dim], n_slots a multiple of 16, of a type that regions have.
  Status want_region(size_t i, const char* what) const;
  // n_head, n_head_kv, head_dim, window, page_size, n_kv, scale and softcap of attention nodes.
  Status want_attention() const;
  // positions, seqs [n] and block_table [n_seq, pages] at inputs first..first+2.
  Status want_lookup(size_t first, int64_t n) const;
  Status want_kv_heads() const;  // n_head_kv, head_dim
  Status want_eps() const;
  Status want_group(int64_t d) const;  // attrs.group is 0 or divides d

  // Fails with "[op] <text>" unless cond.
  Status must(bool cond, const std::string& text) const;

 private:
  Status check(size_t i, const char* what, bool dtype_ok, const char* dtype_text,
               std::initializer_list<int64_t> dims) const;
  Status found(size_t i, const char* what, const std::string& expected) const;

  const char* name_;
  const Attrs& attrs_;
  const Descs& in_;
};

inline Descs one_f32(Shape shape) { return {ValueDesc{DType::kF32, shape, false}}; }

}  // namespace minfer
