// See pretokenizers.h.
#include "tokenizer/pretokenizers.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace minfer {
namespace {

// Parts that several expressions share.
#define CONTRACTION R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define TAIL R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define UPPER_NOT_HAN R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define LOWER_NOT_HAN R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define BEFORE R"([^\r\n\p{L}\p{N}]?)"

// Steps that are no expressions.
constexpr std::string_view kByteDigits = "(byte digits)";

constexpr std::string_view kNumber = R"(\p{N})";
constexpr std::string_view kNumbers3 = R"(\p{N}{1,3})";
constexpr std::string_view kTriples = "[0-9][0-9][0-9]";
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 = CONTRACTION "|" BEFORE R"(\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL;
constexpr std::string_view kQwen2 = CONTRACTION "|" BEFORE R"(\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL;
constexpr std::string_view kQwen35 =
    CONTRACTION "|" BEFORE R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" TAIL;
constexpr std::string_view kUfakzeka = BEFORE R"(\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL;
constexpr std::string_view kMinicpm5 = CONTRACTION "|" BEFORE R"(\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL;
constexpr std::string_view kSeedCoder = CONTRACTION "|" BEFORE R"(\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)" TAIL;
constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kExaoneMoe = CONTRACTION
    "|" BEFORE R"((?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
// Words change at capitals: o200k and what was made after it.
constexpr std::string_view kO200k = BEFORE UPPER "*" LOWER "+" CONTRACTION "?|" BEFORE UPPER "+" LOWER "*" CONTRACTION
                                                 R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" TAIL;
constexpr std::string_view kO200kOneDigit = BEFORE UPPER "*" LOWER "+" CONTRACTION "?|" BEFORE UPPER "+" LOWER
                                                         "*" CONTRACTION R"(?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" TAIL;
constexpr std::string_view kTekken =
    BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" TAIL;
constexpr std::string_view kKimi =
    R"([\p{Han}]+|)" BEFORE UPPER_NOT_HAN "*" LOWER_NOT_HAN "+" CONTRACTION "?|" BEFORE UPPER_NOT_HAN "+" LOWER_NOT_HAN
    "*" CONTRACTION R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL;
constexpr std::string_view kBloom = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";
// DeepSeek V3 and its kin: numbers, East Asian, then words that take one ASCII sign along.
constexpr std::string_view kEastAsian = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" TAIL;
constexpr std::string_view kSpark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kYoutuEastAsian =
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+";
// DeepSeek LLM's letters are the cased ones of Unicode, spelled out.
constexpr std::string_view kDeepseekLetters =
    R"(\s?[)"
    R"(\x{41}-\x{5a}\x{61}-\x{7a}\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c})"
    R"(\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5})"
    R"(\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77})"
    R"(\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57})"
    R"(\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
    R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc})"
    R"(\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d})"
    R"(\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b})"
    R"(\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a})"
    R"(\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2})"
    R"(\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943})"
    R"(]+)";
constexpr std::string_view kDeepseekCjk = "[一-龥ࠀ-一가-퟿]+";

constexpr std::string_view kGpt2Steps[] = {kGpt2};
constexpr std::string_view kLlama3Steps[] = {kLlama3};
constexpr std::string_view kQwen2Steps[] = {kQwen2};
constexpr std::string_view kQwen35Steps[] = {kQwen35};
constexpr std::string_view kO200kSteps[] = {kO200k};
constexpr std::string_view kTekkenSteps[] = {kTekken};
constexpr std::string_view kDigitGpt2Steps[] = {kNumber, kGpt2};
constexpr std::string_view kDeepseekV3Steps[] = {kNumbers3, kEastAsian, kDeepseekV3};
constexpr std::string_view kBloomSteps[] = {kBloom};
constexpr std::string_view kBailingSteps[] = {kBailing};
constexpr std::string_view kGroupedO200kSteps[] = {R"(\d{1,3}(?=(?:\d{3})*\b))", kO200k};
// Hugging Face's Punctuation: Unicode's P and all of ASCII's signs.
constexpr std::string_view kFalconSteps[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, kByteDigits, kTriples};
constexpr std::string_view kDefaultSteps[] = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", kTriples};
constexpr std::string_view kDeepseekLlmSteps[] = {R"([\r\n])", kDeepseekLetters, "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
                                                  R"(\s+$)",   kDeepseekCjk,     kNumber};
constexpr std::string_view kDeepseekCoderSteps[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, kNumber};
constexpr std::string_view kVikingSteps[] = {kBloom, kNumber};
constexpr std::string_view kChameleonSteps[] = {"<sentinel:[0-9]+>",       "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                                                R"(([\t\n]|    |  ))",     kNumber,
                                                R"([\p{P}!-/:-@\[-`{-~])", kGpt2};
constexpr std::string_view kSuperbpeSteps[] = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};
constexpr std::string_view kSparkSteps[] = {kNumbers3, kEastAsian, kSpark, kNumber};
constexpr std::string_view kYoutuSteps[] = {kYoutuEastAsian, kO200kOneDigit};
constexpr std::string_view kLagunaSteps[] = {R"([^\n]+|[\n]+)", kQwen2};
constexpr std::string_view kMinicpm5Steps[] = {kNumbers3, kMinicpm5};
constexpr std::string_view kKimiSteps[] = {kKimi};
constexpr std::string_view kSeedCoderSteps[] = {kSeedCoder};
constexpr std::string_view kExaoneMoeSteps[] = {kExaoneMoe};
constexpr std::string_view kUfakzekaSteps[] = {kUfakzeka};

// Sorted by name. `default` serves files that name no pre-tokenizer.
constexpr NamedPretokenizer kPretokenizers[] = {
    {.name = "a.x-4.0", .regexes = kGpt2Steps},
    {.name = "bailingmoe", .regexes = kBailingSteps},
    {.name = "bailingmoe2", .regexes = kBailingSteps},
    {.name = "bloom", .regexes = kBloomSteps},
    {.name = "chameleon", .regexes = kChameleonSteps, .add_bos = true},
    {.name = "chatglm-bpe", .regexes = kLlama3Steps},
    {.name = "codeshell", .regexes = kDigitGpt2Steps},
    {.name = "cohere2moe", .regexes = kGroupedO200kSteps},
    {.name = "command-r", .regexes = kDigitGpt2Steps, .nfc = true},
    {.name = "dbrx", .regexes = kLlama3Steps},
    {.name = "deepseek-coder", .regexes = kDeepseekCoderSteps},
    {.name = "deepseek-llm", .regexes = kDeepseekLlmSteps},
    {.name = "deepseek-r1-qwen", .regexes = kQwen2Steps},
    {.name = "deepseek-v3", .regexes = kDeepseekV3Steps},
    {.name = "default", .regexes = kDefaultSteps},
    {.name = "exaone", .regexes = kDigitGpt2Steps},
    {.name = "exaone-moe", .regexes = kExaoneMoeSteps},
    {.name = "exaone4", .regexes = kGpt2Steps},
    {.name = "f2llmv2", .regexes = kQwen2Steps, .nfc = true},
    {.name = "falcon", .regexes = kFalconSteps},
    {.name = "falcon-h1", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "falcon3", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "gemma4", .regexes = {}, .characters = true},
    {.name = "gigachat", .regexes = kGpt2Steps},
    {.name = "glm4", .regexes = kLlama3Steps, .ignore_merges = true},
    {.name = "glm5", .regexes = kLlama3Steps, .ignore_merges = true},
    {.name = "gpt-2", .regexes = kGpt2Steps},
    {.name = "gpt-4o", .regexes = kO200kSteps},
    {.name = "gpt2", .regexes = kGpt2Steps},
    {.name = "gpt3-finnish", .regexes = kBloomSteps},
    {.name = "granite-docling", .regexes = kGpt2Steps},
    {.name = "granite-embed-multi-311m", .regexes = {}, .characters = true},
    {.name = "granite-embed-multi-97m", .regexes = kO200kSteps, .ignore_merges = true},
    {.name = "grok-2", .regexes = kQwen2Steps},
    {.name = "hunyuan", .regexes = kQwen2Steps},
    {.name = "hunyuan-dense", .regexes = kDeepseekV3Steps},
    {.name = "hy_v4", .regexes = kDeepseekV3Steps},
    {.name = "jais", .regexes = kGpt2Steps},
    {.name = "jina-de", .regexes = kGpt2Steps},
    {.name = "jina-es", .regexes = kGpt2Steps},
    {.name = "jina-v1-en", .regexes = kGpt2Steps, .add_sep = true},
    {.name = "jina-v2-code", .regexes = kGpt2Steps, .add_sep = true},
    {.name = "jina-v2-de", .regexes = kGpt2Steps},
    {.name = "jina-v2-es", .regexes = kGpt2Steps},
    {.name = "jina-v5-nano", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "joyai-llm", .regexes = kDeepseekV3Steps},
    {.name = "kanana2", .regexes = kO200kSteps},
    {.name = "kimi-k2", .regexes = kKimiSteps},
    {.name = "kormo", .regexes = kQwen2Steps},
    {.name = "laguna", .regexes = kLagunaSteps},
    {.name = "lfm2", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "llada-moe", .regexes = kBailingSteps},
    {.name = "llama-bpe", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "llama3", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "llama4", .regexes = kO200kSteps},
    {.name = "megrez", .regexes = kQwen2Steps},
    {.name = "mellum", .regexes = kGpt2Steps},
    {.name = "mellum2", .regexes = kDigitGpt2Steps},
    {.name = "midm-2.0", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "minerva-7b", .regexes = kDigitGpt2Steps},
    {.name = "minicpm5", .regexes = kMinicpm5Steps, .ignore_merges = true},
    {.name = "minimax-m2", .regexes = kO200kSteps},
    {.name = "modern-bert", .regexes = kGpt2Steps, .nfc = true},
    {.name = "mpt", .regexes = kGpt2Steps, .nfc = true},
    {.name = "olmo", .regexes = kGpt2Steps, .nfc = true},
    {.name = "phi-2", .regexes = kGpt2Steps},
    {.name = "pixtral", .regexes = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "poro-chat", .regexes = kBloomSteps},
    {.name = "qwen2", .regexes = kQwen2Steps, .nfc = true},
    {.name = "qwen35", .regexes = kQwen35Steps, .nfc = true},
    {.name = "refact", .regexes = kDigitGpt2Steps},
    {.name = "roberta-bpe", .regexes = kGpt2Steps, .add_sep = true},
    {.name = "sarvam-moe", .regexes = {}, .characters = true},
    {.name = "seed-coder", .regexes = kSeedCoderSteps},
    {.name = "smaug-bpe", .regexes = kLlama3Steps},
    {.name = "smollm", .regexes = kDigitGpt2Steps},
    {.name = "solar-open", .regexes = kQwen2Steps},
    {.name = "spark2_5", .regexes = kSparkSteps},
    {.name = "stablelm2", .regexes = kQwen2Steps},
    {.name = "starcoder", .regexes = kDigitGpt2Steps},
    {.name = "superbpe", .regexes = kSuperbpeSteps},
    {.name = "talkie", .regexes = kO200kSteps},
    {.name = "tekken", .regexes = kTekkenSteps, .ignore_merges = true, .add_bos = true},
    {.name = "tiny_aya", .regexes = kGroupedO200kSteps},
    {.name = "trillion", .regexes = kGpt2Steps},
    {.name = "ufakzeka", .regexes = kUfakzekaSteps},
    {.name = "viking", .regexes = kVikingSteps},
    {.name = "youtu", .regexes = kYoutuSteps, .ignore_merges = true},
};

}  // namespace

Result<std::vector<SplitStep>> NamedPretokenizer::steps() const {
  std::vector<SplitStep> steps;
  for (const std::string_view regex : regexes) {
    SplitStep step;
    if (regex == kByteDigits)
      step.scan = split_byte_digits;
    else
      step = MINFER_TRY(SplitStep::make(regex));
    steps.push_back(std::move(step));
  }
  return steps;
}

const NamedPretokenizer* find_pretokenizer(std::string_view name) {
  const auto* it = std::find_if(std::begin(kPretokenizers), std::end(kPretokenizers),
                                [&](const NamedPretokenizer& p) { return p.name == name; });
  return it == std::end(kPretokenizers) ? nullptr : it;
}

std::string pretokenizer_names() {
  std::string names;
  for (const NamedPretokenizer& p : kPretokenizers) {
    if (!names.empty()) names += ", ";
    names += p.name;
  }
  return names;
}

std::span<const NamedPretokenizer> named_pretokenizers() { return kPretokenizers; }

}  // namespace minfer
