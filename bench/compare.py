#!/usr/bin/env python3
"""Interleaved speed comparison of minfer and llama.cpp's llama-bench on the same GGUF file.

Rounds alternate minfer and the peer (A/B/A/B ...); minfer samples the read bandwidth beside each of its decode runs. Printed are
medians, spreads, the ratio of the medians and the median of the per-round ratios; results are appended to
bench/results/<host>.jsonl. Run it alone on the machine.

Usage: compare.py MODEL.gguf --peer path/to/llama-bench [-p 512] [-n 128] [-d 0] [-r 5] [--threads 2] [--peer-args "-fa 1"]
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


def output(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def run_minfer(args):
    return json.loads(output([args.minfer, "bench", args.model, "-p", str(args.p), "-n", str(args.n), "-d", str(args.d), "-r", "1", "--threads",
                              str(args.threads), "--json", *shlex.split(args.minfer_args)]))


def run_peer(args):
    rows = json.loads(output([args.peer, "-m", args.model, "-p", str(args.p), "-n", str(args.n), "-d", str(args.d), "-r", "1", "-t", str(args.threads),
                              "-o", "json", *shlex.split(args.peer_args)]))
    rates = {}
    for row in rows:
        rates["prefill" if row["n_prompt"] else "decode"] = row["avg_ts"]
    return rates


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--minfer", default="build/release/minfer")
    parser.add_argument("-p", type=int, default=512)
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("-d", type=int, default=0)
    parser.add_argument("-r", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer-args", default="")
    parser.add_argument("--minfer-args", default="")
    parser.add_argument("--no-save", action="store_true")
    args = parser.parse_args()
    ours, theirs = [], []
    for _ in range(args.r):
        ours.append(run_minfer(args))
        theirs.append(run_peer(args))
    record = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "host": platform.node(), "model": pathlib.Path(args.model).name,
              "isa": ours[0]["isa"], "threads": args.threads, "n_prompt": args.p, "n_predict": args.n, "depth": args.d, "peer_args": args.peer_args,
              "minfer_args": args.minfer_args, "commit": output(["git", "rev-parse", "--short", "HEAD"]).strip()}
    for key in ("prefill", "decode"):
        a = [o[f"{key}_tokens_per_second"] for o in ours]
        b = [t[key] for t in theirs if key in t]
        if not b or not a[0]:
            continue
        record[key] = {"minfer": summary(a), "peer": summary(b), "ratio_of_medians": statistics.median(a) / statistics.median(b),
                       "ratios": summary([x / y for x, y in zip(a, b)])}
        print(f"{record['model']} {key}: minfer {statistics.median(a):.2f} ({min(a):.2f}..{max(a):.2f}), peer {statistics.median(b):.2f} "
              f"({min(b):.2f}..{max(b):.2f}) tokens/s, ratio {record[key]['ratios']['median']:.3f} ({record[key]['ratios']['min']:.3f}..{record[key]['ratios']['max']:.3f})")
    record["fraction_of_bandwidth"] = summary([o["fraction_of_bandwidth"] for o in ours])
    record["read_gb_per_s_beside"] = summary([o["read_gb_per_s_beside"]["median"] for o in ours])
    record["fraction_of_arithmetic_peak"] = summary([o["fraction_of_arithmetic_peak"] for o in ours])
    print(f"  of the limits: decode {record['fraction_of_bandwidth']['median']:.3f} of {record['read_gb_per_s_beside']['median']:.1f} GB/s, "
          f"prefill {record['fraction_of_arithmetic_peak']['median']:.3f} of the arithmetic peak")
    if not args.no_save:
        folder = pathlib.Path(__file__).parent / "results"
        folder.mkdir(exist_ok=True)
        with open(folder / f"{platform.node()}.jsonl", "a") as f:
            f.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
