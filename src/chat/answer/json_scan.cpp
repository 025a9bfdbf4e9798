// The automaton.
#include "chat/answer/json_scan.h"

#include "chat/value.h"

namespace minfer::chat::answer {

namespace {

bool is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
bool is_hex(uint8_t c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

JsonScan::Step JsonScan::after_value() {
  state_ = State::kAfter;
  return stack_.empty() ? Step::kDone : Step::kMore;
}

JsonScan::Step JsonScan::value(uint8_t c) {
  switch (c) {
    case '{':
    case '[':
      if (stack_.size() >= static_cast<size_t>(kMaxValueDepth)) return Step::kBad;
      stack_.push_back(c == '{');
      state_ = c == '{' ? State::kFirstKey : State::kFirstValue;
      return Step::kMore;
    case '"':
      key_ = false;
      state_ = State::kString;
      return Step::kMore;
    case 't': word_ = "rue"; break;
    case 'f': word_ = "alse"; break;
    case 'n': word_ = "ull"; break;
    case '-': state_ = State::kMinus; return Step::kMore;
    case '0': state_ = State::kZero; return Step::kMore;
    default:
      if (!is_digit(c)) return Step::kBad;
      state_ = State::kInt;
      return Step::kMore;
  }
  state_ = State::kWord;
  return Step::kMore;
}

bool JsonScan::number_complete() const {
  return state_ == State::kZero || state_ == State::kInt || state_ == State::kFraction || state_ == State::kExponent;
}

JsonScan::Step JsonScan::number(uint8_t c) {
  const bool digit = is_digit(c), e = c == 'e' || c == 'E';
  switch (state_) {
    case State::kMinus:
      if (digit) return state_ = c == '0' ? State::kZero : State::kInt, Step::kMore;
      return Step::kBad;
    case State::kInt:
      if (digit) return Step::kMore;
      [[fallthrough]];
    case State::kZero:
      if (c == '.') return state_ = State::kDot, Step::kMore;
      if (e) return state_ = State::kE, Step::kMore;
      break;
    case State::kDot:
      if (digit) return state_ = State::kFraction, Step::kMore;
      return Step::kBad;
    case State::kFraction:
      if (digit) return Step::kMore;
      if (e) return state_ = State::kE, Step::kMore;
      break;
    case State::kE:
      if (c == '+' || c == '-') return state_ = State::kESign, Step::kMore;
      [[fallthrough]];
    case State::kESign:
      if (digit) return state_ = State::kExponent, Step::kMore;
      return Step::kBad;
    default:
      if (digit) return Step::kMore;
      break;
  }
  if (stack_.empty()) return Step::kDoneBefore;
  state_ = State::kAfter;
  return step(c);
}

JsonScan::Step JsonScan::step(uint8_t c) {
  switch (state_) {
    case State::kString:
      if (c == '\\') return state_ = State::kEscape, Step::kMore;
      if (c < 0x20) return Step::kBad;
      if (c != '"') return Step::kMore;
      if (key_) return state_ = State::kColon, Step::kMore;
      return after_value();
    case State::kEscape:
      if (c == 'u') return state_ = State::kHex, hex_left_ = 4, Step::kMore;
      state_ = State::kString;
      switch (c) {
        case '"':
        case '\\':
        case '/':
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't': return Step::kMore;
        default: return Step::kBad;
      }
    case State::kHex:
      if (!is_hex(c)) return Step::kBad;
      if (--hex_left_ == 0) state_ = State::kString;
      return Step::kMore;
    case State::kWord:
      if (c != static_cast<uint8_t>(*word_)) return Step::kBad;
      return *++word_ == 0 ? after_value() : Step::kMore;
    case State::kValue:
    case State::kFirstValue:
      if (is_space(c)) return Step::kMore;
      if (c == ']' && state_ == State::kFirstValue) return stack_.pop_back(), after_value();
      return value(c);
    case State::kFirstKey:
    case State::kKey:
      if (is_space(c)) return Step::kMore;
      if (c == '}' && state_ == State::kFirstKey) return stack_.pop_back(), after_value();
      if (c != '"') return Step::kBad;
      key_ = true;
      state_ = State::kString;
      return Step::kMore;
    case State::kColon:
      if (is_space(c)) return Step::kMore;
      if (c != ':') return Step::kBad;
      state_ = State::kValue;
      return Step::kMore;
    case State::kAfter:
      if (is_space(c)) return Step::kMore;
      if (c == ',') return state_ = stack_.back() ? State::kKey : State::kValue, Step::kMore;
      if (c != (stack_.back() ? '}' : ']')) return Step::kBad;
      stack_.pop_back();
      return after_value();
    default: return number(c);
  }
}

}  // namespace minfer::chat::answer
