#!/usr/bin/env python3
"""Tokenizing speed beside Hugging Face's tokenizers, on one thread, with ids compared.

Two texts of SIZE MB are made from a seed: English (words of this repository's documents in the order of a Markov chain)
and mixed (the same with code, numbers, and words of Chinese, Japanese, Korean, Russian, German, French, Arabic, Hindi,
emoji). Each is cut
into documents of 10 kB, since the peer slows down on long ones. Rounds alternate minfer and the peer; printed are medians and spreads in MB/s and the ratio of the medians.
The vocabularies are tokenizer.json files; each is also timed as it loads. Run it alone on the machine.
Needs: pip install tokenizers; bench_tokenizer (cmake -DMINFER_BENCH=ON)
Usage: tokenizer_speed.py --bench build/release/bench_tokenizer qwen3/tokenizer.json llama3/tokenizer.json [--rounds 5] [--size 10]
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = pathlib.Path(__file__).resolve().parent.parent
OTHER = ("今天天气很好我们去公园散步 東京は日本の首都です カタカナ 오늘은 날씨가 좋습니다 Слово за слово и строка кончилась Größte Straße Brücke "
         "déjà café hôtel où êtes-vous مرحبا بكم في العالم नमस्ते दुनिया 😀 🚀 👍🏽 π≈3.14159 x² ½").split()


def chain(words):
    after = {}
    for a, b in zip(words, words[1:]):
        after.setdefault(a, []).append(b)
    return after


def make_text(kind, size, seed=1):
    rng = random.Random(seed)
    prose = " ".join(p.read_text() for p in sorted(ROOT.glob("docs/*.md")))
    code = [line for p in sorted((ROOT / "src/base").glob("*.h")) for line in p.read_text().splitlines() if line.strip()]
    words = re.findall(r"\S+", prose)
    after, word, out, n = chain(words), words[0], [], 0
    while n < size:
        if kind == "mixed" and rng.random() < 0.25:
            piece = rng.choice([lambda: rng.choice(OTHER), lambda: rng.choice(OTHER) + rng.choice(OTHER), lambda: str(rng.randrange(10 ** rng.randrange(1, 9))),
                                lambda: "\n" + rng.choice(code) + "\n"])()
        else:
            word = rng.choice(after.get(word, words))
            piece = word
        piece += rng.choice([" "] * 20 + ["\n", ".\n\n", ", "])
        out.append(piece)
        n += len(piece.encode())
    return "".join(out)


def hash_of(ids):
    h = 0xcbf29ce484222325
    for i in ids:
        h = ((h ^ i) * 0x100000001b3) & 0xffffffffffffffff
    return f"{h:016x}"


def spread(values):
    return f"{statistics.median(values):8.1f} ({min(values):.1f}..{max(values):.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabularies", nargs="+")
    parser.add_argument("--bench", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=float, default=10, help="MB")
    args = parser.parse_args()
    try:
        import tokenizers
    except ImportError:
        sys.exit("tokenizer_speed.py needs: pip install tokenizers")
    print(f"tokenizers {tokenizers.__version__}, {args.rounds} rounds, {args.size} MB, one thread; MB/s: median (least..most)")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("english", "mixed"):
            text = make_text(kind, int(args.size * 1e6))
            documents = [text[i:i + 10000] for i in range(0, len(text), 10000)]
            path = pathlib.Path(folder) / kind
            path.write_text("\0".join(documents))
            size = path.stat().st_size / 1e6
            for vocabulary in args.vocabularies:
                peer = tokenizers.Tokenizer.from_file(vocabulary)
                ours, theirs, load, ids_hash, hashes = [], [], [], None, set()
                for _ in range(args.rounds):
                    done = json.loads(subprocess.run([args.bench, vocabulary, str(path), "1"], check=True, capture_output=True, text=True).stdout)
                    ours.append(size / done["encode_ms"][0] * 1e3)
                    load.append(done["load_ms"][0])
                    hashes.add(done["ids_hash"])
                    start = time.perf_counter()
                    encoded = peer.encode_batch_fast(documents, add_special_tokens=False)
                    theirs.append(size / (time.perf_counter() - start))
                    ids_hash = ids_hash or hash_of(i for e in encoded for i in e.ids)
                same = "same ids" if hashes == {ids_hash} else "DIFFERENT IDS"
                name = pathlib.Path(vocabulary).parent.name or vocabulary
                print(f"{kind:8} {name:10} minfer {spread(ours)}  peer {spread(theirs)}  ratio {statistics.median(ours) / statistics.median(theirs):5.2f}  "
                      f"{same}  json load {statistics.median(load):.0f} ms")


main()
