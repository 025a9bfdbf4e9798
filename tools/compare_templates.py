"""Compares random templates: what Jinja2 renders against what minfer renders.

Jinja2 is set up as in make_template_fixtures.py; minfer's side is the test program chat_test, which renders a file of
cases. Run by hand after a change to the engine; differences are printed as small as they can be made.

    python3 -m venv env && env/bin/pip install jinja2==3.1.6
    env/bin/python tools/compare_templates.py build/release/chat_test --count 20000 --seed 1

Where Python fails too, an error is enough; --wording also lists messages that differ. Ends with 1 after a difference.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import make_template_fixtures as fixtures
from random_templates import Generator

BATCH = 2000
# What holds an address or the inner name of a Python type cannot be equal.
UNEQUAL = re.compile(r" at 0x[0-9a-f]+|<(?:function|class|built-in|bound|gene|list_|dict_|method|slot)", re.I)
# Refused by minfer on purpose (docs/chat-templates.md), or made of chance.
REFUSED = re.compile(r"complex numbers|more than 14285 bits|needs more than|wider than")


class Slow(BaseException):  # not for render to catch
    pass


def on_alarm(*_):
    raise Slow


def render_python(env, source):
    """("ok", text), ("error", message) or None when it takes too long or cannot be compared."""
    if "random" in source:
        return None
    signal.setitimer(signal.ITIMER_REAL, 5)
    try:
        result = fixtures.render(env, source)
    except (Slow, MemoryError, RecursionError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if result.get("error") in ("name 'inf' is not defined", "name 'nan' is not defined"):
        return None  # Jinja's compiler cannot write these down
    if "expected" in result:
        if UNEQUAL.search(result["expected"].replace("%20", " ").replace("%3C", "<")):
            return None
        return ("ok", result["expected"])
    return ("error", result.get("error", "syntax error"))


def render_minfer(program, sources):
    """[("ok" or "error", text)]"""
    with tempfile.TemporaryDirectory() as folder:
        given, made = pathlib.Path(folder, "in.json"), pathlib.Path(folder, "out.json")
        cases = [{"template": source} for source in sources]
        given.write_text(json.dumps({"variables": fixtures.VARIABLES, "cases": cases}), encoding="utf-8")
        environment = dict(os.environ, MINFER_TEMPLATES_IN=str(given), MINFER_TEMPLATES_OUT=str(made))
        run = subprocess.run([program, "--gtest_filter=Fixtures.RenderAFile"], env=environment, capture_output=True)
        if run.returncode != 0:
            raise SystemExit(f"{program} ended with {run.returncode}\n{run.stdout.decode()[-3000:]}")
        return [tuple(json.loads(line)) for line in made.read_text(encoding="utf-8").split("\n")[:-1]]


def difference(python, minfer, wording):
    """"" when the two agree."""
    if python is None or (minfer[0] == "error" and REFUSED.search(minfer[1])):
        return ""
    if python[0] != minfer[0]:
        return f"{python[0]} became {minfer[0]}"
    if python[0] == "ok":
        return "" if python[1] == minfer[1] else "text"
    return "wording" if wording and python[1] != "syntax error" and not minfer[1].endswith(python[1]) else ""


def shrink(env, program, source, kind, wording):
    """Drops pieces of the source as long as the same kind of difference stays."""
    def differs(candidates):
        pythons = [render_python(env, c) for c in candidates]
        return [c for c, p, m in zip(candidates, pythons, render_minfer(program, candidates))
                if difference(p, m, wording) == kind]

    for _ in range(12):
        parts = re.findall(r"\{[%{#].*?[%}#]\}|\w+|\s+|.", source, re.S)
        candidates = []
        for size in (len(parts) // 2, len(parts) // 4, 8, 5, 4, 3, 2, 1):
            if 0 < size < len(parts):
                candidates += ["".join(parts[:i] + parts[i + size:]) for i in range(len(parts) - size + 1)]
        parts = re.findall(r"\w+|\s+|.", source, re.S)
        for size in (len(parts) // 2, 12, 8, 6, 5, 4, 3, 2, 1):
            if 0 < size < len(parts):
                candidates += ["".join(parts[:i] + parts[i + size:]) for i in range(len(parts) - size + 1)]
        smaller = differs(sorted(set(candidates), key=len)[:400])
        if not smaller:
            break
        source = min(smaller, key=len)
    return source


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="chat_test of a build folder")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wording", action="store_true", help="compare messages too")
    parser.add_argument("--show", type=int, default=20, help="differences to print")
    parser.add_argument("--no-shrink", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, on_alarm)
    env = fixtures.make_environment()
    tally, shown, seen = collections.Counter(), 0, set()
    for first in range(0, args.count, BATCH):
        sources = [Generator(args.seed * 1_000_003 + first + i).template() for i in range(min(BATCH, args.count - first))]
        for source, minfer in zip(sources, render_minfer(args.program, sources)):
            python = render_python(env, source)
            tally["skipped" if python is None else python[0]] += 1
            kind = difference(python, minfer, args.wording)
            if not kind:
                continue
            tally["different: " + kind] += 1
            if shown >= args.show:
                continue
            small = source if args.no_shrink else shrink(env, args.program, source, kind, args.wording)
            key = re.sub(r"\d+|'[^']*'", "", small)
            if key in seen:
                continue
            seen.add(key)
            shown += 1
            print(f"--- {kind}\n{small}\n  Jinja2: {render_python(env, small)}\n"
                  f"  minfer: {render_minfer(args.program, [small])[0]}", flush=True)
    print(", ".join(f"{name}: {n}" for name, n in sorted(tally.items())))
    return 1 if any(name.startswith("different") for name in tally) else 0


if __name__ == "__main__":
    sys.exit(main())
