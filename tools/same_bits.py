#!/usr/bin/env python3
"""One answer: proves on a whole model that every path gives the same bits.

The SHA-256 of the logits after each token of a fixed sequence must be equal on the reference device, on every instruction set of
this machine, at 1, 2 and 3 threads, prefilled whole, in chunks and token by token; and a greedy answer must be the same text.
This holds for each KV type by itself (another KV type is another computation). With --types, the model is also written in those
weight types first.

Usage: same_bits.py MODEL.gguf [--minfer build/release/minfer] [--types f16,q8_0,q4_k,q6_k] [--tokens 40]
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

PROMPT = "Explain in a few sentences why the sea is salty."


def run(args, *command):
    done = subprocess.run([args.minfer, *command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"minfer {' '.join(command)} failed: {done.stderr}")
    return done.stdout


def paths(args):
    isas = [i for i in ("scalar", "avx2", "avxvnni", "avx512", "neon") if subprocess.run([args.minfer, "logits", args.model, "--tokens", "1", "--sha256", "--isa", i], capture_output=True).returncode == 0]
    yield "ref", ["--device", "ref"]
    for isa in isas:
        for threads in (1, 2, 3):
            yield f"{isa}, {threads} threads", ["--isa", isa, "--threads", str(threads)]
    for chunk in (1, 7, 32):
        yield f"chunks of {chunk}", ["--chunk", str(chunk)]


def check_model(args, name, model):
    ids = [int(x) for x in run(args, "tokenize", model, PROMPT * 4).split()][: args.tokens]
    tokens = ",".join(map(str, ids))
    failures = 0
    for kv in args.cache_types.split(","):
        hashes = collections.defaultdict(list)
        texts = collections.defaultdict(list)
        for label, flags in paths(args):
            out = run(args, "logits", model, "--tokens", tokens, "--sha256", "--cache-type", kv, *flags)
            hashes[out.split()[0]].append(label)
        out = run(args, "logits", model, "--tokens", tokens, "--sha256", "--cache-type", kv, "--token-by-token")
        hashes[out.split()[0]].append("token by token")
        for label, flags in paths(args):
            if label == "ref" and not args.ref_text:
                continue
            j = json.loads(run(args, "run", model, PROMPT, "--temp", "0", "-n", "32", "--json", "--cache-type", kv, *flags))
            texts[j["text"]].append(label)
        ok = len(hashes) == 1 and len(texts) == 1
        failures += not ok
        print(f"{name}, KV {kv}: {sum(map(len, hashes.values()))} paths, logits {sorted(hashes)[0][:16]}, {sum(map(len, texts.values()))} texts: "
              f"{'equal' if ok else 'DIFFERENT'}", flush=True)
        if not ok:
            for h, labels in list(hashes.items()) + list(texts.items()):
                print(f"    {h[:40]!r}: {', '.join(labels)}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--minfer", default="build/release/minfer")
    parser.add_argument("--types", default="")
    parser.add_argument("--cache-types", default="f32,f16,bf16,q8_0")
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--ref-text", action="store_true", help="generate the text on the reference device too (slow)")
    args = parser.parse_args()
    failures = check_model(args, pathlib.Path(args.model).name, args.model)
    with tempfile.TemporaryDirectory() as folder:
        for t in filter(None, args.types.split(",")):
            out = f"{folder}/{t}.gguf"
            run(args, "quantize", args.model, out, t, "--fallback", "q8_0")
            failures += check_model(args, f"as {t}", out)
            pathlib.Path(out).unlink()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
