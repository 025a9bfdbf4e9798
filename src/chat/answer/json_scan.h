// Follows one JSON value byte by byte (RFC 8259) and says where it ends or goes wrong.
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <vector>

namespace minfer::chat::answer {

class JsonScan {
 public:
  enum class Step : uint8_t {
    kMore,        // the byte belongs to the value, which goes on
    kDone,        // the byte is the value's last
    kDoneBefore,  // the value ended before this byte: only a number at the top says so
    kBad,         // this byte cannot stand here
  };
  // Requires: the value is not done. White space before it counts as kMore.
  Step step(uint8_t c);
  // The text ends here: whether the value is whole.
  bool whole_at_end() const { return stack_.empty() && number_complete(); }
  bool started() const { return state_ != State::kValue || !stack_.empty(); }

 private:
  enum class State : uint8_t {
    kValue,
    kFirstValue,
    kString,
    kEscape,
    kHex,
    kWord,
    kFirstKey,
    kKey,
    kColon,
    kAfter,
    kMinus,
    kZero,
    kInt,
    kDot,
    kFraction,
    kE,
    kESign,
    kExponent,
  };
  Step value(uint8_t c);
  Step after_value();
  Step number(uint8_t c);
  bool number_complete() const;

  State state_ = State::kValue;
  std::vector<bool> stack_;  // open containers, true = object
  bool key_ = false;         // the string is a key
  int hex_left_ = 0;
  const char* word_ = nullptr;  // what is left of true, false, null
};

}  // namespace minfer::chat::answer
