#!/usr/bin/env python3
"""Writes tests/data/tokenizer/: a tiny byte-level BPE and a tiny SentencePiece BPE.

The answers come from Hugging Face tokenizers and from sentencepiece, set up as the models' own files set them up.
Needs: pip install tokenizers==0.23.3 sentencepiece protobuf
Usage: python3 tools/make_tokenizer_fixtures.py
"""
import io
import json
import pathlib

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/data/tokenizer"

CORPUS = [
    "A tokenizer cuts a text into pieces and gives each piece a number.",
    "The pieces are words, parts of words, signs, and single bytes where nothing longer fits.",
    "Counting 1, 2, 3, 10, 100, 1000 and 2024 is easy; 3.14159 is harder.",
    "def cut(text):\n    pieces = []\n    for word in text.split():\n        pieces.append(word)\n    return pieces\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += values[i];\n}\n",
    "It's what we'd expect, isn't it? They're sure I'll say we've won.",
    "Das Größte ist die Straße; der Fluß fließt über die Brücke.",
    "Le café d'été était fermé; où êtes-vous allés, à l'hôtel?",
    "Слово за слово, и строка кончилась.",
    "今天天气很好，我们去公园散步。",
    "東京は日本の首都です。カタカナとひらがな。",
    "오늘은 날씨가 좋습니다.",
    "the the the cat sat on the mat and the dog sat on the log",
]

TEXTS = [
    "Hello world", "  two  spaces ", "a\n\nb\n \n  c\t\td", "\r\nx\r\n\r\ny \n", "It's WE'LL they'Re 'tis I'm'd", "x'\u017f y'\u017fz",
    "1 12 123 1234 12345 1234567", "v1.2.3-rc4 0x1F 3,141", "a\u00b2 \u00bd \u2167 \u0661\u0662\u0663 \u0967\u0968", "caf\u00e9 cafe\u0301 \u212b \uac00\u1100\u1161",
    "Stra\u00dfe \u00dcBER \u01c5 \u02b0x", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643\u0645", "\u4eca\u5929\u5929\u6c14\uff0c\u5f88\u597d\u3002 \u4e00\u9fa5\u9fa6",
    "\u30ab\u30bf\u30ab\u30ca\u3068\u3072\u3089\u304c\u306a", "\uc624\ub298\uc740 \ub0a0\uc528", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f", "a\u00a0b\u3000c\u2028d\u0085e",
    "$100+5=105 <b>|~^`@#%&*", "!!??...\n\n--- ///\n//", "path/to/file.txt::x->y", "iPhone XMLParser HTTPSConnection ABCdef",
    "\u0000\u0001\u007f\u00ad\u200b\ufeff", "   ", "\t", "\n", "x ", " \u0301\u0302a", "SELECT * FROM t;--", "ends with spaces   ",
]

BYTES_GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
DIGITS = pre_tokenizers.Digits(individual_digits=True)


def write(name, value):
    OUT.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    (OUT / name).write_text(text.replace("],[", "],\n[").replace("},{", "},\n{") + "\n")


def byte_bpe():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([DIGITS, BYTES_GPT2])
    tok.decoder = decoders.ByteLevel()
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tok.train_from_iterator(CORPUS * 3, trainers.BpeTrainer(
        vocab_size=420, special_tokens=specials, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    tok.add_tokens([AddedToken("<think>", normalized=False)])
    vocab = tok.get_vocab()
    tokens = sorted(vocab, key=vocab.get)
    types = [3 if t in specials else 4 if t == "<think>" else 1 for t in tokens]
    merges = [" ".join(m) if isinstance(m, list) else m for m in json.loads(tok.to_str())["model"]["merges"]]
    texts = TEXTS + CORPUS + ["<|im_start|>user\nhi<|im_end|>\n", "a<think>b</think>", "<|im_end", "<<|im_end|>>"]
    cases = [{"text": t, "ids": tok.encode(t, add_special_tokens=False).ids} for t in texts]
    write("byte_bpe.json", {"model": "gpt2", "pre": "smollm", "tokens": tokens, "types": types, "merges": merges, "bos": 1, "eos": 2, "cases": cases})


def spm_bpe():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 3), model_writer=model, model_type="bpe", vocab_size=520, byte_fallback=True,
        character_coverage=0.98, normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
        allow_whitespace_only_pieces=True, user_defined_symbols=["<think>", "\t\t"], minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    tokens = [p.piece for p in proto.pieces]
    # sentencepiece ends at a NUL and puts no prefix before nothing: such texts are left out.
    texts = [t for t in TEXTS + CORPUS + ["a<think>b", "<think>b", "\t\tx", "\u2581x \u2581"] if "\0" not in t]
    cases = [{"text": t, "ids": sp.encode(t)} for t in texts]
    write("spm_bpe.json", {"model": "llama", "tokens": tokens, "types": [p.type for p in proto.pieces],
                           "scores": [p.score for p in proto.pieces], "bos": 1, "eos": 2, "unk": 0, "cases": cases})


if __name__ == "__main__":
    byte_bpe()
    spm_bpe()
