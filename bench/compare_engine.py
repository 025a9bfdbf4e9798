#!/usr/bin/env python3
"""Interleaved comparison of minfer's engine with llama.cpp when many requests run at once, on the same GGUF file.

Scenarios (all unless some are named):
  decode1 decode4 decode16  so many answers grow together: tokens of all of them per second; the peer is llama-batched-bench
  shared                    16 prompts of 512 ids, half of it common, 64 tokens each, sent at once: time for all; the peer is llama-server
  stall                     a prompt of 4,000 ids arrives among 8 streams: time between tokens of the streams until its first token
  turn                      the second turn of a conversation of 3,000 ids: time to first token, also as a share of the first turn's

minfer is driven through bench_engine (its public C++ interface), llama-server over HTTP with the same ids, greedily. Rounds alternate (A/B/A/B),
each in a fresh process that answered one short request before. llama-server runs with its defaults and what a scenario cannot do without (stall:
a slot for each stream); where only the total counts its answers are not streamed, which spares it time. minfer guesses nothing ahead unless
--minfer-args "--speculation 8" asks for it. Printed are medians, spreads and the median of the per-round ratios (above 1: minfer is better);
each comparison is appended to bench/results/<cpu>.jsonl. Run it alone on the machine.

Usage: compare_engine.py MODEL.gguf --peer-dir FOLDER [SCENARIO...] [-r 3] [--threads 2] [--bench build/release/bench_engine]
"""
import argparse
import json
import pathlib
import shlex
import signal
import statistics
import sys
import time

from compare import about, output, save, summary
from peer_server import Server, now_ms

# The arguments of bench_engine; what the peer gets for them; and the figures: name, whether more is better, what minfer promises of its own
# figure or of the ratio.
SCENARIOS = {
    "decode1": {"run": "decode", "s": 1, "p": 16, "n": 128, "figures": [("tokens_per_second", True)], "ratio": 1.2},
    "decode4": {"run": "decode", "s": 4, "p": 16, "n": 128, "figures": [("tokens_per_second", True)], "ratio": 2},
    "decode16": {"run": "decode", "s": 16, "p": 16, "n": 64, "figures": [("tokens_per_second", True)], "ratio": 2},
    "shared": {"run": "shared", "s": 16, "p": 512, "n": 64, "figures": [("tokens_per_second", True), ("cached_tokens", True)], "ratio": 2},
    "stall": {"run": "stall", "s": 8, "p": 32, "n": 3000, "long": 4000,
              "figures": [("gap_ms.p50", False), ("gap_ms.p99", False), ("gap_ms.max", False), ("gap_before_ms.p50", False), ("first_token_ms", False),
                          ("stream_tokens_meanwhile", True)]},
    "turn": {"run": "turn", "s": 1, "p": 3000, "n": 64, "q": 32,
             "figures": [("first_turn_ms", False), ("second_turn_ms", False), ("second_over_first", False), ("after_restart_over_first", False)]},
}
PERCENT_SHARED = 50
SEED = 1
MASK = (1 << 64) - 1


def random_ids(stream, n, n_vocab):
    """Those of bench/engine_clients.h."""
    lo = n_vocab // 8
    span = max(1, n_vocab // 2 - lo)
    ids = []
    for i in range(n):
        z = (((SEED * 10000 + stream) << 32) + (i + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        ids.append(lo + (z ^ (z >> 31)) % span)
    return ids


def quantiles(values):
    if not values:
        return {"n": 0}
    values = sorted(values)
    return {"p50": values[int(0.5 * (len(values) - 1))], "p99": values[int(0.99 * (len(values) - 1))], "max": values[-1], "n": len(values)}


def run_minfer(args, c):
    command = [args.bench, c["run"], args.model, "-s", c["s"], "-p", c["p"], "-n", c["n"], "--seed", SEED, "--threads", args.threads]
    if "long" in c:
        command += ["--long", c["long"]]
    if "q" in c:
        command += ["-q", c["q"]]
        if args.kv_store:
            command += ["--kv-store", args.kv_store]
    return json.loads(output([str(x) for x in command] + shlex.split(args.minfer_args)))


def peer_decode(args, c, _):
    lines = output([args.batched_bench, "-m", args.model, "-npp", str(c["p"]), "-ntg", str(c["n"]), "-npl", str(c["s"]), "-c",
                    str(c["s"] * (c["p"] + c["n"]) + 256), "-t", str(args.threads), "--output-format", "jsonl", *shlex.split(args.peer_args)])
    return {"tokens_per_second": json.loads(next(line for line in lines.splitlines() if line.startswith("{")))["speed_tg"]}


def server(args, extra=()):
    return Server(args.server, args.model, args.threads, [*extra, *shlex.split(args.peer_args)])


def warm_up(s, n_vocab):
    s.ask(random_ids(9999, 16, n_vocab), 4).join()


def peer_shared(args, c, n_vocab):
    n_shared = c["p"] * PERCENT_SHARED // 100
    prompts = [random_ids(0, n_shared, n_vocab) + random_ids(i + 1, c["p"] - n_shared, n_vocab) for i in range(c["s"])]
    with server(args) as s:
        warm_up(s, n_vocab)
        begin = now_ms()
        answers = [s.ask(prompt, c["n"], stream=False) for prompt in prompts]
        ends = [a.join() for a in answers]
        total = max(a.finished for a in answers) - begin
    generated = sum(e["tokens_predicted"] for e in ends)
    return {"total_ms": total, "tokens_per_second": generated / total * 1e3, "generated_tokens": generated,
            "cached_tokens": sum(e["timings"].get("cache_n", 0) for e in ends)}


def peer_stall(args, c, n_vocab):
    context = c["s"] * (c["p"] + c["n"]) + c["long"] + 512
    with server(args, ["-np", str(c["s"] + 1), "-kvu", "-c", str(context)]) as s:
        warm_up(s, n_vocab)
        streams = [s.ask(random_ids(i, c["p"], n_vocab), c["n"]) for i in range(c["s"])]
        for a in streams:
            a.first.wait()
        calm = now_ms()
        time.sleep(1)
        newcomer = s.ask(random_ids(1000, c["long"], n_vocab), 1)
        newcomer.first.wait()
        if any(a.ended.is_set() for a in streams):
            sys.exit("llama-server: a stream ended before the long prompt was read: raise -n")
        for a in streams:
            a.cancel()
        newcomer.join()
        for a in streams:
            a.join()
    begin, end = newcomer.submitted, newcomer.arrivals[0]
    gaps, before = [], []
    for a in streams:
        for t0, t1 in zip(a.arrivals, a.arrivals[1:]):
            if t1 >= begin and t0 < end:
                gaps.append(t1 - t0)
            elif t0 >= calm and t1 < begin:
                before.append(t1 - t0)
    return {"gap_ms": quantiles(gaps), "gap_before_ms": quantiles(before), "first_token_ms": newcomer.first_ms(), "stream_tokens_meanwhile": len(gaps)}


def peer_turn(args, c, n_vocab):
    with server(args) as s:
        warm_up(s, n_vocab)
        one = s.ask(random_ids(0, c["p"], n_vocab), c["n"])
        one.join()
        two = s.ask(random_ids(0, c["p"], n_vocab) + one.ids + random_ids(1, c["q"], n_vocab), c["n"])
        end = two.join()
    return {"first_turn_ms": one.first_ms(), "second_turn_ms": two.first_ms(), "second_over_first": two.first_ms() / one.first_ms(),
            "second_cached_tokens": end["timings"].get("cache_n", 0), "answer_ids_seen": len(one.ids)}


PEERS = {"decode": peer_decode, "shared": peer_shared, "stall": peer_stall, "turn": peer_turn}


def figure(result, name):
    for key in name.split("."):
        result = result.get(key) if isinstance(result, dict) else None
    return result


def promise(name, c, ours, ratio, max_stall_ms):
    """What minfer promises of this figure, and whether it was kept."""
    if name == "tokens_per_second":
        return f"  promised ratio {c['ratio']}: {'kept' if ratio >= c['ratio'] else 'MISSED'}"
    if name == "gap_ms.p99":
        return f"  promised {1.2 * max_stall_ms:.0f}: {'kept' if ours <= 1.2 * max_stall_ms else 'MISSED'}"
    if name.endswith("_over_first"):
        return f"  promised 0.05: {'kept' if ours <= 0.05 else 'MISSED'}"
    return ""


def show(n):
    return f"{n:.3f}" if abs(n) < 1 else f"{n:.1f}"


def compare(args, name, c):
    ours, theirs = [], []
    for _ in range(args.r):
        ours.append(run_minfer(args, c))
        theirs.append(PEERS[c["run"]](args, c, ours[0]["n_vocab"]))
    record = {"figures": {}, "arguments": {k: c[k] for k in ("s", "p", "n", "long", "q") if k in c}, "minfer": ours, "peer": theirs}
    print(f"{pathlib.Path(args.model).name} {name} ({', '.join(f'-{k} {v}' for k, v in record['arguments'].items())}), {args.r} rounds")
    for key, more in c["figures"]:
        a, b = [figure(o, key) for o in ours], [figure(t, key) for t in theirs]
        if None in a:
            continue
        entry = {"minfer": summary(a)}
        text = f"  {key:26} minfer {show(statistics.median(a))} ({show(min(a))}..{show(max(a))})"
        if None not in b:
            entry["peer"] = summary(b)
            text += f", peer {show(statistics.median(b))} ({show(min(b))}..{show(max(b))})"
            pairs = [(x, y) if more else (y, x) for x, y in zip(a, b)]
            if all(y > 0 for _, y in pairs):
                entry["ratios"] = summary([x / y for x, y in pairs])
                text += f", ratio {entry['ratios']['median']:.2f} ({entry['ratios']['min']:.2f}..{entry['ratios']['max']:.2f})"
        ratio = entry.get("ratios", {}).get("median", 0)
        print(text + promise(key, c, statistics.median(a), ratio, ours[0].get("max_stall_ms", 0)), flush=True)
        record["figures"][key] = entry
    if any(o.get("same_answer") is False for o in ours):
        print("  WRONG: after the restart the answer was another one")
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--peer-dir", required=True, help="holds llama-server and llama-batched-bench")
    parser.add_argument("--bench", default="build/release/bench_engine")
    parser.add_argument("-r", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    for short, what in (("-s", "sequences"), ("-p", "ids of each prompt"), ("-n", "tokens of each answer"), ("--long", "ids of the long prompt")):
        parser.add_argument(short, type=int, help=f"{what}, instead of the scenario's")
    parser.add_argument("--kv-store", help="turn: measure minfer after a restart too, with its store in this folder")
    parser.add_argument("--peer-args", default="")
    parser.add_argument("--minfer-args", default="")
    parser.add_argument("--no-save", action="store_true")
    args = parser.parse_intermixed_args()
    for name in args.scenarios:
        if name not in SCENARIOS:
            sys.exit(f"scenario: found '{name}', expected {', '.join(SCENARIOS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server is stopped
    args.server = str(pathlib.Path(args.peer_dir) / "llama-server")
    args.batched_bench = str(pathlib.Path(args.peer_dir) / "llama-batched-bench")
    for name in args.scenarios or SCENARIOS:
        c = dict(SCENARIOS[name])
        c.update({k: getattr(args, k) for k in ("s", "p", "n", "long") if getattr(args, k) is not None and (k != "long" or k in c)})
        record = {**about(args), "scenario": name, **compare(args, name, c)}
        if not args.no_save:
            save(record)


if __name__ == "__main__":
    main()
