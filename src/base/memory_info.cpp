// Reads /proc/meminfo and the cgroup files.
#include "base/memory_info.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace minfer {
namespace {

constexpr int64_t kUnlimited = int64_t{1} << 60;

int64_t read_number(const std::string& path) {
  std::ifstream f(path);
  int64_t v = 0;
  return f >> v ? v : kUnlimited;  // absent, or "max"
}

// What is left under the limits of this process's cgroup and its ancestors.
int64_t cgroup_left() {
  int64_t left = kUnlimited;
  std::ifstream self("/proc/self/cgroup");
  for (std::string line; std::getline(self, line);) {
    const bool v2 = line.rfind("0::", 0) == 0;
    const size_t memory = line.find(":memory:");
    if (!v2 && memory == std::string::npos) continue;
    std::string path = v2 ? line.substr(3) : line.substr(memory + 8);
    for (;;) {
      const std::string dir = (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + path;
      const int64_t limit = read_number(dir + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
      const int64_t used = read_number(dir + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
      if (limit < kUnlimited && used < kUnlimited) left = std::min(left, std::max<int64_t>(0, limit - used));
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return left;
}

}  // namespace

int64_t memory_available_bytes() {
  int64_t available = kUnlimited;
  std::ifstream info("/proc/meminfo");
  for (std::string key; info >> key;) {
    int64_t kib = 0;
    if (key == "MemAvailable:" && info >> kib) available = kib * 1024;
    info.ignore(256, '\n');
  }
  return std::min(available, cgroup_left());
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace minfer
