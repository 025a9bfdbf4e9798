// K-quant blocks of a real file against the values listed beside it (the folder of cases; skipped when absent).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "quant/format.h"

namespace minfer::quant {
namespace {

std::string cases_dir() {
  const char* env = std::getenv("MINFER_CASES");
  return env != nullptr ? env : std::string(MINFER_SOURCE_DIR) + "/../shared/cases";
}

// Just enough of GGUF for this one file (the reader proper stands above this layer): finds `name` among the tensor
// infos; sets the offset of its data and moves `infos_end` up to the end of its info.
bool find_tensor(const std::string& file, const std::string& name, uint64_t& offset, size_t& infos_end) {
  size_t at = file.find(name);
  if (at == std::string::npos) return false;
  at += name.size();
  uint32_t n_dims = 0;
  if (at + 4 > file.size()) return false;
  std::memcpy(&n_dims, file.data() + at, 4);
  at += 4 + 8 * size_t{n_dims} + 4;
  if (n_dims > 4 || at + 8 > file.size()) return false;
  std::memcpy(&offset, file.data() + at, 8);
  infos_end = std::max(infos_end, at + 8);
  return true;
}

TEST(Cases, KQuantFileDecodesToItsListedValues) {
  const std::string dir = cases_dir() + "/models/kquant/";
  std::ifstream ref_file(dir + "tiny_kquant_ref.json"), gguf_file(dir + "tiny_kquant.gguf", std::ios::binary);
  if (!ref_file || !gguf_file) GTEST_SKIP() << "no cases at " << dir;
  const auto ref = nlohmann::json::parse(ref_file);
  const std::string file{std::istreambuf_iterator<char>(gguf_file), {}};

  size_t infos_end = 0;
  uint64_t offset = 0;
  for (const char* name : {"ref.f32.weight", "kq.Q4_K.weight", "kq.Q5_K.weight", "kq.Q6_K.weight", "kq.Q2_K.weight"}) {
    ASSERT_TRUE(find_tensor(file, name, offset, infos_end)) << name;
  }
  const size_t data = (infos_end + 31) / 32 * 32;

  for (const auto& [type_name, values] : ref["dequant"].items()) {
    const auto type = dtype_from_name(type_name);
    ASSERT_TRUE(type.has_value()) << type_name;
    ASSERT_TRUE(find_tensor(file, "kq." + type_name + ".weight", offset, infos_end));
    const auto n = static_cast<int64_t>(values.size());
    const size_t start = data + offset;
    ASSERT_LE(start + static_cast<size_t>(dtype_row_bytes(*type, n)), file.size());
    std::vector<float> got(values.size());
    format(*type).decode_row(file.data() + start, got.data(), n);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], values[i].get<float>()) << type_name << " value " << i;
  }
}

}  // namespace
}  // namespace minfer::quant
