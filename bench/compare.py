#!/usr/bin/env python3
"""Interleaved speed comparison of minfer and llama.cpp on the same GGUF file.

The peer is told by its name: llama-bench (prefill and decode), llama-batched-bench (decode of several sequences, -s), or llama-completion
(wall time of a whole process that answers a short prompt with -n tokens). Rounds alternate minfer and the peer (A/B/A/B ...); minfer samples
the read bandwidth beside each of its decode runs. Printed are medians, spreads and the median of the per-round ratios (above 1: minfer is
faster); each comparison is appended to bench/results/<cpu>.jsonl. Run it alone on the machine.

Usage: compare.py MODEL.gguf --peer path/to/llama-bench [-p 512] [-n 128] [-d 0] [-s 1] [-r 5] [--threads 2] [--peer-args "-fa 1"]
"""
import argparse
import datetime
import json
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import time

PROMPT = "Tell me how a river becomes a delta."
KINDS = {"llama-bench": "bench", "llama-batched-bench": "batch", "llama-completion": "process"}


def output(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def run_minfer(args):
    if args.kind == "process":
        return {"process": timed([args.minfer, "run", args.model, PROMPT, "-n", str(args.n), "--temp", "0", "--ignore-eos", "--threads",
                                  str(args.threads), *shlex.split(args.minfer_args)])}
    p = args.p if args.kind == "bench" else 0
    o = json.loads(output([args.minfer, "bench", args.model, "-p", str(p), "-n", str(args.n), "-d", str(args.d), "-s", str(args.s), "-r", "1",
                           "--threads", str(args.threads), "--json", *shlex.split(args.minfer_args)]))
    o["prefill"], o["decode"] = o["prefill_tokens_per_second"], o["decode_tokens_per_second"]
    return o


def run_peer(args):
    extra = shlex.split(args.peer_args)
    if args.kind == "process":
        return {"process": timed([args.peer, "-m", args.model, "-p", PROMPT, "-n", str(args.n), "--temp", "0", "--ignore-eos", "-t",
                                  str(args.threads), "-no-cnv", "--no-display-prompt", *extra])}
    if args.kind == "batch":
        context = args.s * (args.d + args.n) + 256
        lines = output([args.peer, "-m", args.model, "-npp", str(args.d), "-ntg", str(args.n), "-npl", str(args.s), "-c", str(context), "-t",
                        str(args.threads), "--output-format", "jsonl", *extra]).splitlines()
        return {"decode": json.loads(next(line for line in lines if line.startswith("{")))["speed_tg"]}
    rows = json.loads(output([args.peer, "-m", args.model, "-p", str(args.p), "-n", str(args.n), "-d", str(args.d), "-r", "1", "-t", str(args.threads),
                              "-o", "json", *extra]))
    return {"prefill" if row["n_prompt"] else "decode": row["avg_ts"] for row in rows}


def timed(command):
    """Runs per second of a whole process, so that more is better as for the other rates."""
    start = time.perf_counter()
    output(command)
    return 1 / (time.perf_counter() - start)


def cpu_name():
    try:
        names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def about(args):
    """What the line of every comparison says of the machine, the run and the code."""
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "cpu": cpu_name(), "model": pathlib.Path(args.model).name,
            "threads": args.threads, "peer_args": args.peer_args, "minfer_args": args.minfer_args,
            "commit": output(["git", "rev-parse", "--short", "HEAD"]).strip()}


def save(record):
    folder = pathlib.Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    with open(folder / f"{cpu_name().replace(' ', '-').lower()}-{platform.machine()}.jsonl", "a") as f:
        f.write(json.dumps(record) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--minfer", default="build/release/minfer")
    parser.add_argument("-p", type=int, default=512)
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("-d", type=int, default=0)
    parser.add_argument("-s", type=int, default=1, help="sequences decoded together, for llama-batched-bench")
    parser.add_argument("-r", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer-args", default="")
    parser.add_argument("--minfer-args", default="")
    parser.add_argument("--no-save", action="store_true")
    args = parser.parse_args()
    args.kind = KINDS.get(pathlib.Path(args.peer).name)
    if args.kind is None:
        sys.exit(f"--peer: found '{args.peer}', expected a program named {', '.join(KINDS)}")
    ours, theirs = [], []
    for _ in range(args.r):
        ours.append(run_minfer(args))
        theirs.append(run_peer(args))
    record = {**about(args), "peer": pathlib.Path(args.peer).name, "n_prompt": args.p, "n_predict": args.n, "depth": args.d, "sequences": args.s}
    for key in ("prefill", "decode", "process"):
        a, b = [o[key] for o in ours if o.get(key)], [t[key] for t in theirs if key in t]
        if not a or not b:
            continue
        record[key] = {"minfer": summary(a), "peer": summary(b), "ratios": summary([x / y for x, y in zip(a, b)])}
        unit = "runs" if key == "process" else "tokens"
        print(f"{record['model']} {key}: minfer {statistics.median(a):.2f} ({min(a):.2f}..{max(a):.2f}), peer {statistics.median(b):.2f} "
              f"({min(b):.2f}..{max(b):.2f}) {unit}/s, ratio {record[key]['ratios']['median']:.3f} ({record[key]['ratios']['min']:.3f}..{record[key]['ratios']['max']:.3f})")
    if args.kind != "process":
        record["isa"] = ours[0]["isa"]
        record["fraction_of_bandwidth"] = summary([o["fraction_of_bandwidth"] for o in ours])
        record["read_gb_per_s_beside"] = summary([o["read_gb_per_s_beside"]["median"] for o in ours])
        record["fraction_of_arithmetic_peak"] = summary([o["fraction_of_arithmetic_peak"] for o in ours])
        print(f"  of the limits: decode {record['fraction_of_bandwidth']['median']:.3f} of {record['read_gb_per_s_beside']['median']:.1f} GB/s, "
              f"prefill {record['fraction_of_arithmetic_peak']['median']:.3f} of the arithmetic peak")
    if not args.no_save:
        save(record)


if __name__ == "__main__":
    main()
