#!/usr/bin/env python3
"""Writes a GGUF file with random weights of a named geometry, for speed comparisons on one file.

The values are random codes under scales that keep activations near 1; the file has no vocabulary (tokenizer model "none").
TYPE is f32, f16, bf16, q8_0, q4_0, q4_1, q4_k, q6_k or q4_k_m (q4_k, with q6_k where that mixture has it).

Needs the Python packages gguf and numpy. Usage: make_shape_gguf.py SHAPE TYPE OUT.gguf
"""
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

# name: arch, layers, embd, ff, heads, kv heads, head dim, vocab, context, rope base, tied
SHAPES = {
    "qwen3-0.6b": ("qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 40960, 1e6, True),
    "qwen3-4b": ("qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 40960, 1e6, True),
    "llama-3.2-1b": ("llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 5e5, True),
    "llama-3.1-8b": ("llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 5e5, False),
}
TYPES = {"f32": Q.F32, "f16": Q.F16, "bf16": Q.BF16, "q8_0": Q.Q8_0, "q4_0": Q.Q4_0, "q4_1": Q.Q4_1, "q4_k": Q.Q4_K, "q6_k": Q.Q6_K, "q4_k_m": Q.Q4_K}
rng = np.random.default_rng(1)


def f16(shape, value):
    return (value * rng.uniform(0.5, 1.5, shape)).astype(np.float16).view(np.uint8)


def codes(*shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


def matrix(rows, cols, qtype):
    """Bytes of a random matrix whose products with unit activations have variance near 1."""
    s = 1 / np.sqrt(cols)
    if qtype in (Q.F32, Q.F16, Q.BF16):
        x = rng.standard_normal((rows, cols), dtype=np.float32) * s
        if qtype == Q.F32:
            return x
        return x.astype(np.float16) if qtype == Q.F16 else (x.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(rows, cols * 2)
    block, size = gguf.GGML_QUANT_SIZES[qtype]
    n = rows * cols // block
    if qtype == Q.Q8_0:
        parts = [f16((n, 1), s / 73), codes(n, 32)]
    elif qtype == Q.Q4_0:
        parts = [f16((n, 1), s / 4.6), codes(n, 16)]
    elif qtype == Q.Q4_1:
        d = f16((n, 1), s / 4.6)
        parts = [d, (d.view(np.float16) * np.float16(-7.5)).view(np.uint8), codes(n, 16)]
    elif qtype == Q.Q4_K:
        parts = [f16((n, 1), s / 4.6 / 31), f16((n, 1), s * 7.5 / 4.6 / 31), codes(n, 12), codes(n, 128)]
    elif qtype == Q.Q6_K:
        parts = [codes(n, 192), rng.integers(16, 48, (n, 16), dtype=np.uint8), f16((n, 1), s / 18 / 32)]
    else:
        sys.exit(f"type {qtype.name} is not made here")
    return np.concatenate(parts, axis=1).reshape(rows, cols // block * size)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in SHAPES or sys.argv[2] not in TYPES:
        sys.exit(__doc__ + f"\nSHAPE is one of {', '.join(SHAPES)}")
    shape, type_name, out = sys.argv[1:]
    arch, n_layer, embd, ff, heads, heads_kv, hd, vocab, ctx, base, tied = SHAPES[shape]
    w = gguf.GGUFWriter(out, arch)
    w.add_name(shape)
    w.add_block_count(n_layer)
    w.add_context_length(ctx)
    w.add_embedding_length(embd)
    w.add_feed_forward_length(ff)
    w.add_head_count(heads)
    w.add_head_count_kv(heads_kv)
    w.add_key_length(hd)
    w.add_value_length(hd)
    w.add_rope_dimension_count(hd)
    w.add_rope_freq_base(base)
    w.add_layer_norm_rms_eps(1e-6 if arch == "qwen3" else 1e-5)
    w.add_vocab_size(vocab)
    w.add_tokenizer_model("none")
    base_type, mixed = TYPES[type_name], type_name == "q4_k_m"

    def add(name, rows, cols, qtype):
        w.add_tensor(name, matrix(rows, cols, qtype), raw_dtype=qtype)

    def norm(name, n):
        w.add_tensor(name, (1 + 0.1 * rng.standard_normal(n)).astype(np.float32))

    add("token_embd.weight", vocab, embd, Q.Q6_K if mixed else base_type)
    norm("output_norm.weight", embd)
    if not tied:
        add("output.weight", vocab, embd, Q.Q6_K if mixed else base_type)
    for i in range(n_layer):
        p = f"blk.{i}."
        # The mixture keeps v and down in q6_k in the first and last eighth of the layers and every third between.
        fine = Q.Q6_K if mixed and (i < n_layer // 8 or i >= 7 * n_layer // 8 or (i - n_layer // 8) % 3 == 2) else base_type
        norm(p + "attn_norm.weight", embd)
        add(p + "attn_q.weight", heads * hd, embd, base_type)
        add(p + "attn_k.weight", heads_kv * hd, embd, base_type)
        add(p + "attn_v.weight", heads_kv * hd, embd, fine)
        add(p + "attn_output.weight", embd, heads * hd, base_type)
        if arch == "qwen3":
            norm(p + "attn_q_norm.weight", hd)
            norm(p + "attn_k_norm.weight", hd)
        norm(p + "ffn_norm.weight", embd)
        add(p + "ffn_gate.weight", ff, embd, base_type)
        add(p + "ffn_up.weight", ff, embd, base_type)
        add(p + "ffn_down.weight", embd, ff, fine)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main()
