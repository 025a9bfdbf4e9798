"""Writes tests/data/sampling/*.json: which ids llama.cpp's samplers leave of a row of logits, and with what probability.

    tools/make_sampler_fixtures.py path/to/libllama.so      a build of llama.cpp from 2026 or later; needs numpy

Each case goes through the samplers one by one over their C interface, then through the softmax of `dist`. The pick of
the samplers that draw (mirostat, adaptive-p) is recorded, so that the state after it can be compared.
"""
import ctypes as C
import json
import pathlib
import sys

import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/sampling"


class Data(C.Structure):
    _fields_ = [("id", C.c_int32), ("logit", C.c_float), ("p", C.c_float)]


class Array(C.Structure):
    _fields_ = [("data", C.POINTER(Data)), ("size", C.c_size_t), ("selected", C.c_int64), ("sorted", C.c_bool)]


class Vector(C.Structure):  # std::vector<T> of libstdc++
    _fields_ = [("begin", C.c_void_p), ("end", C.c_void_p), ("cap", C.c_void_p)]


F, I, U, Z = C.c_float, C.c_int32, C.c_uint32, C.c_size_t
SIGNATURES = {
    "top_k": [I], "top_p": [F, Z], "min_p": [F, Z], "typical": [F, Z], "temp": [F], "temp_ext": [F, F, F],
    "xtc": [F, F, Z, U], "top_n_sigma": [F], "mirostat": [I, U, F, F, I], "mirostat_v2": [U, F, F],
    "adaptive_p": [F, F, U], "penalties": [I, I, F, F, F], "dist": [U],
}
DRY_TESTING = "_Z30llama_sampler_init_dry_testingffiiRKSt6vectorIS_IiSaIiEESaIS1_EE"


class Llama:
    def __init__(self, path):
        self.lib = C.CDLL(path)
        for name, kinds in SIGNATURES.items():
            f = getattr(self.lib, f"llama_sampler_init_{name}")
            f.argtypes, f.restype = kinds, C.c_void_p
        self.lib.llama_sampler_apply.argtypes = [C.c_void_p, C.POINTER(Array)]
        self.lib.llama_sampler_accept.argtypes = [C.c_void_p, C.c_int32]
        self.lib.llama_sampler_free.argtypes = [C.c_void_p]
        self.dry_testing = getattr(self.lib, DRY_TESTING)
        self.dry_testing.argtypes, self.dry_testing.restype = [F, F, I, I, C.POINTER(Vector)], C.c_void_p

    def make(self, name, *args):
        return getattr(self.lib, f"llama_sampler_init_{name}")(*args)

    def make_dry(self, multiplier, base, allowed, last_n, breakers):
        arrays = [(I * len(b))(*b) for b in breakers]
        inner = (Vector * len(breakers))()
        for v, a in zip(inner, arrays):
            v.begin = C.addressof(a)
            v.end = v.cap = C.addressof(a) + C.sizeof(a)
        outer = Vector(C.addressof(inner), C.addressof(inner) + C.sizeof(inner), C.addressof(inner) + C.sizeof(inner))
        return self.dry_testing(multiplier, base, allowed, last_n, C.byref(outer))

    def apply(self, samplers, logits):
        """The data left, {id: (logit, p)}, and the id picked by the last sampler (or None)."""
        data = (Data * len(logits))(*[Data(i, float(x), 0) for i, x in enumerate(logits)])
        array = Array(C.cast(data, C.POINTER(Data)), len(logits), -1, False)
        for s in samplers:
            self.lib.llama_sampler_apply(s, C.byref(array))
        left = {array.data[i].id: (array.data[i].logit, array.data[i].p) for i in range(array.size)}
        picked = array.data[array.selected].id if array.selected >= 0 else None
        return {k: v for k, v in left.items() if v[0] != -np.inf}, picked


def rows():
    """No two logits are equal: llama.cpp leaves open which of them comes first."""
    rng = np.random.default_rng(5)
    peaked = rng.normal(0, 3, 120)
    flat = rng.normal(0, 0.5, 120)
    zipf = -1.2 * np.log(rng.permutation(440) + 1.0) + rng.normal(0, 0.05, 440)
    wide = rng.normal(0, 2.5, 1600)  # more than llama.cpp and minfer sort at once
    return [rng.permutation(np.unique(np.round(r, 5).astype(np.float32)))[:n]
            for r, n in ((peaked, 96), (flat, 96), (zipf, 400), (wide, 1500))]


ORDER = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]
OFF = {"repeat_penalty": 1.0, "repeat_last_n": 64, "frequency_penalty": 0.0, "presence_penalty": 0.0,
       "dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 64, "dry_breakers": [],
       "top_n_sigma": -1.0, "top_k": 0, "typical_p": 1.0, "top_p": 1.0, "min_p": 0.0, "xtc_probability": 0.0,
       "xtc_threshold": 0.1, "min_keep": 0, "temperature": 1.0, "dynatemp_range": 0.0, "dynatemp_exponent": 1.0}


def chain(llama, params, order, history, n_vocab):
    p = {**OFF, **params}
    everything = max(len(history), 1)
    last = lambda n: everything if n < 0 else n
    out = []
    for name in order:
        if name == "penalties":
            s = llama.make("penalties", n_vocab, last(p["repeat_last_n"]), p["repeat_penalty"], p["frequency_penalty"],
                           p["presence_penalty"])
        elif name == "dry":
            if p["dry_multiplier"] == 0:  # the interface for tests does not check that
                continue
            s = llama.make_dry(p["dry_multiplier"], p["dry_base"], p["dry_allowed_length"], last(p["dry_penalty_last_n"]),
                               p["dry_breakers"])
        elif name == "top_n_sigma":
            s = llama.make("top_n_sigma", p["top_n_sigma"])
        elif name == "top_k":
            s = llama.make("top_k", p["top_k"])
        elif name == "typ_p":
            s = llama.make("typical", p["typical_p"], p["min_keep"])
        elif name == "top_p":
            s = llama.make("top_p", p["top_p"], p["min_keep"])
        elif name == "min_p":
            s = llama.make("min_p", p["min_p"], p["min_keep"])
        elif name == "xtc":
            s = llama.make("xtc", p["xtc_probability"], p["xtc_threshold"], p["min_keep"], 1)
        elif name == "temperature":
            s = llama.make("temp_ext", p["temperature"], p["dynatemp_range"], p["dynatemp_exponent"])
        out.append(s)
    for s in out:
        for token in history:
            llama.lib.llama_sampler_accept(s, token)
    return out


def single_params():
    for k in (1, 7, 40, 300, 5000):
        yield {"top_k": k}
    for p in (0.05, 0.5, 0.9, 0.999):
        for keep in (0, 12):
            yield {"top_p": p, "min_keep": keep}
            yield {"typical_p": p, "min_keep": keep}
    for p in (0.001, 0.1, 0.6, 1.0):
        for keep in (0, 9):
            yield {"min_p": p, "min_keep": keep}
    for n in (0.3, 1.0, 2.5):
        yield {"top_n_sigma": n}
    for threshold in (0.001, 0.01, 0.05, 0.1, 0.3, 0.6):
        for keep in (0, 92):
            yield {"xtc_probability": 1.0, "xtc_threshold": threshold, "min_keep": keep}
    for t in (0.1, 0.7, 1.9):
        yield {"temperature": t}
        for r, e in ((0.05, 1.0), (0.5, 0.4), (2.0, 3.0)):
            yield {"temperature": t, "dynatemp_range": r, "dynatemp_exponent": e}


def history_cases(rng):
    """(params, history)"""
    for last_n in (0, 3, 20, -1):
        for repeat, frequency, presence in ((1.3, 0.0, 0.0), (1.0, 0.4, 0.0), (1.0, 0.0, 0.9), (0.7, -0.3, 0.2)):
            history = [int(x) for x in rng.integers(0, 12, 40)]
            yield {"repeat_last_n": last_n, "repeat_penalty": repeat, "frequency_penalty": frequency,
                   "presence_penalty": presence}, history
    for seed in range(40):
        # Few different ids, so that there is much repetition.
        n = int(rng.integers(0, 60))
        history = [int(x) for x in rng.integers(1, 2 + int(rng.integers(1, 5)), n)]
        if seed % 3 == 0 and n > 8:
            history[-4:] = history[:4]
        breakers = [[], [[3]], [[1, 2]], [[2], [4, 1, 3]]][seed % 4]
        yield {"dry_multiplier": [0.8, 3.0][seed % 2], "dry_base": [1.75, 1.0, 2.5][seed % 3],
               "dry_allowed_length": [2, 1, 4, 0][seed // 10], "dry_penalty_last_n": [-1, 64, 10][seed % 3],
               "dry_breakers": breakers}, history


def combinations(rng):
    for i in range(60):
        p = {}
        pick = lambda share: rng.random() < share
        if pick(0.6): p["top_k"] = int(rng.integers(1, 80))
        if pick(0.4): p["top_p"] = round(float(rng.uniform(0.3, 0.99)), 3)
        if pick(0.4): p["min_p"] = round(float(rng.uniform(0.001, 0.3)), 3)
        if pick(0.3): p["typical_p"] = round(float(rng.uniform(0.3, 0.99)), 3)
        if pick(0.3): p["xtc_probability"], p["xtc_threshold"] = 1.0, round(float(rng.uniform(0.01, 0.3)), 3)
        if pick(0.7): p["temperature"] = round(float(rng.uniform(0.2, 1.8)), 3)
        if pick(0.3): p["dynatemp_range"] = round(float(rng.uniform(0.1, 1.5)), 3)
        if pick(0.3): p["min_keep"] = int(rng.integers(1, 20))
        if pick(0.3): p["repeat_penalty"], p["frequency_penalty"] = 1.2, 0.3
        if pick(0.3): p["dry_multiplier"] = 0.8
        order = list(ORDER)
        if i % 2: rng.shuffle(order)
        if i % 4 == 3: order = order[:6]
        yield p, [str(x) for x in order], [int(x) for x in rng.integers(0, 6, 30)]


def static_cases(llama, all_rows):
    rng = np.random.default_rng(6)
    todo = [(r, p, ORDER, []) for p in single_params() for r in range(len(all_rows))]
    todo += [(i % 3, p, ORDER, h) for i, (p, h) in enumerate(history_cases(rng))]
    todo += [(i % 4, p, o, h) for i, (p, o, h) in enumerate(combinations(rng))]
    cases = []
    for row, params, order, history in todo:
        logits = all_rows[row]
        samplers = chain(llama, params, order, history, len(logits)) + [llama.make("dist", 1)]
        left, _ = llama.apply(samplers, logits)
        for s in samplers:
            llama.lib.llama_sampler_free(s)
        case = {"row": row, "params": params, "n": len(left)}
        if len(left) <= 48:
            case["ids"] = sorted(left)
        else:  # two sums tell a set from its neighbours
            case["sums"] = [sum(left), sum(i * i for i in left)]
        # The probabilities of a few tell those of the rest.
        shown = sorted(left, key=lambda i: (-left[i][1], i))[:12] + sorted(left)[:4]
        case["p"] = {str(i): float(f"{left[i][1]:.8g}") for i in sorted(set(shown))}
        if order != ORDER:
            case["samplers"] = order
        if history:
            case["history"] = history
        cases.append(case)
    return cases


def drawn_cases(llama, all_rows):
    cases = []
    for kind in ("mirostat1", "mirostat2", "adaptive_p"):
        for a, b in ((3.0, 0.1), (5.0, 0.3), (1.0, 1.0)) if kind != "adaptive_p" else ((0.3, 0.9), (0.6, 0.5), (0.05, 0.0)):
            n_vocab = len(all_rows[2])
            if kind == "mirostat1":
                s = llama.make("mirostat", n_vocab, 7, a, b, 100)
            elif kind == "mirostat2":
                s = llama.make("mirostat_v2", 7, a, b)
            else:
                s = llama.make("adaptive_p", a, b, 7)
            steps = []
            for i in range(12):
                row = 2 if kind == "mirostat1" else i % 3
                left, picked = llama.apply([s], all_rows[row])
                llama.lib.llama_sampler_accept(s, picked)
                top = sorted(left, key=lambda i: (-left[i][1], i))[:12]
                steps.append({"row": row, "n": len(left), "picked": picked,
                              "p": {str(i): float(f"{left[i][1]:.8g}") for i in sorted(set(top + [picked]))}})
            llama.lib.llama_sampler_free(s)
            cases.append({"kind": kind, "a": a, "b": b, "steps": steps})
    return cases


def write(name, value, lists):
    """One line a case."""
    body = ",\n".join(f' "{key}": [\n' + ",\n".join("  " + json.dumps(x) for x in value[key]) + "\n ]" for key in lists)
    (OUT / name).write_text("{\n" + body + "\n}\n")


def main():
    llama = Llama(sys.argv[1])
    all_rows = rows()
    OUT.mkdir(parents=True, exist_ok=True)
    write("rows.json", {"rows": [[float(f"{x:.5f}") for x in r] for r in all_rows]}, ["rows"])
    write("chains.json", {"cases": static_cases(llama, all_rows)}, ["cases"])
    write("drawn.json", {"cases": drawn_cases(llama, all_rows)}, ["cases"])


if __name__ == "__main__":
    main()
