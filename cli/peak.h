// The machine's limits, measured once per host, instruction set and thread count and kept in the cache folder.
#pragma once

#include <optional>
#include <string>

#include "backend/cpu/peak.h"

namespace minfer::cli {

// What was measured before on this host for this thread count with the best instruction set; nullopt if nothing was.
std::optional<cpu::Peak> cached_peak(int n_threads, const std::string& isa = "");
// Errors: the cache folder cannot be written.
Status store_peak(int n_threads, const std::string& isa, const cpu::Peak& peak);
std::string peak_file();

}  // namespace minfer::cli
