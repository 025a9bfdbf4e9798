// Names of error codes and the end of a failed check.
#include "base/error.h"

#include <cstdio>

namespace minfer {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kOutOfRange: return "out_of_range";
    case ErrorCode::kResourceExhausted: return "resource_exhausted";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

void check_failed(const char* file, int line, const char* expr) {
  std::fprintf(stderr, "minfer: internal check failed: %s (%s:%d)\n", expr, file, line);
  std::abort();
}

}  // namespace minfer
