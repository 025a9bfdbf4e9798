// Names of the tree's bodies, seen as Jinja's compiler sees them.
#include "chat/jinja/names.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace minfer::chat::jinja {

namespace {

bool before(Pos a, Pos b) { return a.line != b.line ? a.line < b.line : a.column < b.column; }

// The names of one body. A name may be `own`: undefined until it is set at `set_at`.
class Frame {
 public:
  explicit Frame(Frame* parent) : parent_(parent) {}

  void parameter(std::string_view name) { refs_.insert_or_assign(name, Ref{}); }
  void load(std::string_view name, Pos pos) {
    if (refs_.contains(name) || (parent_ != nullptr && parent_->read_inside(name, pos))) return;
    refs_.emplace(name, Ref{});
  }
  void store(std::string_view name, Pos pos) {
    if (refs_.contains(name)) return;
    // A name of a body around this one starts with the value it has there.
    const bool outer = parent_ != nullptr && parent_->read_inside(name, pos);
    refs_.emplace(name, Ref{.own = !outer, .in_branch = branches_ > 0, .set_at = pos});
  }
  // Inside the branches of an if, what is set need not be: the name keeps its outer meaning.
  void open_branches() { ++branches_; }
  void close_branches() {
    if (--branches_ > 0) return;
    for (auto& [name, ref] : refs_) {
      if (std::exchange(ref.in_branch, false)) ref.own = false;
    }
  }
  std::vector<std::string> hidden() const {
    std::vector<std::string> out;
    for (const auto& [name, ref] : refs_) {
      if (ref.read_early) out.emplace_back(name);
    }
    return out;
  }

 private:
  struct Ref {
    bool own = false, in_branch = false, read_early = false;
    Pos set_at;
  };
  // A body inside reads the name; false when neither this nor a body around it has it. Only what stands above the
  // assignment can see that it is not made yet.
  bool read_inside(std::string_view name, Pos pos) {
    const auto it = refs_.find(name);
    if (it == refs_.end()) return parent_ != nullptr && parent_->read_inside(name, pos);
    if (it->second.own && before(pos, it->second.set_at)) it->second.read_early = true;
    return true;
  }

  Frame* parent_;
  std::map<std::string_view, Ref> refs_;
  int branches_ = 0;
};

class Analysis {
 public:
  // First the body's own names, all of them; then the bodies inside, which look at those.
  void body(Frame& frame, Body& b) {
    outer(frame, b);
    inner(frame, b);
    b.hidden = frame.hidden();
  }

 private:
  static void loads(Frame& frame, const Expr* e) {
    if (e == nullptr) return;
    if (e->kind == ExprKind::kName) frame.load(static_cast<const Name&>(*e).name, e->pos);
    for_each_child(*e, [&](const Expr& child) { loads(frame, &child); });
  }

  static void stores(Frame& frame, const Target& t, bool parameter, std::optional<Pos> at = std::nullopt) {
    for (const Target& item : t.items) stores(frame, item, parameter, at);
    if (t.is_tuple) return;
    if (!t.attribute.empty()) {
      frame.load(t.name, t.pos);
    } else if (parameter) {
      frame.parameter(t.name);
    } else {
      frame.store(t.name, at.value_or(t.pos));
    }
  }

  static void outer(Frame& frame, const Body& b) {
    for (const auto& s : b.statements) outer(frame, *s);
  }

  static void outer(Frame& frame, const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kOutput: return loads(frame, static_cast<const OutputStmt&>(s).expr.get());
      case StmtKind::kIf: {
        const auto& i = static_cast<const IfStmt&>(s);
        bool first = true;
        for (const auto& [condition, then] : i.branches) {
          loads(frame, condition.get());
          if (std::exchange(first, false)) frame.open_branches();
          outer(frame, then);
        }
        outer(frame, i.otherwise);
        return frame.close_branches();
      }
      case StmtKind::kFor: return loads(frame, static_cast<const ForStmt&>(s).iterable.get());
      case StmtKind::kSet: {
        const auto& set = static_cast<const SetStmt&>(s);
        loads(frame, set.value.get());
        return stores(frame, set.target, false);
      }
      case StmtKind::kSetBlock: {
        // Set after its body has run.
        const auto& set = static_cast<const SetBlockStmt&>(s);
        return stores(frame, set.target, false, set.end);
      }
      case StmtKind::kWith:
        for (const auto& [target, value] : static_cast<const WithStmt&>(s).bindings) loads(frame, value.get());
        return;
      case StmtKind::kMacro: return frame.store(static_cast<const MacroStmt&>(s).def.name, s.pos);
      case StmtKind::kCallBlock: return loads(frame, static_cast<const CallBlockStmt&>(s).call.get());
      case StmtKind::kFilterBlock: return loads(frame, static_cast<const FilterBlockStmt&>(s).filter.get());
      default: return;
    }
  }

  void inner(Frame& frame, Body& b) {
    for (const auto& s : b.statements) inner(frame, *s);
  }

  void inner(Frame& frame, Stmt& s) {
    switch (s.kind) {
      case StmtKind::kIf: {
        auto& i = static_cast<IfStmt&>(s);
        for (auto& [condition, then] : i.branches) inner(frame, then);
        return inner(frame, i.otherwise);
      }
      case StmtKind::kFor: {
        auto& loop = static_cast<ForStmt&>(s);
        Frame each(&frame), test(&frame), none(&frame);
        each.parameter("loop");
        stores(each, loop.target, true);
        body(each, loop.body);
        stores(test, loop.target, true);
        loads(test, loop.filter.get());
        return body(none, loop.otherwise);
      }
      case StmtKind::kSetBlock: {
        Frame inside(&frame);
        return body(inside, static_cast<SetBlockStmt&>(s).body);
      }
      case StmtKind::kWith: {
        auto& with = static_cast<WithStmt&>(s);
        Frame inside(&frame);
        for (const auto& [target, value] : with.bindings) stores(inside, target, true);
        return body(inside, with.body);
      }
      case StmtKind::kMacro: return macro(frame, static_cast<MacroStmt&>(s).def);
      case StmtKind::kCallBlock: return macro(frame, static_cast<CallBlockStmt&>(s).def);
      case StmtKind::kFilterBlock: {
        Frame inside(&frame);
        return body(inside, static_cast<FilterBlockStmt&>(s).body);
      }
      case StmtKind::kScope: {
        auto& scope = static_cast<ScopeStmt&>(s);
        Frame inside(scope.is_block ? nullptr : &frame);
        return body(inside, scope.body);
      }
      default: return;
    }
  }

  void macro(Frame& frame, MacroDef& def) {
    Frame inside(&frame);
    for (const char* name : {"caller", "kwargs", "varargs"}) inside.parameter(name);
    for (const std::string& name : def.params) inside.parameter(name);
    for (const ExprPtr& e : def.defaults) loads(inside, e.get());
    body(inside, def.body);
  }
};

}  // namespace

void hide_names(Body& root) {
  Frame frame(nullptr);
  Analysis().body(frame, root);
}

}  // namespace minfer::chat::jinja
