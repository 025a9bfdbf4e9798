#include "engine/testing/golden_variant.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "gguf/reader.h"

namespace minfer::testing {

std::string golden_path(const std::string& family) {
  return std::string(MINFER_SOURCE_DIR) + "/tests/golden/" + family + "/model.gguf";
}

GoldenVariant::GoldenVariant(const std::string& family, bool other_weights,
                             const std::function<void(gguf::MetadataBuilder&)>& change) {
  static std::atomic<int> made{0};
  path_ = (std::filesystem::temp_directory_path() /
           ("minfer-" + std::to_string(getpid()) + "-" + std::to_string(made.fetch_add(1)) + ".gguf"))
              .string();
  const Status written = write(family, other_weights, change);
  if (!written.ok()) ADD_FAILURE() << written.error().message;
}

GoldenVariant::~GoldenVariant() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

Status GoldenVariant::write(const std::string& family, bool other_weights,
                            const std::function<void(gguf::MetadataBuilder&)>& change) const {
  const gguf::File from = MINFER_TRY(gguf::File::open(golden_path(family)));
  gguf::MetadataBuilder metadata;
  metadata.copy_all(from.metadata());
  if (change) change(metadata);
  std::vector<gguf::TensorSpec> specs;
  for (const gguf::TensorInfo& t : from.tensors()) specs.push_back({t.name, t.dtype, t.shape});
  gguf::Writer to = MINFER_TRY(gguf::Writer::create(path_, metadata, std::move(specs)));
  for (const gguf::TensorInfo& t : from.tensors()) {
    const std::span<const std::byte> all = from.bytes(t);
    const auto rows = static_cast<size_t>(t.shape.count() / t.shape.last());
    const size_t row_bytes = all.size() / rows;
    const bool moved = other_weights && t.name.find("ffn_down") != std::string::npos;
    for (size_t i = 0; i < rows; ++i)
      MINFER_TRY(to.write(all.subspan((moved ? rows - 1 - i : i) * row_bytes, row_bytes)));
  }
  return to.finish();
}

}  // namespace minfer::testing
