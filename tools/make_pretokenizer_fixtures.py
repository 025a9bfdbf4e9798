#!/usr/bin/env python3
"""Writes tests/data/tokenizer/splits.json: how each pre-tokenizer that GGUF files name cuts texts.

The expressions are written here as the models' tokenizer.json files have them; Hugging Face tokenizers do the cutting.
Needs: pip install tokenizers==0.23.3
Usage: python3 tools/make_pretokenizer_fixtures.py
"""
import json
import pathlib
import random

from tokenizers import Regex, normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/tokenizer/splits.json"

TEXTS = [
    "Hello world", "  two  spaces ", "a\n\nb\n \n  c\t\td", "\r\nx\r\n\r\ny \n", "It's WE'LL they'Re 'tis I'm'd", "x'\u017f y'\u017fz",
    "1 12 123 1234 12345 1234567", "v1.2.3-rc4 0x1F 3,141", "a\u00b2 \u00bd \u2167 \u0661\u0662\u0663 \u0967\u0968", "caf\u00e9 cafe\u0301 \u212b \uac00\u1100\u1161",
    "Stra\u00dfe \u00dcBER \u01c5 \u02b0x", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643\u0645", "\u4eca\u5929\u5929\u6c14\uff0c\u5f88\u597d\u3002 \u4e00\u9fa5\u9fa6",
    "\u30ab\u30bf\u30ab\u30ca\u3068\u3072\u3089\u304c\u306a", "\uc624\ub298\uc740 \ub0a0\uc528", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f", "a\u00a0b\u3000c\u2028d\u0085e",
    "$100+5=105 <b>|~^`@#%&*", "!!??...\n\n--- ///\n//", "path/to/file.txt::x->y", "iPhone XMLParser HTTPSConnection ABCdef",
    "\u0000\u0001\u007f\u00ad\u200b\ufeff", "   ", "\t", "\n", "x ", " \u0301\u0302a", "SELECT * FROM t;--", "ends with spaces   ",
    "hello\u4e16\u754cworld \u4e16\u754cHELLO\u4e16", "12345abc 1234 12\u00b2 1234567.89 _123", "(a|b), c.d! \u2026e\u3002f", "<sentinel:12>IMGIMGABCZ    x  y", "de la casa \u0915\u093f \u0916\u0940 x", "\u3105\u3106 \u2018x\u2019 \u2014\uff1a",
]

# One of the texts' parts after the other at random: borders between everything and everything.
_parts = [" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "12", "1234", "ab", "Ab", "CD", "\u00e9", "\u4e16", "\ud55c", "\u00b2", "\u0663", "!", "...", "/", "\u00a0", "\U0001f600", "$", "\u01c5", "\u02b0", "\u0301", "."]
_random = random.Random(11)
TEXTS += ["".join(_random.choice(_parts) for _ in range(12)) for _ in range(30)]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BEFORE = r"[^\r\n\p{L}\p{N}]?"


def words(word, digits, inside):
    return CONTRACTION + rf"|{BEFORE}{word}+|\p{{N}}{digits}| ?[^\s{inside}\p{{N}}]+[\r\n]*" + TAIL


def capitals(contraction, digits, end, without=""):
    upper = rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{without}]"
    lower = rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{without}]"
    return (rf"{BEFORE}{upper}*{lower}+{contraction}|{BEFORE}{upper}+{lower}*{contraction}"
            rf"|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+{end}*" + TAIL)


def split(*patterns):
    return [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
BYTES_GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
DIGITS = pre_tokenizers.Digits(individual_digits=True)
NFC = normalizers.NFC()
CJK = "[一-龥ࠀ-一가-퟿]+"
EAST_ASIAN = "[一-龥぀-ゟ゠-ヿ]+"
ASCII_SIGN_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
# The cased letters of Unicode 11, as DeepSeek LLM's expression spells them out.
LETTERS = "".join("-".join(f"\\x{{{end}}}" for end in part.split("-")) for part in (
    "41-5a 61-7a b5 c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376 377 37b-37d 37f 386 388-38a 38c 38e-3a1 "
    "3a3-3f5 3f7-481 48a-52f 531-556 10a0-10c5 13a0-13f5 13f8-13fd 1c90-1cba 1cbd-1cbf 1d00-1d2b 1d6b-1d77 "
    "1d79-1d9a 1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 1fb6-1fbc 1fbe "
    "1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2102 2107 210a-2113 2115 2119-211d 2124 "
    "2126 2128 212a-212d 212f-2134 2139 213c-213f 2145-2149 214e 2183 2184 2c00-2c7b 2c7e-2ce4 2ceb-2cee 2cf2 2cf3 "
    "a640-a66d a680-a69b a722-a76f a771-a787 a78b-a78e ab70-abbf fb00-fb06 fb13-fb17 ff21-ff3a ff41-ff5a "
    "10400-1044f 104b0-104d3 104d8-104fb 10c80-10cb2 10cc0-10cf2 118a0-118df 1e900-1e943 "
).split())
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
LLAMA3 = words(r"\p{L}", "{1,3}", r"\p{L}")
QWEN2 = words(r"\p{L}", "", r"\p{L}")
O200K = capitals(CONTRACTION + "?", "{1,3}", r"[\r\n/]")
BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"

PRE = {  # names: (normalizer, steps)
    "gpt-2 gpt2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum jais trillion granite-docling exaone4 "
    "jina-v1-en jina-v2-code roberta-bpe": (None, [BYTES_GPT2]),
    "mpt olmo modern-bert": (NFC, [BYTES_GPT2]),
    "smollm starcoder refact codeshell exaone minerva-7b mellum2": (None, [DIGITS, BYTES_GPT2]),
    "command-r": (NFC, [DIGITS, BYTES_GPT2]),
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe chatglm-bpe glm4 glm5": (None, split(LLAMA3) + [BYTES]),
    "qwen2 f2llmv2": (NFC, split(QWEN2) + [BYTES]),
    "deepseek-r1-qwen kormo megrez stablelm2 hunyuan solar-open grok-2": (None, split(QWEN2) + [BYTES]),
    "qwen35": (NFC, split(words(r"[\p{L}\p{M}]", "", r"\p{L}\p{M}")) + [BYTES]),
    "gpt-4o llama4 kanana2 talkie minimax-m2 granite-embed-multi-97m": (None, split(O200K) + [BYTES]),
    "tekken": (None, split(capitals("", "", r"[\r\n/]")) + [BYTES]),
    "kimi-k2": (None, split(r"[\p{Han}]+|" + capitals(CONTRACTION + "?", "{1,3}", r"[\r\n]", r"&&[^\p{Han}]")) + [BYTES]),
    "tiny_aya cohere2moe": (None, split(r"\d{1,3}(?=(?:\d{3})*\b)", O200K) + [BYTES]),
    "falcon": (None, [pre_tokenizers.Punctuation("contiguous"), BYTES_GPT2, pre_tokenizers.Digits(False)] + split("[0-9][0-9][0-9]")),
    "deepseek-llm": (None, split(r"[\r\n]", rf"\s?[{LETTERS}]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", CJK) + [DIGITS, BYTES]),
    "deepseek-coder": (None, split(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK) + [DIGITS, BYTES]),
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4": (None, split(r"\p{N}{1,3}", EAST_ASIAN, ASCII_SIGN_WORD + r"| ?[\p{P}\p{S}]+[\r\n]*" + TAIL) + [BYTES]),
    "spark2_5": (None, split(r"\p{N}{1,3}", EAST_ASIAN, ASCII_SIGN_WORD + r"| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+", r"\p{N}") + [BYTES]),
    "youtu": (None, split("[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", capitals(CONTRACTION + "?", "", r"[\r\n/]")) + [BYTES]),
    "default": (None, split(r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]") + [BYTES]),
    "bloom poro-chat gpt3-finnish": (None, split(BLOOM) + [BYTES]),
    "viking": (None, split(BLOOM, r"\p{N}") + [BYTES]),
    "chameleon": (None, split("<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2) + [BYTES]),
    "superbpe": (None, split(r"\p{N}+", r"(?=(\d{3})+(?!\d))") + [BYTES]),
    "bailingmoe bailingmoe2 llada-moe": (None, split(BAILING) + [BYTES]),
    "seed-coder": (None, split(CONTRACTION + rf"|{BEFORE}\p{{L}}+|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}" + r"\r\n]+" + TAIL) + [BYTES]),
    "ufakzeka": (None, split(rf"{BEFORE}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*" + TAIL) + [BYTES]),
    "laguna": (None, split(r"[^\n]+|[\n]+", QWEN2) + [BYTES]),
    "minicpm5": (None, split(r"\p{N}{1,3}", words(r"\p{L}", "+", r"\p{L}")) + [BYTES]),
    "exaone-moe": (None, split(CONTRACTION + rf"|{BEFORE}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?" + r"|\s*[\r\n]|\s+(?!\S)|\s+") + [BYTES]),
}


def main():
    pieces, same_as = {}, {}
    for names, (norm, steps) in PRE.items():
        first = names.split()[0]
        seq = pre_tokenizers.Sequence(steps)
        pieces[first] = [[p for p, _ in seq.pre_tokenize_str(norm.normalize_str(t) if norm else t)] for t in TEXTS]
        same_as.update({name: first for name in names.split()})
    text = json.dumps({"texts": TEXTS, "same_as": same_as, "pieces": pieces}, ensure_ascii=True, separators=(",", ":"))
    OUT.write_text(text.replace("],[", "],\n[") + "\n")


main()
