// for loops: items come one at a time, so that a filter sees what the body has set, and break leaves an iterator's
// rest.
#include "chat/jinja/interp_scope.h"
#include "chat/jinja/macro.h"
#include "chat/jinja/ops.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

// loop.cycle and loop.changed.
class LoopMethod : public CallableObject {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool is_cycle) : loop_(std::move(loop)), is_cycle_(is_cycle) {
    depth = loop_->depth + 1;
  }
  Value call(Interp& in, const Args& args) override {
    return is_cycle_ ? loop_->cycle(args) : loop_->changed(in, args);
  }
  std::string repr(Interp&) override { return "<bound method LoopContext>"; }
  const char* type_name() const override { return "method"; }

 private:
  std::shared_ptr<Loop> loop_;
  bool is_cycle_;
};

}  // namespace

Loop::Loop(Interp& in, const ForStmt& stmt, const Value& iterable, int nesting, Scope* scope)
    : stmt_(stmt), scope_(scope), nesting_(nesting), source_(iterable) {
  if (iterable.is_sequence()) {
    items_ = &iterable.items();
  } else if (iterable.is(Kind::kIterator)) {
    auto* it = iterable.object<IteratorObject>();
    items_ = &it->items;
    if (!it->view) next_ = &it->next;
  } else {
    own_ = iterate(in, iterable);
    items_ = &own_;
  }
  depth = iterable.depth() + 1;
  weight = iterable.weight();
}

bool Loop::pull(Interp& in, Value* item) {
  while (*next_ < items_->size()) {
    in.step();
    const Value candidate = (*items_)[(*next_)++];
    if (!stmt_.filter) {
      *item = candidate;
      return true;
    }
    const bool keep = in.with_scope(scope_, [&] {
      in.assign(stmt_.target, candidate);
      return truthy(in.eval(*stmt_.filter));
    });
    if (keep) {
      *item = candidate;
      return true;
    }
  }
  if (source_.is(Kind::kIterator)) throw_failure(*source_.object<IteratorObject>());
  return false;
}

bool Loop::look_ahead(Interp& in) {
  if (!ahead_.empty()) return true;
  Value item;
  if (!pull(in, &item)) return false;
  ahead_.push_back(std::move(item));
  return true;
}

int64_t Loop::count(Interp& in) {
  Value item;
  while (pull(in, &item)) {
    in.charge(sizeof(Value));
    ahead_.push_back(std::move(item));
  }
  return index0_ + 1 + static_cast<int64_t>(ahead_.size());
}

bool Loop::advance(Interp& in) {
  if (!look_ahead(in)) return false;
  before_ = std::move(current_);
  current_ = std::move(ahead_.front());
  ahead_.pop_front();
  ++index0_;
  return true;
}

Value Loop::call(Interp& in, const Args& args) {
  if (!stmt_.recursive) {
    raise_error("The loop must have the 'recursive' marker to be called recursively.");
  }
  if (args.positional.size() != 1 || !args.named.empty()) raise_error("loop() takes exactly one argument");
  Text out = in.captured([&] { in.exec_for(stmt_, args.positional[0], nesting_ + 1, scope_); });
  return in.text(std::move(out));
}

Value Loop::cycle(const Args& args) const {
  if (args.positional.empty()) raise_error("no items for cycling given");
  return args.positional[static_cast<size_t>(index0_) % args.positional.size()];
}

Value Loop::changed(Interp& in, const Args& args) {
  bool same = changed_called_ && last_changed_.size() == args.positional.size();
  for (size_t i = 0; same && i < last_changed_.size(); ++i) same = equals(in, last_changed_[i], args.positional[i]);
  if (!changed_called_)
    in.keep(Value::from_object(Kind::kCallable, std::shared_ptr<CallableObject>(shared_from_this())));
  changed_called_ = true;
  if (!same) last_changed_ = args.positional;
  return Value::boolean(!same);
}

std::optional<Value> Loop::attribute(Interp& in, std::string_view name) {
  if (name == "index") return Value::integer(index0_ + 1);
  if (name == "index0") return Value::integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(!look_ahead(in));
  if (name == "length") return Value::integer(count(in));
  if (name == "revindex") return Value::integer(count(in) - index0_);
  if (name == "revindex0") return Value::integer(count(in) - index0_ - 1);
  if (name == "depth") return Value::integer(nesting_);
  if (name == "depth0") return Value::integer(nesting_ - 1);
  if (name == "previtem") return index0_ == 0 ? in.undefined("there is no previous item") : before_;
  if (name == "nextitem") return look_ahead(in) ? ahead_.front() : in.undefined("there is no next item");
  if (name == "cycle" || name == "changed") {
    return in.callable(std::make_shared<LoopMethod>(shared_from_this(), name == "cycle"));
  }
  return std::nullopt;
}

void Loop::release() {
  last_changed_.clear();
  ahead_.clear();
  before_ = current_ = Value();
}

// An else body runs when no item's body was run to its end: when no item came, or each was left by break or continue.
// Only it can break out of a loop around this one.
Flow Interp::exec_for(const ForStmt& s, const Value& iterable, int nesting, Scope* parent) {
  const auto loop = std::make_shared<Loop>(*this, s, iterable, nesting, parent);
  const Value self = callable(loop);
  bool completed = false;
  while (loop->advance(*this)) {
    const Flow flow = with_scope(parent, [&] {
      scope_->set("loop", self);
      assign(s.target, loop->current());
      return enter(s.body);
    });
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNext;
  }
  if (completed || s.otherwise.statements.empty()) return Flow::kNext;
  return with_scope(parent, [&] { return enter(s.otherwise); });
}

std::string Loop::repr(Interp& in) { return fmt::format("<LoopContext {}/{}>", index0_ + 1, count(in)); }

}  // namespace minfer::chat::jinja
