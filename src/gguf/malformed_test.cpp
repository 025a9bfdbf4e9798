// Spoiled files: each recipe changes one thing in a good file and names what the error must say. Then the same over a
// folder of malformed files from outside, where it is present.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "gguf/encode_bytes.h"
#include "gguf/reader.h"
#include "gguf/testing/raw_file.h"
#include "gguf/types.h"

namespace minfer::gguf {
namespace {

using testing::array_bytes;
using testing::base_file;
using testing::RawFile;
using testing::string_bytes;
using testing::u32_bytes;

constexpr uint64_t kMax = ~uint64_t{0};

struct Recipe {
  const char* id;
  std::function<void(RawFile&)> spoil;
  std::vector<std::string> says;  // all of them in the error
};

RawFile one_key(uint32_t type, std::vector<std::byte> value) {
  RawFile f;
  f.keys = {{"k", type, std::move(value), {}}};
  return f;
}

std::vector<std::byte> nested(int depth) {  // [[[...[7]...]]], `depth` arrays
  std::vector<std::byte> v = array_bytes(4, 1, u32_bytes(7));
  for (int i = 1; i < depth; ++i) v = array_bytes(9, 1, v);
  return v;
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {
      // header
      {"empty", [](RawFile& f) { f.cut_to = 0; }, {"magic", "4 bytes", "0 are left"}},
      {"magic_only", [](RawFile& f) { f.cut_to = 4; }, {"version at byte 4"}},
      {"magic", [](RawFile& f) { f.magic = 0x67676d6c; }, {"not a GGUF file", "'lmgg'", "'GGUF'"}},
      {"version_0", [](RawFile& f) { f.version = 0; }, {"version is 0", "2 or 3"}},
      {"version_1", [](RawFile& f) { f.version = 1; }, {"version is 1", "32-bit counts", "2 or 3"}},
      {"version_4", [](RawFile& f) { f.version = 4; }, {"version is 4", "2 or 3"}},
      {"version_swapped", [](RawFile& f) { f.version = 0x03000000; }, {"byte-swapped", "big endian, version 3"}},
      {"cut_in_counts", [](RawFile& f) { f.cut_to = 20; }, {"key count at byte 16", "4 are left"}},
      {"n_tensors_max", [](RawFile& f) { f.n_tensors = kMax; }, {"found 18446744073709551615 tensors", "at most"}},
      {"n_tensors_2_60", [](RawFile& f) { f.n_tensors = uint64_t{1} << 60; }, {"1152921504606846976 tensors"}},
      {"n_tensors_more", [](RawFile& f) { f.n_tensors = 5; }, {"name of tensor 5 of 5"}},
      {"n_keys_max", [](RawFile& f) { f.n_keys = kMax; }, {"found 18446744073709551615 keys", "at most"}},
      {"n_keys_more", [](RawFile& f) { f.n_keys = 9; }, {"name of tensor 1 of 4"}},
      // keys and values
      {"key_len_max", [](RawFile& f) { f.keys[1].name_bytes = kMax; }, {"name of key 2 of 8", "at most 65535"}},
      {"key_len_65536", [](RawFile& f) { f.keys[1].name = std::string(65536, 'k'); }, {"65536 bytes", "at most 65535"}},
      {"key_len_past_end", [](RawFile& f) { f.keys[1].name_bytes = 60000; }, {"name of key 2 of 8", "are left"}},
      {"key_empty", [](RawFile& f) { f.keys[1].name.clear(); }, {"name of key 2 of 8 is empty"}},
      {"key_twice", [](RawFile& f) { f.keys[2].name = "general.name"; }, {"key 'general.name'", "twice"}},
      {"value_type_13", [](RawFile& f) { f.keys[1].type = 13; }, {"key 'general.name'", "value type is 13", "0 to 12"}},
      {"value_type_max", [](RawFile& f) { f.keys[1].type = ~0u; }, {"value type is 4294967295"}},
      {"string_max",
       [](RawFile& f) { f.key("general.name").value = string_bytes("base", kMax - 7); },
       {"key 'general.name'", "18446744073709551608 bytes", "are left"}},
      {"string_1gib",
       [](RawFile& f) { f.key("general.name").value = string_bytes("base", 1 << 30); },
       {"key 'general.name'", "1073741824 bytes"}},
      {"scalar_cut",
       [](RawFile& f) { f = one_key(10, u32_bytes(1)), f.alignment = 1; },
       {"key 'k'", "takes 8 bytes", "4 are left"}},
      {"bool_two",
       [](RawFile& f) { f.key("tokenizer.ggml.add_bos_token").value = {std::byte{2}}; },
       {"key 'tokenizer.ggml.add_bos_token'", "BOOL value is 2", "0 or 1"}},
      {"bool_array_3",
       [](RawFile& f) {
         f.keys[0] = {"b", 9, array_bytes(7, 2, {std::byte{1}, std::byte{3}}), {}};
       },
       {"key 'b'", "BOOL value is 3"}},
      {"array_type",
       [](RawFile& f) { f.key("tokenizer.ggml.scores").value = array_bytes(77, 1, u32_bytes(0)); },
       {"key 'tokenizer.ggml.scores'", "array element type is 77"}},
      {"array_count_wrap",
       [](RawFile& f) { f.key("tokenizer.ggml.scores").value = array_bytes(10, (uint64_t{1} << 61) + 1, {}); },
       {"key 'tokenizer.ggml.scores'", "2305843009213693953 array elements", "at most"}},
      {"array_count_past_end",
       [](RawFile& f) { f.key("tokenizer.ggml.scores").value = array_bytes(4, 1000000, u32_bytes(0)); },
       {"1000000 array elements"}},
      {"array_strings_count",
       [](RawFile& f) { f.key("tokenizer.ggml.tokens").value = array_bytes(8, kMax, {}); },
       {"key 'tokenizer.ggml.tokens'", "array elements (STRING)", "at most"}},
      {"array_string_len",
       [](RawFile& f) { f.key("tokenizer.ggml.tokens").value = array_bytes(8, 1, string_bytes("x", kMax)); },
       {"key 'tokenizer.ggml.tokens'", "array element (STRING)"}},
      {"array_deep",
       [](RawFile& f) {
         f.keys[1] = {"deep", 9, nested(5), {}};
       },
       {"key 'deep'", "more than 4 deep"}},
      {"array_nested_count",
       [](RawFile& f) {
         f.keys[1] = {"deep", 9, array_bytes(9, kMax / 2, nested(1)), {}};
       },
       {"array elements (ARRAY)"}},
      {"alignment_0",
       [](RawFile& f) {
         f.keys[1] = {"general.alignment", 4, u32_bytes(0), {}};
       },
       {"general.alignment", "found 0", "power of two"}},
      {"alignment_4",
       [](RawFile& f) {
         f.keys[1] = {"general.alignment", 4, u32_bytes(4), {}};
       },
       {"at least 8"}},
      {"alignment_48",
       [](RawFile& f) {
         f.keys[1] = {"general.alignment", 4, u32_bytes(48), {}};
       },
       {"found 48"}},
      {"alignment_2_30",
       [](RawFile& f) {
         f.keys[1] = {"general.alignment", 4, u32_bytes(1 << 30), {}};
       },
       {"ends at byte", "aligned to 1073741824"}},
      {"alignment_string",
       [](RawFile& f) {
         f.keys[1] = {"general.alignment", 8, string_bytes("32"), {}};
       },
       {"general.alignment", "found STRING", "integer"}},
      {"alignment_negative",
       [](RawFile& f) {
         f.keys[1] = {"general.alignment", 5, u32_bytes(~31u), {}};
       },
       {"general.alignment", "found -32 (INT32)"}},
      // tensor infos
      {"n_dims_0", [](RawFile& f) { f.tensors[1].dims.clear(); }, {"'output_norm.weight'", "n_dims is 0", "1 to 4"}},
      {"n_dims_5",
       [](RawFile& f) {
         f.tensors[1].dims = {1, 1, 1, 1, 1};
       },
       {"'output_norm.weight'", "n_dims is 5"}},
      {"n_dims_max", [](RawFile& f) { f.tensors[1].n_dims = ~0u; }, {"n_dims is 4294967295"}},
      {"dim_0",
       [](RawFile& f) {
         f.tensors[0].dims = {4, 0};
       },
       {"'token_embd.weight'", "dimension 1 is 0"}},
      {"dim_0_of_two",
       [](RawFile& f) {
         f.tensors[0].dims = {0, 4};
       },
       {"dimension 0 is 0"}},
      {"dim_negative",
       [](RawFile& f) { f.tensors[1].dims = {uint64_t{1} << 63}; },
       {"dimension 0 is 9223372036854775808"}},
      {"dim_2_42",
       [](RawFile& f) { f.tensors[0].dims[1] = (uint64_t{1} << 42) + 1; },
       {"'token_embd.weight'", "offset 0 + 140737488355360 bytes exceeds the file"}},
      {"dims_wrap",
       [](RawFile& f) {
         f.tensors[0].dims = {uint64_t{1} << 32, uint64_t{1} << 32};
       },
       {"'token_embd.weight'", "overflows"}},
      {"dims_bytes_wrap",
       [](RawFile& f) {
         f.tensors[0].dims = {uint64_t{1} << 31, uint64_t{1} << 31};
       },
       {"overflows"}},
      {"dims_blocks_wrap",
       [](RawFile& f) {
         f.tensors[3].dims = {uint64_t{1} << 31, uint64_t{1} << 31, 2};
       },
       {"overflows"}},
      {"type_q4_2",
       [](RawFile& f) { f.tensors[2].type = 4; },
       {"'blk.0.ffn_up.weight'", "type 4 (Q4_2)", "removed", "Q4_K"}},
      {"type_iq1_s", [](RawFile& f) { f.tensors[2].type = 19; }, {"type 19 (IQ1_S)", "not supported", "MXFP4"}},
      {"type_nvfp4", [](RawFile& f) { f.tensors[2].type = 40; }, {"type 40 (NVFP4)", "not supported"}},
      {"type_tq1_0", [](RawFile& f) { f.tensors[2].type = 34; }, {"type 34 (TQ1_0)", "not supported"}},
      {"type_max", [](RawFile& f) { f.tensors[2].type = ~0u; }, {"type 4294967295 is unknown"}},
      {"block_misfit",
       [](RawFile& f) { f.tensors[0].type = 12; },
       {"'token_embd.weight'", "rows have 8 values", "multiple of 256", "Q4_K"}},
      {"offset_unaligned",
       [](RawFile& f) { f.tensors[1].offset += 4; },
       {"'output_norm.weight'", "offset 132 is not aligned", "multiple of 32"}},
      {"offset_past_end",
       [](RawFile& f) { f.tensors[1].offset = 1 << 20; },
       {"offset 1048576 + 32 bytes exceeds the file"}},
      {"offset_wrap", [](RawFile& f) { f.tensors[1].offset = kMax - 31; }, {"exceeds the file"}},
      {"data_cut", [](RawFile& f) { f.data.resize(256 + 135); }, {"'blk.0.attn_q.weight'", "exceeds the file"}},
      {"data_missing",
       [](RawFile& f) {
         f.data.clear();
         f.alignment = 1;
       },
       {"ends at byte"}},
      {"overlap_same", [](RawFile& f) { f.tensors[1].offset = 0; }, {"overlaps", "'token_embd.weight'"}},
      {"overlap_partly", [](RawFile& f) { f.tensors[2].offset = 96; }, {"overlaps"}},
      {"name_long",
       [](RawFile& f) { f.tensors[1].name = std::string(65, 'n'); },
       {"name of tensor 2 of 4", "65 bytes", "at most 64"}},
      {"name_len_max", [](RawFile& f) { f.tensors[1].name_bytes = kMax; }, {"name of tensor 2 of 4", "at most 64"}},
      {"name_empty", [](RawFile& f) { f.tensors[1].name.clear(); }, {"name of tensor 2 of 4 is empty"}},
      {"name_twice", [](RawFile& f) { f.tensors[1].name = "token_embd.weight"; }, {"'token_embd.weight'", "twice"}},
      {"name_control",
       [](RawFile& f) {
         f.tensors[1].name = "a\x1b[2J\n";
         f.tensors[1].type = 4;
       },
       {"'a\\x1b[2J\\x0a'"}},
      {"split",
       [](RawFile& f) {
         f.keys[1] = {"split.count", 2, {std::byte{5}, std::byte{0}}, {}};
       },
       {"5 parts"}},
      {"split_0",
       [](RawFile& f) {
         f.keys[1] = {"split.count", 2, {std::byte{0}, std::byte{0}}, {}};
       },
       {"split.count", "found 0"}},
      {"split_type",
       [](RawFile& f) {
         f.keys[1] = {"split.count", 8, string_bytes("5"), {}};
       },
       {"split.count", "STRING"}},
  };
  return all;
}

class Malformed : public ::testing::TestWithParam<size_t> {};

TEST_P(Malformed, IsRefusedPrecisely) {
  const Recipe& recipe = recipes()[GetParam()];
  RawFile f = base_file();
  recipe.spoil(f);
  const std::vector<std::byte> bytes = f.encode();
  const Result<File> r = File::open_memory(bytes, "spoiled.gguf");
  ASSERT_FALSE(r.ok());
  const std::string& message = r.error().message;
  EXPECT_EQ(message.rfind("[gguf] spoiled.gguf: ", 0), 0u) << message;
  for (const std::string& part : recipe.says)
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

INSTANTIATE_TEST_SUITE_P(Recipes, Malformed, ::testing::Range(size_t{0}, recipes().size()),
                         [](const auto& info) { return std::string(recipes()[info.param].id); });

TEST(MalformedTest, BaseFileIsWhatTheWriterWrites) {
  const std::vector<std::byte> bytes = base_file().encode();
  ASSERT_EQ(bytes, testing::base_file_by_writer());
  const Result<File> r = File::open_memory(bytes);
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(r->tensors().size(), 4u);
}

TEST(MalformedTest, OddButAllowed) {
  const std::vector<std::pair<const char*, std::function<void(RawFile&)>>> odd = {
      {"version 2", [](RawFile& f) { f.version = 2; }},
      {"key of 65535 bytes", [](RawFile& f) { f.keys[1].name = std::string(65535, 'k'); }},
      {"name of 64 bytes", [](RawFile& f) { f.tensors[1].name = std::string(64, 'n'); }},
      {"no padding after the last tensor", [](RawFile& f) { f.data.resize(256 + 136); }},
      {"bytes after the last tensor", [](RawFile& f) { f.data.resize(1000); }},
      {"a gap between tensors", [](RawFile& f) { f.tensors[3].offset += 32, f.data.resize(500); }},
      {"tensors in another order", [](RawFile& f) { std::swap(f.tensors[0], f.tensors[2]); }},
      {"arrays four deep",
       [](RawFile& f) {
         f.keys[1] = {"deep", 9, nested(4), {}};
       }},
      {"empty arrays",
       [](RawFile& f) {
         f.keys[1] = {"e", 9, array_bytes(8, 0, {}), {}};
       }},
      {"empty string", [](RawFile& f) { f.keys[1].value = string_bytes(""); }},
      {"alignment as INT32",
       [](RawFile& f) {
         f.keys[1] = {"general.alignment", 5, u32_bytes(32), {}};
       }},
      {"one part of one",
       [](RawFile& f) {
         f.keys[1] = {"split.count", 2, {std::byte{1}, std::byte{0}}, {}};
       }},
      {"no tensors, no padding", [](RawFile& f) { f.tensors.clear(), f.data.clear(), f.alignment = 1; }},
      {"nothing at all", [](RawFile& f) { f = RawFile(); }},
  };
  for (const auto& [what, change] : odd) {
    RawFile f = base_file();
    change(f);
    const Result<File> r = File::from_bytes(f.encode());
    EXPECT_TRUE(r.ok()) << what << ": " << r.error().message;
  }
}

// Every prefix of a good file, and every byte of it set to 0, 0x7f, 0x80 and 0xff: refused or opened, never a crash.
TEST(MalformedTest, CutAndFlippedBytesNeverCrash) {
  const std::vector<std::byte> good = base_file().encode();
  const size_t head = good.size() - base_file().data.size();
  EXPECT_FALSE(File::open_memory({}).ok());
  EXPECT_FALSE(File::from_bytes({}).ok());
  for (size_t n = 0; n < good.size(); ++n) {
    const Result<File> r = File::open_memory(std::span(good).first(n));
    if (n < good.size() - 24) {
      EXPECT_FALSE(r.ok()) << n;  // the last 24 bytes are padding
    }
  }
  for (size_t i = 0; i < head; ++i) {
    for (const unsigned v : {0x00u, 0x7fu, 0x80u, 0xffu}) {
      std::vector<std::byte> bytes = good;
      bytes[i] = static_cast<std::byte>(v);
      const Result<File> r = File::open_memory(bytes);
      if (!r.ok()) continue;
      for (const TensorInfo& t : r->tensors()) {
        const std::span<const std::byte> data = r->bytes(t);
        ASSERT_TRUE(data.size() <= bytes.size());
      }
    }
  }
}

TEST(MalformedTest, CasesFromOutside) {
  const char* env = std::getenv("MINFER_CASES");
  const std::filesystem::path dir =
      (env ? std::filesystem::path(env) : std::filesystem::path(MINFER_SOURCE_DIR) / "../shared/cases") /
      "gguf-malformed";
  if (!std::filesystem::exists(dir / "manifest.json")) GTEST_SKIP() << "no " << dir << " here (set MINFER_CASES)";
  // Well-formed files whose contents do not fit each other: the model layer refuses them.
  const std::set<std::string> later = {"arch_int",       "arch_unknown",  "head_count_kv_0", "block_count_0",
                                       "tokens_missing", "tokens_scalar", "scores_u8",       "scores_short",
                                       "vocab_vs_embd",  "rope_dim_odd",  "expert_used_gt"};
  std::ifstream in(dir / "manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(in);
  ASSERT_FALSE(manifest.empty());
  for (const auto& row : manifest) {
    const std::string id = row["id"], expected = row["expected"], path = (dir / std::string(row["file"])).string();
    const Result<File> r = File::open(path);
    const bool refuse = expected == "reject" && !later.contains(id);
    if (refuse) {
      EXPECT_FALSE(r.ok()) << id;
    } else if (expected != "reject_or_accept") {
      EXPECT_TRUE(r.ok()) << id << ": " << r.error().message;
    }
    if (!r.ok()) {
      EXPECT_NE(r.error().message.find(path), std::string::npos) << id << ": " << r.error().message;
    }
    RecordProperty(id, r.ok() ? "opened" : r.error().message);
  }
  const Result<File> base = File::open((dir / "_valid_base.gguf").string());
  EXPECT_TRUE(base.ok()) << base.error().message;

  const Result<File> scalar = File::open((dir / "tokens_scalar.gguf").string());
  ASSERT_TRUE(scalar.ok());
  EXPECT_FALSE(scalar->metadata().strings("tokenizer.ggml.tokens").ok());
  const Result<File> scores = File::open((dir / "scores_u8.gguf").string());
  ASSERT_TRUE(scores.ok());
  EXPECT_FALSE(scores->metadata().numbers<float>("tokenizer.ggml.scores").ok());
}

}  // namespace
}  // namespace minfer::gguf
