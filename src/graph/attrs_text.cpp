// Attributes as text.
#include "graph/attrs_text.h"

namespace minfer {

std::string quoted(const std::string& text) {
  std::string s = "\"";
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      s += '\\';
      s += c;
    } else if (u < 0x20) {
      s += fmt::format("\\u{:04x}", u);
    } else {
      s += c;
    }
  }
  return s + "\"";
}

std::vector<std::pair<std::string, std::string>> attrs_text(const Node& node) {
  std::vector<std::pair<std::string, std::string>> out;
  const Attrs& a = node.attrs;
  const Attrs none;
  const auto number = [&](const char* name, auto value, auto standard) {
    if (value != standard) out.emplace_back(name, fmt::format("{}", value));
  };
  number("layer", a.layer, none.layer);
  number("eps", a.eps, none.eps);
  number("scale", a.scale, none.scale);
  number("softcap", a.softcap, none.softcap);
  if (node.op == Op::kUnary || node.op == Op::kGatedAct) out.emplace_back("act", quoted(act_name(a.act)));
  if (node.op == Op::kRope || node.op == Op::kRopeStore)
    out.emplace_back("rope_style", quoted(rope_style_name(a.rope_style)));
  number("group", a.group, none.group);
  number("n_head", a.n_head, none.n_head);
  number("n_head_kv", a.n_head_kv, none.n_head_kv);
  number("head_dim", a.head_dim, none.head_dim);
  number("window", a.window, none.window);
  number("page_size", a.page_size, none.page_size);
  number("n_kv", a.n_kv, none.n_kv);
  number("top_k", a.top_k, none.top_k);
  number("norm_topk", a.norm_topk, none.norm_topk);
  number("n_group", a.n_group, none.n_group);
  return out;
}

}  // namespace minfer
