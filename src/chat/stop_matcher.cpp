// The stream's side of the automaton: what is held back and what is let go.
#include "chat/stop_matcher.h"

namespace minfer::chat {

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  if (stops.size() > kMaxStops) {
    return make_error(ErrorCode::kInvalidArgument, "[stop] {} stop strings, at most {} are taken", stops.size(),
                      kMaxStops);
  }
  size_t bytes = 0;
  std::vector<std::string_view> views;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) {
      return make_error(ErrorCode::kInvalidArgument, "[stop] stop string {} is empty, expected some text", i);
    }
    bytes += stops[i].size();
    views.push_back(stops[i]);
  }
  if (bytes > kMaxStopBytes) {
    return make_error(ErrorCode::kInvalidArgument, "[stop] the stop strings have {} bytes, at most {} are taken", bytes,
                      kMaxStopBytes);
  }
  StopMatcher m;
  m.set_ = PatternSet(views);
  m.stops_ = std::move(stops);
  return m;
}

std::string StopMatcher::push(std::string_view bytes) {
  if (stopped()) return {};
  std::string out = std::move(held_);
  held_.clear();
  for (const char c : bytes) {
    out += c;
    state_ = set_.step(state_, static_cast<uint8_t>(c));
    which_ = set_.match(state_);
    if (stopped()) {
      out.resize(out.size() - set_.length(which_));
      return out;
    }
  }
  const size_t keep = set_.held(state_);
  held_ = out.substr(out.size() - keep);
  out.resize(out.size() - keep);
  return out;
}

std::string StopMatcher::pass(std::string_view bytes) {
  std::string out = finish();
  if (!stopped()) out += bytes;
  return out;
}

std::string StopMatcher::finish() {
  std::string out = std::move(held_);
  held_.clear();
  state_ = PatternSet::kStart;
  return out;
}

}  // namespace minfer::chat
