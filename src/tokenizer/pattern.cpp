// See pattern.h. The tree becomes a list of instructions (Thompson), the list an automaton whose states are ordered
// lists of instructions (the order is that of a backtracking engine's attempts; what stands after a match is cut).
#include "tokenizer/pattern.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "base/error.h"
#include "tokenizer/pattern_syntax.h"
#include "tokenizer/unicode.h"

namespace minfer {

namespace {

using Node = PatternNode;

constexpr size_t kMaxInstructions = 20000;
constexpr size_t kMaxTransitions = size_t{1} << 22;  // 16 MiB
constexpr size_t kMaxClasses = 250;

// True if `node` can match nothing without asking what follows.
bool nullable(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kEmpty: return true;
    case Node::Kind::kSet:
    case Node::Kind::kAhead: return false;
    case Node::Kind::kConcat:
      return std::all_of(node.parts.begin(), node.parts.end(), [](const auto& p) { return nullable(*p); });
    case Node::Kind::kAlternate:
      return std::any_of(node.parts.begin(), node.parts.end(), [](const auto& p) { return nullable(*p); });
    case Node::Kind::kRepeat: return node.min == 0 || nullable(*node.parts[0]);
  }
  return false;
}

// Every character that can begin a match of `node` (or stand after it, for a lookahead).
CharSet first_of(const Node& node) {
  CharSet set = node.set;
  for (const auto& part : node.parts) {
    set.add(first_of(*part));
    if (node.kind == Node::Kind::kConcat && !nullable(*part)) break;
  }
  return set;
}

size_t count_possessive(const Node& node) {
  size_t n = node.possessive ? 1 : 0;
  for (const auto& part : node.parts) n += count_possessive(*part);
  return n;
}

// The possessive quantifiers of one alternative that mean what greedy ones would: giving characters back could never
// help, since what follows cannot begin with one of them, or needs nothing.
size_t count_as_good_as_greedy(const Node& sequence) {
  size_t n = 0;
  for (size_t i = 0; i < sequence.parts.size(); ++i) {
    const Node& part = *sequence.parts[i];
    if (!part.possessive || part.parts[0]->kind != Node::Kind::kSet) continue;
    bool good = true;
    for (size_t j = i + 1; j < sequence.parts.size(); ++j) {
      const Node& later = *sequence.parts[j];
      if (nullable(later)) continue;
      good = part.parts[0]->set.intersection(first_of(later)).empty();
      for (size_t k = i + 1; k < j; ++k) good &= part.parts[0]->set.intersection(first_of(*sequence.parts[k])).empty();
      break;
    }
    n += good;
  }
  return n;
}

// False if a possessive quantifier stands where it makes a difference, or inside a group.
bool possessive_is_greedy(const Node& root) {
  size_t good = 0;
  if (root.kind == Node::Kind::kAlternate) {
    for (const auto& part : root.parts) good += count_as_good_as_greedy(*part);
  } else {
    good = count_as_good_as_greedy(root);
  }
  return good == count_possessive(root);
}

}  // namespace

class PatternCompiler {
 public:
  explicit PatternCompiler(std::string_view regex) : regex_(regex) {}

  Result<Pattern> run() {
    const auto tree = MINFER_TRY(parse_pattern(regex_));
    if (!possessive_is_greedy(*tree)) return fail("a possessive quantifier here");
    if (!emit(*tree)) return fail("its size");
    code_.push_back({Op::kMatch});
    MINFER_TRY(make_classes());
    MINFER_TRY(make_states());
    return std::move(out_);
  }

 private:
  enum class Op : uint8_t { kSet, kSplit, kAhead, kMatch };
  struct Instruction {
    Op op;
    uint32_t set = 0;       // kSet, kAhead: index in sets_
    bool at_end = false;    // kAhead
    uint32_t a = 0, b = 0;  // kSplit: to a first, then to b. Others go on to the next instruction.
  };

  Error fail(std::string_view what) const {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] regular expression '{}': {} is not supported",
                      std::string(regex_.substr(0, 200)), what);
  }

  uint32_t set_index(const CharSet& set) {
    const auto it = std::find(sets_.begin(), sets_.end(), set);
    if (it != sets_.end()) return static_cast<uint32_t>(it - sets_.begin());
    sets_.push_back(set);
    return static_cast<uint32_t>(sets_.size() - 1);
  }
  uint32_t here() const { return static_cast<uint32_t>(code_.size()); }

  bool emit(const Node& node) {
    if (code_.size() > kMaxInstructions) return false;
    switch (node.kind) {
      case Node::Kind::kEmpty: return true;
      case Node::Kind::kSet: code_.push_back({Op::kSet, set_index(node.set)}); return true;
      case Node::Kind::kAhead: code_.push_back({Op::kAhead, set_index(node.set), node.at_end}); return true;
      case Node::Kind::kConcat:
        return std::all_of(node.parts.begin(), node.parts.end(), [&](const auto& part) { return emit(*part); });
      case Node::Kind::kAlternate: return emit_alternate(node);
      case Node::Kind::kRepeat: return emit_repeat(node);
    }
    return false;
  }

  bool emit_alternate(const Node& node) {
    std::vector<uint32_t> jumps;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const bool last = i + 1 == node.parts.size();
      const uint32_t split = here();
      if (!last) code_.push_back({Op::kSplit, 0, false, split + 1, 0});
      if (!emit(*node.parts[i])) return false;
      if (last) break;
      jumps.push_back(here());
      code_.push_back({Op::kSplit});
      code_[split].b = here();
    }
    for (const uint32_t jump : jumps) code_[jump].a = code_[jump].b = here();
    return true;
  }

  // A choice between going on at `in` and leaving to `out`.
  void set_choice(uint32_t at, bool greedy, uint32_t in, uint32_t out) {
    code_[at].a = greedy ? in : out;
    code_[at].b = greedy ? out : in;
  }

  bool emit_repeat(const Node& node) {
    const Node& body = *node.parts[0];
    for (uint32_t i = 0; i < node.min; ++i) {
      if (!emit(body)) return false;
    }
    if (node.max == Node::kUnbounded) {
      const uint32_t loop = here();
      code_.push_back({Op::kSplit});
      if (!emit(body)) return false;
      code_.push_back({Op::kSplit, 0, false, loop, loop});
      set_choice(loop, node.greedy, loop + 1, here());
      return true;
    }
    std::vector<uint32_t> choices;
    for (uint32_t i = node.min; i < node.max; ++i) {
      choices.push_back(here());
      code_.push_back({Op::kSplit});
      if (!emit(body)) return false;
    }
    for (const uint32_t at : choices) set_choice(at, node.greedy, at + 1, here());
    return true;
  }

  // Code points that stand in the same sets are one class.
  Status make_classes() {
    std::vector<uint32_t> bounds = {0,
                                    kMaxCodePoint};  // starts of stretches; the last one alone is that of broken bytes
    for (const CharSet& set : sets_) {
      for (const CodeRange& r : set.ranges()) {
        bounds.push_back(r.first);
        if (r.last < kMaxCodePoint) bounds.push_back(r.last + 1);
      }
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    std::map<std::vector<bool>, uint8_t> known;
    std::vector<uint8_t> flat(static_cast<size_t>(kMaxCodePoint) + 1);
    for (size_t i = 0; i < bounds.size(); ++i) {
      std::vector<bool> in(sets_.size());
      for (size_t s = 0; s < sets_.size(); ++s) in[s] = sets_[s].contains(bounds[i]);
      if (known.size() >= kMaxClasses) return fail("its number of different classes");
      const auto [it, fresh] = known.emplace(std::move(in), static_cast<uint8_t>(known.size()));
      if (fresh) members_.push_back(&it->first);
      const size_t end = i + 1 < bounds.size() ? bounds[i + 1] : flat.size();
      std::memset(flat.data() + bounds[i], it->second, end - bounds[i]);
    }
    known_ = std::move(known);
    out_.n_classes_ = static_cast<uint32_t>(members_.size() + 1);
    out_.broken_class_ = flat[kMaxCodePoint];
    std::copy(flat.begin(), flat.begin() + 128, out_.ascii_);
    std::map<std::string_view, uint16_t> blocks;
    for (size_t at = 0; at < flat.size(); at += 256) {
      const std::string_view block(reinterpret_cast<const char*>(flat.data()) + at, 256);
      const auto [it, fresh] = blocks.emplace(block, static_cast<uint16_t>(blocks.size()));
      if (fresh) out_.blocks_.insert(out_.blocks_.end(), block.begin(), block.end());
      out_.block_of_.push_back(it->second);
    }
    return {};
  }

  // Follows everything that consumes nothing from `pc`, knowing the class of the next character (nullptr: the end), and
  // adds what is reached by consuming it to `next`. True if a match ends here: the rest is of lower priority.
  bool follow(uint32_t pc, const std::vector<bool>* members, std::vector<uint32_t>& next) {
    stack_.assign(1, pc);
    while (!stack_.empty()) {
      pc = stack_.back();
      stack_.pop_back();
      if (seen_[pc]) continue;
      seen_[pc] = true;
      const Instruction& in = code_[pc];
      switch (in.op) {
        case Op::kMatch: return true;
        case Op::kSet:
          if (members && (*members)[in.set]) next.push_back(pc + 1);
          break;
        case Op::kAhead:
          if (members ? (*members)[in.set] : in.at_end) stack_.push_back(pc + 1);
          break;
        case Op::kSplit:
          if (in.b != in.a) stack_.push_back(in.b);
          stack_.push_back(in.a);
          break;
      }
    }
    return false;
  }

  Status make_states() {
    const uint32_t n = out_.n_classes_;
    std::map<std::vector<uint32_t>, uint32_t> ids = {{{}, 0}, {{0}, 1}};
    std::vector<const std::vector<uint32_t>*> states = {&ids.find({})->first, &ids.find({0})->first};
    for (size_t s = 0; s < states.size(); ++s) {
      for (uint32_t c = 0; c < n; ++c) {
        if (out_.next_.size() >= kMaxTransitions) return fail("its size");
        std::vector<uint32_t> next;
        bool matched = false;
        seen_.assign(code_.size(), false);
        for (const uint32_t pc : *states[s]) {
          matched = follow(pc, c + 1 < n ? members_[c] : nullptr, next);
          if (matched) break;
        }
        // Of two ways to the same instruction the first is the one that counts.
        seen_.assign(code_.size(), false);
        std::erase_if(next, [&](uint32_t pc) {
          const bool again = seen_[pc];
          seen_[pc] = true;
          return again;
        });
        const auto [it, fresh] = ids.emplace(std::move(next), static_cast<uint32_t>(ids.size()));
        if (fresh) states.push_back(&it->first);
        out_.next_.push_back(it->second * n << 1 | static_cast<uint32_t>(matched));
        if (s == 1) out_.can_be_empty_ |= matched;
      }
    }
    return {};
  }

  std::string_view regex_;
  std::vector<Instruction> code_;
  std::vector<CharSet> sets_;
  std::map<std::vector<bool>, uint8_t> known_;
  std::vector<const std::vector<bool>*> members_;  // [class] which sets it is in
  std::vector<bool> seen_;
  std::vector<uint32_t> stack_;
  Pattern out_;
};

Result<Pattern> Pattern::compile(std::string_view regex) { return PatternCompiler(regex).run(); }

size_t Pattern::match(std::string_view text, size_t pos, uint64_t& work) const {
  const size_t start = pos;
  size_t end = kNoMatch;
  uint32_t row = n_classes_;
  for (;;) {
    uint32_t c = n_classes_ - 1;
    uint32_t bytes = 0;
    if (pos < text.size()) {
      const auto b = static_cast<unsigned char>(text[pos]);
      if (b < 0x80) {
        c = ascii_[b];
        bytes = 1;
      } else {
        const CodePoint cp = read_code_point(text, pos);
        c = cp.valid ? class_of(cp.value) : broken_class_;
        bytes = cp.bytes;
      }
    }
    const uint32_t next = next_[row + c];
    if (next & 1) end = pos;
    row = next >> 1;
    if (row == 0 || bytes == 0) break;
    pos += bytes;
  }
  work += pos - start + 1;
  return end;
}

}  // namespace minfer
