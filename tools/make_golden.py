#!/usr/bin/env python3
"""Makes tests/golden/<family>/: tiny random models of each family and the logits that Hugging Face transformers gives for
them in float64 (pip install torch transformers gguf numpy; made with torch 2.15, transformers 5.24).

  model.gguf      F32 weights, converted here: names, q/k rows of the llama family reordered for interleaved rotary
                  pairs, Gemma's norms with their 1 added
  expected.json   token ids of each sequence and the positions whose logits are kept
  logits.bin      float64, little endian, [kept positions of all sequences, n_vocab]

The numbers that a GGUF file holds as f32 (weights, eps, bases) are f32 values here too, so that both sides compute the
same function. Every draw comes from a generator seeded by the family's name.
"""
import json
import pathlib
import sys
import zlib

import gguf
import numpy as np
import torch
import transformers

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "tests/golden")
EPS = float(np.float32(1e-5))

# transformers computes norms, rotary tables and softmaxes in float32 whatever the model's type; here "float32" means
# float64, so that the expected logits carry no rounding of their own.
torch.set_default_dtype(torch.float64)
torch.float32 = torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double


def common(**more):
    return dict(dict(rms_norm_eps=EPS, max_position_embeddings=512, attention_dropout=0.0, use_cache=False), **more)


# --- families: (configuration, GGUF architecture, lengths of the sequences) ------------------------------------------
def llama():
    rope = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=64)
    c = transformers.LlamaConfig(vocab_size=61, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                 num_attention_heads=4, num_key_value_heads=2, head_dim=32, rope_parameters=rope,
                                 tie_word_embeddings=False, **common())
    return c, "llama", (300, 40)


def mistral():
    c = transformers.MistralConfig(vocab_size=37, hidden_size=42, intermediate_size=53, num_hidden_layers=2,
                                   num_attention_heads=3, num_key_value_heads=1, head_dim=14, sliding_window=21,
                                   rope_parameters=dict(rope_type="default", rope_theta=10000.0),
                                   tie_word_embeddings=False, **common())
    return c, "llama", (290, 60)


def mixtral():
    c = transformers.MixtralConfig(vocab_size=43, hidden_size=34, intermediate_size=27, num_hidden_layers=2,
                                   num_attention_heads=4, num_key_value_heads=2, head_dim=10, num_local_experts=5,
                                   num_experts_per_tok=2, sliding_window=None,
                                   rope_parameters=dict(rope_type="default", rope_theta=10000.0),
                                   tie_word_embeddings=False, **common())
    return c, "llama", (40, 33)


def qwen2():
    c = transformers.Qwen2Config(vocab_size=59, hidden_size=56, intermediate_size=75, num_hidden_layers=2,
                                 num_attention_heads=4, num_key_value_heads=2,
                                 rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
                                 tie_word_embeddings=False, **common())
    return c, "qwen2", (40, 33)


def qwen3():
    rope = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32)
    c = transformers.Qwen3Config(vocab_size=64, hidden_size=40, intermediate_size=51, num_hidden_layers=2,
                                 num_attention_heads=3, num_key_value_heads=1, head_dim=32, rope_parameters=rope,
                                 tie_word_embeddings=True, **common(max_position_embeddings=128))
    return c, "qwen3", (100, 33)


def gemma():
    c = transformers.GemmaConfig(vocab_size=47, hidden_size=38, intermediate_size=61, num_hidden_layers=2,
                                 num_attention_heads=2, num_key_value_heads=1, head_dim=22,
                                 rope_parameters=dict(rope_type="default", rope_theta=10000.0),
                                 hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", **common())
    return c, "gemma", (40, 33)


def gemma3():
    rope = dict(full_attention=dict(rope_type="linear", rope_theta=1000000.0, factor=8.0),
                sliding_attention=dict(rope_type="default", rope_theta=10000.0))
    types = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]
    c = transformers.Gemma3TextConfig(vocab_size=53, hidden_size=44, intermediate_size=57, num_hidden_layers=4,
                                      num_attention_heads=4, num_key_value_heads=2, head_dim=18,
                                      query_pre_attn_scalar=18, sliding_window=13, layer_types=types,
                                      rope_parameters=rope, hidden_activation="gelu_pytorch_tanh", **common())
    return c, "gemma3", (60, 33)


FAMILIES = dict(llama=llama, mistral=mistral, mixtral=mixtral, qwen2=qwen2, qwen3=qwen3, gemma=gemma, gemma3=gemma3)


# --- weights -----------------------------------------------------------------------------------------------------------
def draw(model, rng):
    """Weights with logits and attention scores of size 1 to 5, so that an error anywhere shows in the logits."""
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            shape = tuple(p.shape)
            if "norm" in name:  # multiples of 2^-10: adding 1 to Gemma's is exact
                center = 0 if "Gemma" in type(model).__name__ else 1
                value = center + rng.integers(-512, 513, shape) / 1024
            elif name.endswith("bias"):
                value = rng.normal(0, 0.5, shape)
            elif "embed_tokens" in name:
                value = rng.normal(0, 0.5, shape)
            else:
                gain = 1.4 if "q_proj" in name or "k_proj" in name else 1.0
                value = rng.normal(0, gain / shape[-1] ** 0.5, shape)
            p.copy_(torch.from_numpy(np.asarray(value, np.float32).astype(np.float64)))


PLAIN = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "mlp.gate.weight": "ffn_gate_inp.weight",
}
# Gemma 3 has a norm before and one after each block.
SANDWICH = {
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
}
TOP = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
       "lm_head.weight": "output.weight"}


def interleave(w, n_head):
    """Rows of each head from (i, i + D/2) pairs to (2i, 2i + 1) pairs."""
    return w.reshape(n_head, 2, w.shape[0] // n_head // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def tensors(model, config, arch):
    table = dict(PLAIN, **(SANDWICH if arch == "gemma3" else {}))
    out = {}
    for name, p in model.state_dict().items():
        w = p.numpy()
        if "norm" in name and arch.startswith("gemma"):
            w = w + 1
        if name in TOP:
            if name == "lm_head.weight" and config.tie_word_embeddings:
                continue
            out[TOP[name]] = w
            continue
        _, _, layer, rest = name.split(".", 3)
        prefix = f"blk.{layer}."
        if rest == "mlp.experts.gate_up_proj":
            out[prefix + "ffn_gate_exps.weight"], out[prefix + "ffn_up_exps.weight"] = np.split(w, 2, axis=1)
        elif rest == "mlp.experts.down_proj":
            out[prefix + "ffn_down_exps.weight"] = w
        else:
            base = rest.rsplit(".", 1)
            key = table[rest] if rest in table else table[base[0]] + "." + base[1]
            if arch == "llama" and key.startswith("attn_q"):
                w = interleave(w, config.num_attention_heads)
            if arch == "llama" and key.startswith("attn_k"):
                w = interleave(w, config.num_key_value_heads)
            out[prefix + key] = w
    return out


def write(path, name, model, config, arch):
    w = gguf.GGUFWriter(path, arch)
    w.add_name(f"golden-{name}")
    w.add_block_count(config.num_hidden_layers)
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_feed_forward_length(config.intermediate_size)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(config.num_key_value_heads)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_rope_dimension_count(head_dim)
    w.add_layer_norm_rms_eps(EPS)
    rope = config.rope_parameters
    if arch == "gemma3":
        w.add_float32("gemma3.rope.local.freq_base", rope["sliding_attention"]["rope_theta"])
        w.add_uint32("gemma3.attention.sliding_window_pattern", config.layer_types.index("full_attention") + 1)
        rope = rope["full_attention"]
    w.add_rope_freq_base(rope["rope_theta"])
    extra = {}
    if rope["rope_type"] == "llama3":
        inv = 1 / rope["rope_theta"] ** (np.arange(0, head_dim, 2) / head_dim)
        scaled = model.model.rotary_emb.inv_freq.numpy()
        extra["rope_freqs.weight"] = inv / scaled
    elif rope["rope_type"] in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        w.add_rope_scaling_factor(rope["factor"])
        if rope["rope_type"] == "yarn":
            w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    window = getattr(config, "sliding_window", None)
    if window and (arch == "gemma3" or name == "mistral"):
        w.add_sliding_window(window)
    if getattr(config, "num_local_experts", 0):
        w.add_expert_count(config.num_local_experts)
        w.add_expert_used_count(config.num_experts_per_tok)
    # Qwen's tables have rows beyond the vocabulary.
    n_tokens = config.vocab_size - (3 if name == "qwen3" else 0)
    w.add_tokenizer_model("llama")
    w.add_token_list(["<unk>", "<s>", "</s>"] + [f"\u2581w{i}" for i in range(3, n_tokens)])
    w.add_token_scores([0.0] * 3 + [-float(i) for i in range(3, n_tokens)])
    w.add_token_types([2, 3, 3] + [1] * (n_tokens - 3))
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    for key, value in sorted({**tensors(model, config, arch), **extra}.items()):
        w.add_tensor(key, np.ascontiguousarray(value, dtype=np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def kept(length):
    """All positions of a short sequence; of a long one the start, both sides of a tile's edge at 256, and the end."""
    return list(range(length)) if length <= 60 else sorted({*range(0, length, 17), *range(250, min(262, length)), *range(length - 12, length)})


def main():
    for name, family in FAMILIES.items():
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        config, arch, lengths = family()
        config._attn_implementation = config._experts_implementation = "eager"
        model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
        draw(model, rng)
        sequences, rows = [], []
        for length in lengths:
            ids = rng.integers(0, config.vocab_size, length).tolist()
            margins = []
            hooks = [m.register_forward_hook(lambda m, i, o: margins.append(route_margin(o, config)))
                     for n, m in model.named_modules() if n.endswith("mlp.gate")]
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0]
            for h in hooks:
                h.remove()
            assert logits.dtype == torch.float64 and torch.isfinite(logits).all()
            # A near tie between experts would make the answer depend on rounding.
            assert all(m > 1e-4 for m in margins), f"{name}: experts tie within {min(margins)}; take another seed"
            sequences.append(dict(ids=ids, rows=kept(length)))
            rows.append(logits.numpy()[kept(length)])
        folder = OUT / name
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / "model.gguf", name, model, config, arch)
        (folder / "expected.json").write_text(json.dumps(dict(sequences=sequences), separators=(",", ":")) + "\n")
        (folder / "logits.bin").write_bytes(np.concatenate(rows).astype("<f8").tobytes())
        print(name, "max |logit|", float(np.abs(np.concatenate(rows)).max()))


def route_margin(output, config):
    """Least gap between the last expert chosen and the first left out."""
    logits = output[0] if isinstance(output, tuple) else output
    p = torch.softmax(logits, -1).sort(-1, descending=True).values
    k = config.num_experts_per_tok
    return float((p[..., k - 1] - p[..., k]).min())


if __name__ == "__main__":
    main()
