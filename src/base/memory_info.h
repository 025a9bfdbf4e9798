// How much memory this process may still take: the system's available memory and the cgroup's limit, whichever is less.
#pragma once

#include <cstdint>

namespace minfer {

int64_t memory_available_bytes();
int64_t peak_rss_bytes();

}  // namespace minfer
