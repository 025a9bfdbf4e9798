// The interpreter: walks the tree with the values it is given and writes text of known origin.
// Errors:  Raised; `pos()` is where it stood. Steps, bytes and depth are budgets that end a hostile template.
// Threads: one render, one Interp, one thread.
#pragma once

#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/raised.h"
#include "chat/value.h"
#include "chat/value_objects.h"

namespace minfer::chat::jinja {

// Expressions, statements and macro calls inside each other. The tests that reach it need less than 512 KiB of stack in
// a release build and less than 4 MiB under sanitizers, of the usual 8.
inline constexpr int kMaxEvalDepth = 900;

// Names of one body. Scopes live in the interpreter's pool until the render ends.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;  // views into the tree or into kept strings
  bool captured = false;                                  // a macro defined here may still be called: not to be reused

  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
};

enum class Flow : uint8_t { kNext, kBreak, kContinue };

class Interp {
 public:
  Interp(uint64_t max_steps, uint64_t max_bytes, const std::tm& now);
  ~Interp();
  Interp(const Interp&) = delete;
  Interp& operator=(const Interp&) = delete;

  // Names every template sees; `name` must outlive the interpreter.
  void define(std::string_view name, Value value) { globals_->set(name, std::move(value)); }
  Text run(const Body& body);

  // ---- budgets
  void step(uint64_t n = 1) {
    if (n > steps_left_) out_of("steps");
    steps_left_ -= n;
  }
  void charge(uint64_t bytes) {
    if (bytes > bytes_left_) out_of("bytes");
    bytes_left_ -= bytes;
  }
  // One level of recursion for as long as it lives.
  class Level {
   public:
    explicit Level(Interp& in) : in_(in) {
      if (++in_.depth_ > kMaxEvalDepth) in_.too_deep();
    }
    ~Level() { --in_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Interp& in_;
  };

  // ---- making values: charged, and containers checked for depth
  Value text(Text t, bool safe = false);
  Value str(std::string bytes, bool markup = true) { return text(Text(std::move(bytes), markup)); }
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  Value dict(Dict d);
  Value iterator(std::vector<Value> items, const char* type_name = "generator", bool view = false);
  Value name_space(Dict attributes);
  Value callable(std::shared_ptr<CallableObject> object);
  Value undefined(std::string message);

  // ---- what builtins need
  Value call(const Value& callee, const Args& args);
  Value apply_filter(std::string_view name, const Value& input, const Args& args);
  bool apply_test(std::string_view name, const Value& input, const Args& args);
  // The same numbers in each render. Source: SplitMix64.
  uint64_t next_random() {
    uint64_t z = random_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  const std::tm& now() const { return now_; }
  Pos pos() const { return pos_; }
  void keep(Value v) { kept_.push_back(std::move(v)); }  // emptied when the render ends: breaks chains through loops

 private:
  friend class Loop;
  friend class Macro;

  Value eval(const Expr& e);
  Value eval_compare(const Compare& e);
  Value eval_call(const Call& e);
  Value eval_item(const Item& e);
  Value eval_filter(const Filter& e, const Value* block_text);
  Value lookup(std::string_view name);
  Args eval_args(const CallArgs& args);

  Flow exec(const Body& body);
  Flow enter(const Body& body);  // in a scope of its own
  Flow exec(const Stmt& s);
  Flow exec_if(const IfStmt& s);
  Flow exec_with(const WithStmt& s);
  Flow exec_set_block(const SetBlockStmt& s);
  Flow exec_filter_block(const FilterBlockStmt& s);
  void exec_call_block(const CallBlockStmt& s);
  Flow exec_for(const ForStmt& s, const Value& iterable, int nesting, Scope* parent);
  void assign(const Target& target, const Value& value);
  Value make_macro(const MacroDef& def);
  void write(const Text& t);
  void write_markup(std::string_view s);

  // Runs f with a fresh scope below `parent` (a body) or with output going to a text of its own (a capture).
  template <typename F>
  auto with_scope(Scope* parent, F&& f);
  template <typename F>
  Text captured(F&& f);
  Scope* open_scope(Scope* parent);
  void close_scope(Scope* scope);

  [[noreturn]] void out_of(const char* what) const;
  [[noreturn]] void too_deep() const;

  uint64_t max_steps_, max_bytes_;
  uint64_t steps_left_, bytes_left_;
  int depth_ = 0;
  std::tm now_;
  uint64_t random_ = 0;
  Pos pos_;
  const Expr* output_ = nullptr;  // what {{ }} prints just now
  std::deque<Scope> pool_;
  std::vector<Scope*> free_;
  Scope* globals_ = nullptr;
  Scope* scope_ = nullptr;
  Text* out_ = nullptr;
  std::vector<Value> kept_;  // namespaces and loops: mutable, so they are emptied one by one at the end
};

}  // namespace minfer::chat::jinja
