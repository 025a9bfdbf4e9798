// What a Value points to, for the engine's own files.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace minfer::chat {

namespace jinja {
class Interp;

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};
}  // namespace jinja

struct StringObject {
  Text text;
  size_t n_chars = 0;  // code points; equal to the bytes when all are ASCII
  bool safe = false;   // what the filters safe and escape give: '+' escapes the other side

  bool ascii() const { return n_chars == text.size(); }
};

struct RangeBounds {
  int64_t start, stop, step;
};

struct ListObject {
  std::vector<Value> items;
  int depth = 1;
  uint64_t weight = 1;
  bool is_range = false;  // range(...): a list but for its name and how it prints
  RangeBounds range{};
  bool is_group = false;  // a tuple of groupby: has the attributes grouper and list
};

struct DictObject {
  Dict dict;
};

struct UndefinedObject {
  std::string message;  // what using it says: "'x' is undefined"
};

struct IteratorObject {
  std::vector<Value> items;
  size_t next = 0;             // how many have been taken
  const char* type_name;       // "generator", "dict_items", ...
  bool view = false;           // dict views can be walked again and have a length
  std::exception_ptr failure;  // what computing the next item raised: thrown by whoever gets there
  int depth = 1;
  uint64_t weight = 1;
};

struct NamespaceObject {
  Dict attributes;
  bool printing = false;  // inside itself it prints as {...}
};

// Macros, functions, bound methods, loops: whatever a template may call or ask for attributes.
struct CallableObject {
  int depth = 0;  // of the values it holds
  uint64_t weight = 1;

  virtual ~CallableObject() = default;
  virtual Value call(jinja::Interp& in, const jinja::Args& args) = 0;
  virtual std::optional<Value> attribute(jinja::Interp&, std::string_view) { return std::nullopt; }  // (optional)
  virtual std::string repr(jinja::Interp& in) = 0;
  virtual const char* type_name() const { return "function"; }  // (optional)
  virtual void release() {}  // (optional) lets go of values taken in after construction; see Interp::keep
};

uint64_t weight_add(uint64_t a, uint64_t b);  // saturating

}  // namespace minfer::chat
