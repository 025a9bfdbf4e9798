// Stop strings in a text that comes piece by piece: the text ends exactly before the first stop, nothing of a stop is
// ever delivered, and what only looked like the beginning of one is delivered as soon as it cannot become one.
// First:   the stop that is complete first; of several complete at the same byte, the one that began first (the
//          longest). So the result does not depend on how the text was cut into tokens or pieces.
// Layout:  bytes. Stops that are valid UTF-8 in valid UTF-8 begin on a character, so whole characters stay whole when
//          push() gets what the stream decoder gives.
// Errors:  an empty stop, too many or too long ones (the limits below) are refused by create().
// Threads: one stream, one matcher; plain value.
//
// How an engine uses it, per request:
//   - Until min_tokens tokens are made, end tokens and stop token ids are banned in the sampler and the text goes
//   through
//     pass(): stops are not looked for in it.
//   - After that a token that is an end token (unless ignore_eos) or a stop token id ends the answer, finish reason
//     "stop", and its text is not delivered; every other token's text goes through push().
//   - stopped(): the request ends with finish reason "stop", although the last token may hold bytes after the stop.
//   - Every other end (length, context, end token): deliver finish(), what was held back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chat/pattern_set.h"

namespace minfer::chat {

// Four is what OpenAI takes; these bound the memory a request may ask for (some 40 bytes per byte of stops).
inline constexpr size_t kMaxStops = 256;
inline constexpr size_t kMaxStopBytes = size_t{1} << 16;  // all stops together

class StopMatcher {
 public:
  StopMatcher() = default;  // no stops: everything passes
  static Result<StopMatcher> create(std::vector<std::string> stops);

  // The bytes that may be delivered now. Nothing after a stop.
  std::string push(std::string_view bytes);
  // The same for bytes in which stops do not count; a stop cannot begin in them either.
  std::string pass(std::string_view bytes);
  // The stream ended by something else: what was held back. Nothing once a stop was found.
  std::string finish();

  bool stopped() const { return which_ != PatternSet::kNone; }
  // The stop that was found. Requires: stopped().
  const std::string& stop() const { return stops_[static_cast<size_t>(which_)]; }
  size_t held_bytes() const { return held_.size(); }

 private:
  std::vector<std::string> stops_;
  PatternSet set_;
  PatternSet::State state_ = PatternSet::kStart;
  std::string held_;  // the last set_.held(state_) bytes of the stream
  int which_ = PatternSet::kNone;
};

}  // namespace minfer::chat
