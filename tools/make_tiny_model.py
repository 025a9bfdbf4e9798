#!/usr/bin/env python3
"""Makes tiny models with random weights: tests/data/models/tiny-*.gguf, and any other size for tests that import this.
Standard library only, so that every machine that runs the tests can run it; the same arguments give the same bytes.

  tiny-spm.gguf   llama, SentencePiece vocabulary with byte fallback, a chat template that writes bos itself
  tiny-bpe.gguf   llama, byte-level BPE vocabulary (gpt-2 split), a ChatML template, tied output
"""
import pathlib
import random
import struct
import sys

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # value types of GGUF
F32_TENSOR, F16_TENSOR = 0, 1                          # tensor types

CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
WITH_BOS = ("{{ bos_token }}{% for m in messages %}{{ '[' + m['role'] + ']' + m['content'] + eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '[assistant]' }}{% endif %}")


def text(s):
    data = s.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    if kind == STRING:
        return text(v)
    if kind == BOOL:
        return struct.pack("<B", 1 if v else 0)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f"}[kind], v)


class Gguf:
    """Keys, values and tensors in order; bytes() is the file. Shapes are outermost first."""

    def __init__(self):
        self.keys, self.tensors = [], []

    def set(self, key, kind, v):
        self.keys = [k for k in self.keys if k[0] != key]
        self.keys.append((key, struct.pack("<I", kind) + value(kind, v)))

    def set_array(self, key, kind, values):
        head = struct.pack("<IIQ", ARRAY, kind, len(values))
        self.keys.append((key, head + b"".join(value(kind, v) for v in values)))

    def tensor(self, name, shape, kind, data):
        self.tensors.append((name, shape, kind, data))

    def bytes(self):
        out = struct.pack("<4sIQQ", b"GGUF", 3, len(self.tensors), len(self.keys))
        out += b"".join(text(key) + encoded for key, encoded in self.keys)
        offset, body = 0, b""
        for name, shape, kind, data in self.tensors:
            out += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset)
            padded = data + b"\0" * (-len(data) % 32)
            body += padded
            offset += len(padded)
        return out + b"\0" * (-len(out) % 32) + body


def bytes_to_unicode():
    """The printable stand-in of each byte in byte-level BPE vocabularies."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, n = {b: chr(b) for b in keep}, 0
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + n)
            n += 1
    return table


def spm_vocabulary(g):
    pieces = ["\u2581"] + [chr(c) for c in range(ord("a"), ord("z") + 1)]
    pieces += ["\u2581t", "he", "in", "er", "\u2581a", "on", "\u2581the", "the", "ing", "\u2581in", "\u2581he"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + pieces
    types = [2, 3, 3] + [6] * 256 + [1] * len(pieces)
    scores = [0.0] * 259 + [-float(len(pieces) - i) for i in range(len(pieces))]
    g.set("tokenizer.ggml.model", STRING, "llama")
    g.set_array("tokenizer.ggml.tokens", STRING, tokens)
    g.set_array("tokenizer.ggml.scores", F32, scores)
    g.set_array("tokenizer.ggml.token_type", I32, types)
    for name, id in (("unknown", 0), ("bos", 1), ("eos", 2)):
        g.set(f"tokenizer.ggml.{name}_token_id", U32, id)
    g.set("tokenizer.ggml.add_bos_token", BOOL, True)
    g.set("tokenizer.chat_template", STRING, WITH_BOS)
    return len(tokens)


def bpe_vocabulary(g):
    merges = ["Ġ t", "h e", "i n", "e r", "Ġ a", "Ġt he", "in g", "Ġ in"]
    table = bytes_to_unicode()
    tokens = [table[b] for b in range(256)] + [m.replace(" ", "") for m in merges]
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    types = [1] * len(tokens) + [3] * len(specials)
    tokens += specials
    g.set("tokenizer.ggml.model", STRING, "gpt2")
    g.set("tokenizer.ggml.pre", STRING, "gpt-2")
    g.set_array("tokenizer.ggml.tokens", STRING, tokens)
    g.set_array("tokenizer.ggml.merges", STRING, merges)
    g.set_array("tokenizer.ggml.token_type", I32, types)
    g.set("tokenizer.ggml.bos_token_id", U32, tokens.index("<|im_start|>"))
    g.set("tokenizer.ggml.eos_token_id", U32, tokens.index("<|im_end|>"))
    g.set("tokenizer.ggml.add_bos_token", BOOL, False)
    g.set("tokenizer.chat_template", STRING, CHATML)
    return len(tokens)


def model(vocabulary, n_layer=2, n_embd=32, n_head=2, n_head_kv=1, head_dim=32, n_ff=64, n_ctx=128, tied=False, seed=1,
          name="tiny", template=None):
    """A llama model as a Gguf, matrices in F16, norms in F32."""
    rng = random.Random(seed)
    g = Gguf()
    g.set("general.architecture", STRING, "llama")
    g.set("general.name", STRING, name)
    g.set("general.file_type", U32, 1)
    for key, v in (("block_count", n_layer), ("context_length", n_ctx), ("embedding_length", n_embd),
                   ("feed_forward_length", n_ff), ("attention.head_count", n_head),
                   ("attention.head_count_kv", n_head_kv), ("attention.key_length", head_dim),
                   ("attention.value_length", head_dim), ("rope.dimension_count", head_dim)):
        g.set(f"llama.{key}", U32, v)
    g.set("llama.attention.layer_norm_rms_epsilon", F32, 1e-5)
    g.set("llama.rope.freq_base", F32, 10000.0)
    n_vocab = vocabulary(g)
    if template is not None:
        g.set("tokenizer.chat_template", STRING, template)

    def matrix(tensor, rows, cols):
        values = [rng.gauss(0.0, 1.0 / cols ** 0.5) for _ in range(rows * cols)]
        g.tensor(tensor + ".weight", (rows, cols), F16_TENSOR, struct.pack(f"<{len(values)}e", *values))

    def norm(tensor, size):
        values = [1.0 + 0.1 * rng.gauss(0.0, 1.0) for _ in range(size)]
        g.tensor(tensor + ".weight", (size,), F32_TENSOR, struct.pack(f"<{size}f", *values))

    matrix("token_embd", n_vocab, n_embd)
    for layer in range(n_layer):
        p = f"blk.{layer}."
        norm(p + "attn_norm", n_embd)
        matrix(p + "attn_q", n_head * head_dim, n_embd)
        matrix(p + "attn_k", n_head_kv * head_dim, n_embd)
        matrix(p + "attn_v", n_head_kv * head_dim, n_embd)
        matrix(p + "attn_output", n_embd, n_head * head_dim)
        norm(p + "ffn_norm", n_embd)
        matrix(p + "ffn_gate", n_ff, n_embd)
        matrix(p + "ffn_up", n_ff, n_embd)
        matrix(p + "ffn_down", n_embd, n_ff)
    norm("output_norm", n_embd)
    if not tied:
        matrix("output", n_vocab, n_embd)
    return g


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "tests/data/models")
    out.mkdir(parents=True, exist_ok=True)
    (out / "tiny-spm.gguf").write_bytes(model(spm_vocabulary, name="tiny-spm", seed=1).bytes())
    (out / "tiny-bpe.gguf").write_bytes(model(bpe_vocabulary, name="tiny-bpe", seed=2, tied=True).bytes())


if __name__ == "__main__":
    main()
