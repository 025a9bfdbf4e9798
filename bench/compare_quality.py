#!/usr/bin/env python3
"""How close minfer's next-token distributions are to llama.cpp's on the same GGUF file.

Greedy answers of minfer to 20 prompts are fed to llama.cpp token by token (teacher forcing); reported are the share of
positions where both prefer the same token, the mean KL divergence KL(llama.cpp || minfer), and both programs' perplexity
on one text, cut into the same windows.

Needs the Python packages llama-cpp-python and numpy in the environment that runs it (they are no part of minfer).
Usage: compare_quality.py MODEL.gguf [--minfer build/release/minfer] [--text FILE] [--json]
"""
import argparse
import io
import json
import subprocess
import sys

import numpy as np

PROMPTS = [
    "What is the capital of France?", "Write a short poem about the sea.", "Explain how rain forms.", "List three uses of copper.",
    "What does a compiler do?", "Tell me a story about a small dragon.", "How do I boil an egg?", "What is the speed of light?",
    "Translate 'good morning' to Spanish.", "Why is the sky blue?", "Give me advice for learning the piano.", "Who wrote Hamlet?",
    "Describe a busy market.", "What are prime numbers?", "How does a bicycle stay upright?", "Write a haiku about winter.",
    "Name the planets of the solar system.", "What is photosynthesis?", "How can I sleep better?", "Write a function that adds two numbers.",
]


def minfer(args, *command):
    done = subprocess.run([args.minfer, *command, *args.extra], capture_output=True)
    if done.returncode != 0:
        sys.exit(f"minfer {' '.join(command[:2])} failed: {done.stderr.decode()}")
    return done.stdout


def minfer_logits(args, ids):
    return np.load(io.BytesIO(minfer(args, "logits", args.model, "--tokens", ",".join(map(str, ids)))))


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


class Peer:
    def __init__(self, path, n_ctx, threads):
        import llama_cpp
        self.llama = llama_cpp.Llama(model_path=path, n_ctx=n_ctx, n_batch=n_ctx, n_threads=threads, logits_all=True, verbose=False)

    def logits(self, ids):
        self.llama.reset()
        self.llama.eval(ids)
        return np.array(self.llama.scores[: len(ids)], dtype=np.float32)


def perplexity(logits_of, ids, window):
    total = count = 0
    for start in range(0, len(ids) - window + 1, window):
        chunk = ids[start:start + window]
        logp = log_softmax(logits_of(chunk))
        for i in range(window // 2, window - 1):
            total -= logp[i, chunk[i + 1]]
            count += 1
    return float(np.exp(total / count)), count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--minfer", default="build/release/minfer")
    parser.add_argument("--text", help="a text file of 20 KB or more for the perplexity")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    args, args.extra = parser.parse_known_args()
    peer = Peer(args.model, 2048, args.threads)
    same = positions = 0
    kl = []
    for prompt in PROMPTS:
        answer = json.loads(minfer(args, "run", args.model, prompt, "--temp", "0", "-n", str(args.tokens), "--json", "--ignore-eos"))
        ids = answer["prompt_ids"] + answer["token_ids"]
        first = len(answer["prompt_ids"]) - 1
        ours, theirs = log_softmax(minfer_logits(args, ids))[first:-1], log_softmax(peer.logits(ids))[first:-1]
        same += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
        positions += len(ours)
        kl.extend((np.exp(theirs) * (theirs - ours)).sum(-1).tolist())
    result = {"prompts": len(PROMPTS), "positions": positions, "same_token_share": same / positions, "mean_kl": float(np.mean(kl)),
              "median_kl": float(np.median(kl)), "max_kl": float(np.max(kl))}
    if args.text:
        with open(args.text, "rb") as f:
            text = f.read(20 * 1024).decode("utf-8", errors="ignore")
        ids = [int(x) for x in subprocess.run([args.minfer, "tokenize", args.model, "-"], input=text.encode(), capture_output=True, check=True).stdout.split()]
        ours, n = perplexity(lambda c: minfer_logits(args, c), ids, args.window)
        theirs, _ = perplexity(peer.logits, ids, args.window)
        result |= {"text_bytes": len(text.encode()), "tokens_scored": n, "perplexity_minfer": ours, "perplexity_llama_cpp": theirs,
                   "perplexity_difference": ours / theirs - 1}
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
