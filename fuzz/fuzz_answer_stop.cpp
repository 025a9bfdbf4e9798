// Layers: chat
// Fuzzes stop strings over a stream. Lines up to an empty one are the stops, the rest is the text, cut by the first
// byte; what is delivered must be the text up to the first complete stop, found here the plain way.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "chat/stop_matcher.h"

using namespace minfer;

namespace {

void require(bool ok) {
  if (!ok) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  std::string_view in(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::vector<std::string> stops;
  while (!in.empty()) {
    const size_t end = in.find('\n');
    const std::string_view line = in.substr(0, end);
    in.remove_prefix(end == in.npos ? in.size() : end + 1);
    if (line.empty()) break;
    stops.emplace_back(line);
  }
  auto made = chat::StopMatcher::create(stops);
  require(made.ok() == (stops.size() <= chat::kMaxStops));
  if (!made.ok()) return 0;
  chat::StopMatcher& m = *made;
  std::string got;
  for (size_t at = 0, piece = 1 + data[0] % 5; at < in.size(); at += piece) got += m.push(in.substr(at, piece));
  got += m.finish();
  std::string_view expected = in;
  bool stopped = false;
  for (size_t end = 1; end <= in.size() && !stopped; ++end) {
    size_t longest = 0;
    for (const std::string& s : stops) {
      if (in.substr(0, end).ends_with(s)) longest = std::max(longest, s.size());
    }
    stopped = longest > 0;
    if (stopped) expected = in.substr(0, end - longest);
  }
  require(got == expected);
  require(m.stopped() == stopped);
  return 0;
}
