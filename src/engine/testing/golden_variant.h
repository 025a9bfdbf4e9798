// A copy of one of the tiny models of tests/golden with something changed, in a file that lasts as long as this object.
#pragma once

#include <functional>
#include <string>

#include "gguf/writer.h"

namespace minfer::testing {

class GoldenVariant {
 public:
  // `other_weights`: rows of some matrices change places, so that it draws other ids now and then.
  explicit GoldenVariant(const std::string& family, bool other_weights = true,
                         const std::function<void(gguf::MetadataBuilder&)>& change = nullptr);
  ~GoldenVariant();
  GoldenVariant(const GoldenVariant&) = delete;
  GoldenVariant& operator=(const GoldenVariant&) = delete;

  const std::string& path() const { return path_; }

 private:
  Status write(const std::string& family, bool other_weights,
               const std::function<void(gguf::MetadataBuilder&)>& change) const;
  std::string path_;
};

std::string golden_path(const std::string& family);

}  // namespace minfer::testing
