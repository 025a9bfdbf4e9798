// Golden: a tiny model with the logits another implementation gave for it, and ways to run it.
// Source: tools/make_golden.py made the folders beside this file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/runner.h"
#include "gguf/writer.h"

namespace minfer::golden {

struct Sequence {
  std::vector<int32_t> ids;
  std::vector<int32_t> rows;     // positions whose logits are listed
  std::vector<double> expected;  // [rows, n_vocab]
};

struct Golden {
  std::unique_ptr<Model> model;
  std::vector<Sequence> sequences;
};

std::vector<std::string> families();  // "llama", "mistral", ...
std::string folder(const std::string& family);
Golden load(const std::string& family);  // reports and gives no model when something is wrong with it

// The model of `file` with other metadata; reports, null when it is refused.
std::unique_ptr<Model> open_edited(const gguf::File& file, const std::function<void(gguf::MetadataBuilder&)>& edit);

// A device with an instruction set, as the command line would name them.
struct Device {
  std::string device, isa;
  std::string name() const { return isa.empty() ? device : device + "_" + isa; }
};
std::vector<Device> devices();  // ref first, then cpu with each instruction set there is here

struct RunSetup {
  Device device{"ref", ""};
  DType kv = DType::kF32;
  int n_threads = 1;
  int32_t n_seqs = 1;
  int32_t n_ctx = 0;  // 0: the model's
};
std::unique_ptr<Runner> make_runner(const Model& model, const RunSetup& setup);  // reports; null when it cannot be made

// KV types whose blocks fit the model's heads.
std::vector<DType> kv_types(const Model& model);

// Logits of every position [ids, n_vocab], fed to a fresh sequence in pieces of `piece` tokens (0: all at once).
std::vector<float> all_logits(Runner& runner, std::span<const int32_t> ids, size_t piece);

// Empty when all bits are equal; else the first index that differs with both values.
std::string first_difference(std::span<const float> got, std::span<const float> want, int64_t n_vocab);

}  // namespace minfer::golden
