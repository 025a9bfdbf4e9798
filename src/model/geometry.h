// Named geometries for benchmarks: the sizes of published models, without their weights.
// Source: each model's config.json as published.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/hparams.h"

namespace minfer {

struct Geometry {
  HParams hp;
  bool tied;  // the output matrix is the embedding table
};

std::optional<Geometry> find_geometry(const std::string& name);
std::vector<std::string> geometry_names();

}  // namespace minfer
