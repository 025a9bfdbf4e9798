// The whole answer: text, in which markers are looked for, and what each marker leads to.
#include "chat/answer/bodies.h"
#include "chat/pattern_set.h"

namespace minfer::chat::answer {

namespace {

struct Marker {
  enum class Kind : uint8_t { kCall, kReasoningOpen, kReasoningClose, kSilent };
  std::string_view text;
  Kind kind;
  const CallSyntax* call = nullptr;
};

// What is looked for in one of the two kinds of text.
class Markers {
 public:
  Markers(const Machine& m, bool reasoning) {
    const bool harmony = !m.format.calls().empty() && m.format.calls()[0].body == Body::kHarmony;
    for (const CallSyntax& s : m.format.calls()) {
      const bool wanted = harmony || (m.options.parse_calls && !reasoning);
      if (wanted && !s.open.empty()) add({s.open, Marker::Kind::kCall, &s});
    }
    if (m.options.parse_reasoning) {
      for (const ReasoningSyntax& r : m.format.reasoning()) {
        add({r.open, Marker::Kind::kReasoningOpen});
        add({r.close, Marker::Kind::kReasoningClose});
      }
    }
    for (const std::string_view s : m.format.silent()) {
      if (!reasoning || harmony) add({s, Marker::Kind::kSilent});
    }
    std::vector<std::string_view> texts;
    for (const Marker& marker : all_) texts.push_back(marker.text);
    set_ = PatternSet(texts);
  }
  const PatternSet& set() const { return set_; }
  const Marker& operator[](int i) const { return all_[static_cast<size_t>(i)]; }

 private:
  void add(Marker marker) { all_.push_back(marker); }
  std::vector<Marker> all_;
  PatternSet set_;
};

// A form without a marker that an answer beginning with this byte may have.
const CallSyntax* without_marker(const Machine& m, int c) {
  if (!m.options.parse_calls || !m.fresh()) return nullptr;
  bool lists_are_python = false;
  for (const CallSyntax& s : m.format.calls()) {
    if (!s.open.empty()) continue;
    if (s.body == Body::kRecipient && m.first()) return &s;
    if (s.body == Body::kHarmony && m.first() && c == ' ') return &s;
    if (!m.tools.any()) continue;
    if (s.body == Body::kPython) {
      if (c == '[') return &s;
      lists_are_python = true;
    }
    if (s.body == Body::kJson && (c == '{' || (c == '[' && !lists_are_python))) return &s;
  }
  return nullptr;
}

Read read_section(Machine& m, const CallSyntax& s, std::string_view marker) {
  const bool bare = s.open.empty();
  bool ok = false;
  m.begin_section(marker);
  switch (s.body) {
    case Body::kJson: ok = co_await body_json(m, s, bare); break;
    case Body::kJsonByKey: ok = co_await body_json_by_key(m, s); break;
    case Body::kNamed: ok = co_await body_named(m, s); break;
    case Body::kDeepSeek: ok = co_await body_deepseek(m, s); break;
    case Body::kTagged: ok = co_await body_tagged(m, s); break;
    case Body::kGlm: ok = co_await body_glm(m, s); break;
    case Body::kMcp: ok = co_await body_mcp(m, s); break;
    case Body::kGemma: ok = co_await body_gemma(m, s); break;
    case Body::kPython: ok = co_await body_python(m, s, bare); break;
    case Body::kRecipient: ok = co_await body_recipient(m, s); break;
    case Body::kHarmony: ok = co_await body_harmony(m, s, marker); break;
  }
  m.end_section();
  co_return ok;
}

// A marker that is no call. False: here it is only text.
bool take_marker(Machine& m, const Marker& marker) {
  switch (marker.kind) {
    case Marker::Kind::kReasoningOpen: {
      // Tags that anybody might write about count only where nothing was written yet.
      const bool token = marker.text.starts_with("<|") || marker.text.starts_with('[');
      if (m.reasoning() ? !m.fresh() : !token && !m.fresh()) return false;
      m.marker(marker.text.size());
      m.set_reasoning(true);
      return true;
    }
    case Marker::Kind::kReasoningClose:
      // At the very beginning it closes what the prompt opened without our knowing.
      if (!m.reasoning() && !m.first()) return false;
      m.marker(marker.text.size());
      m.set_reasoning(false);
      return true;
    default:
      m.marker(marker.text.size());
      m.set_reasoning(false);
      return true;
  }
}

}  // namespace

Read read_answer(Machine& m) {
  const Markers in_content(m, false), in_reasoning(m, true);
  const bool harmony = !m.format.calls().empty() && m.format.calls()[0].body == Body::kHarmony;
  if (m.options.thinking_open && m.options.parse_reasoning && !harmony) {
    m.marker(0);
    m.set_reasoning(true);
  }
  std::string pending;  // the last bytes, which may become a marker
  PatternSet::State state = PatternSet::kStart;
  bool may_start = true;  // a call without a marker may begin here
  for (;;) {
    const int c = co_await m.peek();
    if (c == kEnd) break;
    if (may_start && pending.empty() && !m.reasoning() && (harmony || !is_space(c))) {
      may_start = false;
      const CallSyntax* s = without_marker(m, c);
      if (s != nullptr) {
        co_await read_section(m, *s, "");
        continue;
      }
    }
    const Markers& markers = m.reasoning() ? in_reasoning : in_content;
    pending += m.take();
    state = markers.set().step(state, static_cast<uint8_t>(pending.back()));
    const int hit = markers.set().match(state);
    const size_t keep = hit != PatternSet::kNone ? markers.set().length(hit) : markers.set().held(state);
    if (pending.size() > keep) {
      m.text(std::string_view(pending).substr(0, pending.size() - keep));
      pending.erase(0, pending.size() - keep);
    }
    if (markers.set().empty()) m.flush_text();
    if (hit == PatternSet::kNone) continue;
    pending.clear();
    state = PatternSet::kStart;
    const Marker& marker = markers[hit];
    if (marker.kind == Marker::Kind::kCall) {
      co_await read_section(m, *marker.call, marker.text);
    } else if (take_marker(m, marker)) {
      may_start = true;
    } else {
      m.text(marker.text);
    }
  }
  m.text(pending);
  m.flush_text();
  co_return true;
}

}  // namespace minfer::chat::answer
