#!/usr/bin/env python3
"""Writes tests/data/tokenizer/json/*.json: small tokenizer.json files of every supported kind, with the ids and decoded
texts that Hugging Face tokenizers give for them; and unigram SentencePiece models with the ids of sentencepiece itself.
Needs: pip install tokenizers==0.23.3 sentencepiece protobuf
Usage: python3 tools/make_tokenizer_json_fixtures.py
"""
import base64
import io
import json
import pathlib
import random
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from make_tokenizer_fixtures import CORPUS, TEXTS

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/tokenizer/json"
MARK = "\u2581"
TEXTS = TEXTS + CORPUS[:6] + [
    "", "[CLS] x [SEP]", "a <mask> b", "a<mask>b", "  <mask>  x", "fooword word wordy word, WORD", "x <tool> y", "x<tool>y", "NORM norm n\u00f6rm \ufb01sh \uff21\uff22",
    "<s>hi</s> there", "un\u00edt\u00e9 \u4e2d\u6587 \u0130\u0131 \u1e9e", "\u00ad\u200b\u0000x\ufffdy\ue000", "don't  stop , now . ok ?", "a\u0301\u0323\u0301e\u0301", "\u2581x \u2581\u2581y", "qqq\U00013000\U00013001q",
    "\tx\n\ny  z ", "word", " word ", "e\u0301\ufb01", "1\u00bd3"]
_random = random.Random(5)
_parts = [" ", "  ", "the", "cat", "<mask>", "word", "\n", "12", "\u00e9", "e\u0301", "\u4e2d", "!", "##", "\ufb01", "<tool>", "\u2581", "Q", "[SEP]", "\U0001f600"]
TEXTS += ["".join(_random.choice(_parts) for _ in range(9)) for _ in range(25)]

# A table of replacements as SentencePiece compiles it, small enough to commit: code points, a tab, code points.
RULES = {"FB01": "66 69", "FF21": "41", "FF22": "42", "65 301": "E9", "BD": "31 2F 32", "3000": "20", "A0": "20", "2026": "2E 2E 2E", "AD": "", "9": "20", "A": "20"}


def train_sp(kind, vocab, byte_fallback, **more):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write("".join(f"{a}\t{b}\n" for a, b in RULES.items()))
        rules.flush()
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS * 3), model_writer=model, model_type=kind, vocab_size=vocab, byte_fallback=byte_fallback,
            normalization_rule_tsv=rules.name, character_coverage=0.98, hard_vocab_limit=False, minloglevel=2, **more)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()), proto


def write(name, value):
    OUT.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    (OUT / f"{name}.json").write_text(text.replace("},{", "},\n{").replace('],["', '],\n["') + "\n")


def save(name, tok):
    cases = []
    for text in TEXTS:
        ids = tok.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": ids, "with_special": tok.encode(text).ids,
                      "decoded": tok.decode(ids), "shown": tok.decode(ids, skip_special_tokens=False)})
    write(name, {"tokenizer": json.loads(tok.to_str()), "cases": cases})


ADDED = [AddedToken("<mask>", lstrip=True, special=True), AddedToken("<tool>", rstrip=True, normalized=False), AddedToken("word", single_word=True, normalized=False),
         AddedToken("N\u00f6rm", normalized=True)]


def trained(tok, trainer):
    tok.train_from_iterator(CORPUS * 3, trainer)
    tok.add_tokens(ADDED)
    return tok


def bert(name, lowercase, **options):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tok.normalizer = normalizers.BertNormalizer(lowercase=lowercase, **options)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    trained(tok, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    tok.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                       special_tokens=[("[CLS]", tok.token_to_id("[CLS]")), ("[SEP]", tok.token_to_id("[SEP]"))])
    save(name, tok)


def byte_level(name, normalizer, steps, prefix=False, use_regex=True, roberta=False, **model):
    tok = Tokenizer(models.BPE(**model))
    if normalizer:
        tok.normalizer = normalizer
    tok.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)])
    tok.decoder = decoders.ByteLevel()
    trained(tok, trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    if roberta:
        tok.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    save(name, tok)


def llama_like(name, legacy, fuse, byte_fallback=True):
    tok = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=byte_fallback, fuse_unk=fuse))
    if legacy:
        tok.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
        tok.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    else:
        tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        tok.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    bytes_ = [f"<0x{b:02X}>" for b in range(256)] if byte_fallback else []
    trained(tok, trainers.BpeTrainer(vocab_size=560 if byte_fallback else 300, special_tokens=["<unk>", "<s>", "</s>"] + bytes_, limit_alphabet=60, show_progress=False))
    j = json.loads(tok.to_str())
    j["added_tokens"] = [t for t in j["added_tokens"] if not t["content"].startswith("<0x")]
    tok = Tokenizer.from_str(json.dumps(j))
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    save(name, tok)


def unigram(name, pre, decoder, normalizer, byte_fallback, charsmap=None):
    sp, proto = train_sp("unigram", 420, byte_fallback)
    vocab = [(p.piece, p.score) for p in proto.pieces]
    tok = Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=byte_fallback))
    steps = list(normalizer)
    if charsmap:
        steps.insert(0, normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap))
    if steps:
        tok.normalizer = normalizers.Sequence(steps)
    tok.pre_tokenizer = pre
    tok.decoder = decoder
    tok.add_special_tokens([AddedToken("<unk>", normalized=False), AddedToken("<s>", normalized=False), AddedToken("</s>", normalized=False)])
    tok.add_tokens(ADDED)
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
    save(name, tok)


def steps_only(name, normalizer, pre):
    """A unigram of single characters: the ids show what the steps made of the text."""
    alphabet = sorted({c for t in TEXTS for c in t} | {MARK} | set("\u00df\u1e9eabcdefghijklmnopqrstuvwxyz0123456789"))
    tok = Tokenizer(models.WordPiece({t: i for i, t in enumerate(["[UNK]"] + alphabet + ["##" + c for c in alphabet])}, unk_token="[UNK]", max_input_chars_per_word=500))
    if normalizer:
        tok.normalizer = normalizer
    if pre:
        tok.pre_tokenizer = pre
    tok.decoder = decoders.WordPiece(cleanup=False)
    cases = [{"text": t, "ids": tok.encode(t).ids} for t in TEXTS]
    write(name, {"tokenizer": json.loads(tok.to_str()), "cases": cases})


def sentencepiece_unigram(name, byte_fallback, **options):
    sp, proto = train_sp("unigram", 420, byte_fallback, **options)
    texts = [t for t in TEXTS if "\0" not in t]
    spec = proto.normalizer_spec
    write(name, {"tokens": [p.piece for p in proto.pieces], "types": [p.type for p in proto.pieces], "scores": [p.score for p in proto.pieces],
                 "charsmap": base64.b64encode(spec.precompiled_charsmap).decode(), "add_space_prefix": spec.add_dummy_prefix,
                 "remove_extra_whitespaces": spec.remove_extra_whitespaces, "cases": [{"text": t, "ids": sp.encode(t)} for t in texts]})


def main():
    bert("bert_uncased", True)
    bert("bert_cased", False, strip_accents=False, handle_chinese_chars=False)
    byte_level("gpt2", None, [])
    byte_level("roberta", None, [], prefix=True, roberta=True)
    byte_level("byte_nfkc", normalizers.NFKC(), [pre_tokenizers.Digits(True)], ignore_merges=True)
    byte_level("byte_split", normalizers.NFC(), [pre_tokenizers.Split(Regex(r"[\p{P}\p{S}]"), "merged_with_next"), pre_tokenizers.Split(" ", "merged_with_previous")], use_regex=False)
    llama_like("llama_legacy", True, True)
    llama_like("llama_first", False, True)
    llama_like("char_unk", True, False, byte_fallback=False)
    metaspace = pre_tokenizers.Metaspace(prepend_scheme="always")
    unigram("t5", pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace]), decoders.Metaspace(prepend_scheme="always"), [], False, charsmap=True)
    unigram("xlm", metaspace, decoders.Metaspace(), [normalizers.Replace(Regex(" {2,}"), " ")], False, charsmap=True)
    unigram("unigram_bytes", metaspace, decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always")]),
            [normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(left=False)], True)
    steps_only("steps_lower", normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]), pre_tokenizers.Whitespace())
    steps_only("steps_nfkd", normalizers.NFKD(), pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("a"), pre_tokenizers.Punctuation("merged_with_previous")]))
    steps_only("steps_plain", normalizers.Replace("the", "[the]"), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(False)]))
    sentencepiece_unigram("sp_unigram", False)
    sentencepiece_unigram("sp_unigram_bytes", True, remove_extra_whitespaces=False, add_dummy_prefix=False)


if __name__ == "__main__":
    main()
