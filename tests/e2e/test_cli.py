#!/usr/bin/env python3
"""Runs the built program (MINFER_BIN) as a user does: exit codes, messages, JSON, pipes, Ctrl-C. Standard library only."""
import atexit
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_tiny_model as tiny  # noqa: E402

BIN = os.path.abspath(os.environ.get("MINFER_BIN", ROOT / "build/release/minfer"))
CASES = pathlib.Path(os.environ.get("MINFER_CASES", ROOT.parent / "shared/cases"))
SPM = str(ROOT / "tests/data/models/tiny-spm.gguf")
BPE = str(ROOT / "tests/data/models/tiny-bpe.gguf")
LIMIT_S = 120  # a hang ends here; nothing is measured
HOME = tempfile.mkdtemp(prefix="minfer-home-")  # what bench measures beside other tests must not stay in the user's cache
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
USER_HI = json.dumps([{"role": "user", "content": "hi"}])


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("MINFER_")}
    env["MINFER_MODELS"] = str(ROOT / "tests/data/models")
    env["HOME"] = HOME
    return env


def run(*args, stdin=b"", env=None, umask=-1):
    full = environment()
    full.update(env or {})
    p = subprocess.run([BIN, *map(str, args)], input=stdin, capture_output=True, timeout=LIMIT_S, env=full, umask=umask)
    p.err = p.stderr.decode("utf-8", "replace")
    p.out = p.stdout.decode("utf-8", "replace")
    return p


class Cli(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="minfer-e2e-"))
        self.addCleanup(shutil.rmtree, self.dir, True)

    def ok(self, *args, **kw):
        p = run(*args, **kw)
        self.assertEqual(p.returncode, 0, f"{args}: {p.err}")
        return p

    def fails(self, code, *args, says=None, **kw):
        p = run(*args, **kw)
        self.assertEqual(p.returncode, code, f"{args}: {p.out[:500]} {p.err}")
        self.assertTrue(p.err.startswith("minfer: "), p.err)
        if says is not None:
            self.assertIn(says, p.err)
        return p

    def write(self, name, data):
        path = self.dir / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)


class Arguments(Cli):
    COMMANDS = ["run", "chat", "list", "inspect", "quantize", "tokenize", "detokenize", "template", "logits", "perplexity",
                "bench", "batch", "replay"]

    def test_help_and_version(self):
        text = self.ok("--help").out
        for command in self.COMMANDS:
            self.assertRegex(text, rf"(?m)^ +{command} +\S")
            self.assertIn("Usage:", self.ok(command, "--help").out)
        self.assertRegex(self.ok("--version").out, r"^minfer \d+\.\d+\.\d+\n$")

    def test_no_arguments(self):
        p = run()
        self.assertEqual((p.returncode, p.out), (2, ""))
        self.assertIn("Usage:", p.err)

    def test_neither_command_nor_model(self):
        p = self.fails(2, "no-such-thing", "hello", says="neither a command")
        self.assertIn("tiny-spm", p.err)  # lists what is cached
        self.fails(1, "tiny", "hello", says="more than one")
        self.fails(1, "no/such.gguf", "hello", says="no such file")

    def test_unknown_flags(self):
        for command in self.COMMANDS:
            self.fails(2, command, "--no-such-flag")
        self.fails(2, "--no-such-flag")

    def test_missing_arguments(self):
        for command in self.COMMANDS:
            if command not in ("list", "bench"):
                self.fails(2, command)

    def test_bad_model_files(self):
        empty = self.write("empty.gguf", b"")
        noise = self.write("noise.gguf", os.urandom(4096))
        cut = self.write("cut.gguf", pathlib.Path(SPM).read_bytes()[:-100])
        ids = self.write("messages.json", USER_HI)
        for command, more in (("run", ["x"]), ("chat", []), ("inspect", []), ("tokenize", ["x"]), ("detokenize", ["1"]),
                              ("template", ["--messages", ids]), ("logits", ["--tokens", "1"]), ("perplexity", [ids]),
                              ("quantize", [str(self.dir / "out.gguf"), "f16"])):
            for model in (str(self.dir / "absent.gguf"), str(self.dir), empty, noise, cut):
                p = run(command, model, *more)
                self.assertIn(p.returncode, (1, 2) if model == str(self.dir) else (1,), f"{command} {model}: {p.err}")
                self.assertEqual(p.out, "")
                if "absent" not in model:  # that one lists the cached models, a line each
                    self.assertEqual(p.err.count("\n"), 1, p.err)
        self.assertFalse((self.dir / "out.gguf").exists())

    def test_model_without_run(self):
        a = self.ok(SPM, "hello the", "--temp", "0", "-n", "6")
        b = self.ok("run", "TINY-SPM", "hello the", "--temp", "0", "-n", "6")
        self.assertEqual(a.stdout, b.stdout)
        # A prompt that is the name of a command is a prompt.
        j = json.loads(self.ok(SPM, "list", "--temp", "0", "-n", "1", "--json").out)
        self.assertEqual(j["finish_reason"], "length")

    def test_standard_output_that_fails(self):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([BIN, "inspect", SPM], stdout=full, stderr=subprocess.PIPE, timeout=LIMIT_S, env=environment())
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"standard output", p.stderr)


class Vocabulary(Cli):
    TEXTS = ["hello the inner thing", " leading", "trailing \n", "", "tabs\tand\r\nlines", "\u65e5\u672c \U0001f600 \u00fc", "[INST] <s> <|im_end|>"]

    def test_round_trip(self):
        for model in (SPM, BPE):
            for text in self.TEXTS + [b"\xff\xfe broken \xe6\x97"]:
                raw = text if isinstance(text, bytes) else text.encode()
                ids = self.ok("tokenize", model, stdin=raw).out
                self.assertEqual(self.ok("detokenize", model, stdin=ids.encode()).stdout, raw)
                if ids.split():
                    self.assertEqual(self.ok("detokenize", model, *ids.split()).stdout, raw)

    def test_argument_equals_stdin(self):
        a = self.ok("tokenize", BPE, "in the inn").out
        self.assertEqual(a, self.ok("tokenize", BPE, "-", stdin=b"in the inn").out)
        self.assertEqual(self.ok("tokenize", BPE, "").out, "\n")

    def test_json(self):
        j = json.loads(self.ok("tokenize", SPM, "the \u00fc", "--json").out)
        self.assertEqual(j["n_tokens"], len(j["ids"]))
        self.assertEqual([t["id"] for t in j["tokens"]], j["ids"])
        self.assertEqual((j["tokens"][0]["text"], j["tokens"][0]["type"]), ("<s>", "control"))
        self.assertEqual([t["bytes"] for t in j["tokens"][-2:]], ["c3", "bc"])
        self.assertEqual(json.loads(self.ok("detokenize", SPM, "--json", *map(str, j["ids"])).out), {"text": "the \u00fc"})

    def test_special_and_bos(self):
        plain = self.ok("tokenize", BPE, "<|im_end|>").out.split()
        self.assertGreater(len(plain), 1)
        one = self.ok("tokenize", BPE, "<|im_end|>", "--special", "on").out.split()
        self.assertEqual(len(one), 1)
        self.assertEqual(self.ok("detokenize", BPE, *one).out, "")
        self.assertEqual(self.ok("detokenize", BPE, *one, "--special", "on").out, "<|im_end|>")
        with_bos = self.ok("tokenize", SPM, "a").out.split()
        self.assertEqual(with_bos[0], "1")
        self.assertEqual(self.ok("tokenize", SPM, "a", "--no-bos").out.split(), with_bos[1:])

    def test_bad_ids(self):
        for word in ("999999", "99999999999999999999", "1.5", "x", "1e3", "0x10"):
            self.fails(2, "detokenize", SPM, word, says="expected 0 to")
            self.fails(2, "detokenize", SPM, stdin=f"1 {word}".encode())
        self.fails(2, "detokenize", SPM, stdin=b"-1")
        self.fails(2, "tokenize", SPM, "x", "--special", "maybe")

    def test_vocabulary_alone(self):
        g = tiny.Gguf()
        g.set("general.architecture", tiny.STRING, "llama")
        tiny.spm_vocabulary(g)
        path = self.write("vocab.gguf", g.bytes())
        self.assertEqual(self.ok("tokenize", path, "the in").out, self.ok("tokenize", SPM, "the in").out)
        self.assertIn("vocabulary", self.ok("inspect", path).err)
        self.assertFalse(json.loads(self.ok("inspect", path, "--json").out)["runnable"])
        self.fails(1, "run", path, "x")


class Template(Cli):
    def test_render(self):
        talk = self.write("m.json", json.dumps([{"role": "user", "content": "hi"}]))
        self.assertEqual(self.ok("template", BPE, "--messages", talk).out, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
        self.assertEqual(self.ok("template", BPE, "--messages", talk, "--no-generation-prompt").out,
                         "<|im_start|>user\nhi<|im_end|>\n")
        self.assertEqual(self.ok("template", SPM, "--messages", "-", stdin=USER_HI.encode()).out, "<s>[user]hi</s>[assistant]")

    def test_own_template_kwargs_and_tools(self):
        jinja = self.write("t.jinja", "{{ messages[0].content }}|{{ think }}|{{ tools[0].name }}")
        tools = self.write("tools.json", '[{"name": "f"}]')
        p = self.ok("template", SPM, "--messages", "-", "--template", jinja, "--tools", tools, "--kwarg", "think=false",
                    stdin=USER_HI.encode())
        self.assertEqual(p.out, "hi|False|f")

    def test_ids_have_one_bos_and_text_is_no_markup(self):
        ids = self.ok("template", SPM, "--messages", "-", "--ids", stdin=USER_HI.encode()).out.split()
        self.assertEqual(ids.count("1"), 1)
        spoof = json.dumps([{"role": "user", "content": "<|im_end|>"}]).encode()
        ids = self.ok("template", BPE, "--messages", "-", "--ids", stdin=spoof).out.split()
        end = self.ok("tokenize", BPE, "<|im_end|>", "--special", "on").out.strip()
        self.assertEqual(ids.count(end), 1)

    def test_faults(self):
        self.fails(1, "template", SPM, "--messages", self.dir / "absent.json")
        for bad in (b"", b"{", b"[1]", b'[{"role": 3}]', b"\xff", b"[" * 100000):
            p = run("template", SPM, "--messages", "-", stdin=bad)
            self.assertIn(p.returncode, (1, 2), bad[:20])
            self.assertEqual(p.out, "")
        raising = self.write("t.jinja", "{{ raise_exception('not so') }}")
        self.fails(1, "template", SPM, "--messages", "-", "--template", raising, stdin=USER_HI.encode(), says="not so")
        broken = self.write("b.jinja", "{% if %}")
        self.fails(1, "template", SPM, "--messages", "-", "--template", broken, stdin=USER_HI.encode(), says="[template]")
        self.fails(2, "template", SPM, "--messages", "-", "--kwarg", "x", stdin=USER_HI.encode(), says="NAME=JSON")


class Inspect(Cli):
    def test_json(self):
        j = json.loads(self.ok("inspect", SPM, "--json").out)
        self.assertTrue(j["runnable"])
        self.assertEqual(j["model"]["family"], "llama")
        self.assertEqual((j["model"]["n_layer"], j["model"]["n_embd"], j["model"]["head_dim"]), (2, 32, 32))
        self.assertEqual(sum(t["bytes"] for t in j["tensors"]), j["memory"]["weights_bytes"])
        self.assertEqual(sum(t["bytes"] for t in j["types"]), j["memory"]["weights_bytes"])
        values = 2 * 2 * 32  # layers, K and V, one head of 32
        self.assertEqual(j["memory"]["kv_bytes_per_token"], {"f32": 4 * values, "f16": 2 * values, "bf16": 2 * values, "q8_0": values * 34 // 32})
        self.assertEqual(j["memory"]["kv_bytes_whole_context"]["f32"], 128 * 4 * values)
        self.assertEqual(j["metadata"]["llama.context_length"], 128)
        self.assertEqual(j["metadata"]["tokenizer.ggml.tokens"]["count"], j["model"]["n_vocab"])
        self.assertIn({"name": "output_norm.weight", "type": "f32", "shape": [32]}.items(),
                      [{k: t[k] for k in ("name", "type", "shape")}.items() for t in j["tensors"]])

    def test_text_does_not_reach_the_terminal_raw(self):
        g = tiny.model(tiny.spm_vocabulary, name="\x1b[31mred\x9b", n_layer=1)
        p = self.ok("inspect", self.write("m.gguf", g.bytes()))
        shown = [line for line in p.out.splitlines() if "general.name" in line]
        self.assertNotIn("\x1b", shown[0])
        self.assertNotIn("\x9b", shown[0])

    def test_kernels(self):
        p = self.ok("inspect", SPM, "--kernels", "--device", "ref")
        self.assertIn("kernels on ref", p.out)
        j = json.loads(self.ok("inspect", SPM, "--kernels", "--json").out)
        self.assertTrue(any(o["decode"] for o in j["kernels"]))
        self.fails(2, "inspect", SPM, "--kernels", "--device", "toaster", says="toaster")

    def test_unknown_family_is_shown_and_refused(self):
        g = tiny.model(tiny.spm_vocabulary, n_layer=1)
        g.set("general.architecture", tiny.STRING, "teapot")
        p = run("inspect", self.write("m.gguf", g.bytes()))
        self.assertEqual(p.returncode, 1)
        self.assertIn("teapot", p.err)
        self.assertIn("token_embd.weight", p.out)

    def test_list(self):
        names = [m["name"] for m in json.loads(self.ok("list", "--json").out)]
        self.assertEqual(names, ["tiny-bpe", "tiny-spm"])
        self.assertIn("tiny-bpe", self.ok("list").out)
        none = self.ok("list", env={"MINFER_MODELS": str(self.dir / "absent")})
        self.assertEqual(none.out, "")
        self.assertIn("no models", none.err)


class Quantize(Cli):
    TYPES_32 = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4"]
    TYPES_256 = ["q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs"]
    FILE_TYPE = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 7, "q4_k": 14, "q6_k": 18, "bf16": 32}

    def quantize_and_check(self, source, kind):
        out = str(self.dir / f"{kind}.gguf")
        self.ok("quantize", source, out, kind)
        j = json.loads(self.ok("inspect", out, "--json").out)
        for t in j["tensors"]:
            self.assertEqual(t["type"], kind if len(t["shape"]) > 1 else "f32", t["name"])
        if kind in self.FILE_TYPE:
            self.assertEqual(j["metadata"]["general.file_type"], self.FILE_TYPE[kind])
        self.assertEqual(j["metadata"].get("general.quantization_version"), None if kind in ("f32", "f16", "bf16") else 2)
        self.assertRegex(self.ok("logits", out, "--tokens", "1,2,3", "--sha256").out, r"^[0-9a-f]{64}\b")
        return out

    def test_types_of_32(self):
        for kind in ["f32", "bf16"] + self.TYPES_32:
            with self.subTest(kind):
                self.quantize_and_check(SPM, kind)

    def test_types_of_256(self):
        g = tiny.model(tiny.spm_vocabulary, n_layer=1, n_embd=256, n_head=4, head_dim=64, n_ff=256)
        source = self.write("wide.gguf", g.bytes())
        for kind in self.TYPES_256:
            with self.subTest(kind):
                self.quantize_and_check(source, kind)

    def test_lossless_and_repeatable(self):
        f32 = self.quantize_and_check(SPM, "f32")
        back = str(self.dir / "back.gguf")
        self.ok("quantize", f32, back, "F16", "--threads", "2")
        again = str(self.dir / "again.gguf")
        self.ok("quantize", f32, again, "f16", "--threads", "1")
        self.assertEqual(pathlib.Path(back).read_bytes(), pathlib.Path(again).read_bytes())
        want = self.ok("logits", SPM, "--tokens", "1,5,9", "--sha256").out.split()[0]
        self.assertEqual(self.ok("logits", back, "--tokens", "1,5,9", "--sha256").out.split()[0], want)

    def test_rows_that_do_not_divide(self):
        out = self.dir / "out.gguf"
        self.fails(2, "quantize", SPM, out, "q4_k", says="token_embd.weight")
        self.fails(2, "quantize", SPM, out, "q4_k", "--fallback", "q6_k")
        self.assertEqual(list(self.dir.iterdir()), [])
        self.ok("quantize", SPM, out, "q4_k", "--fallback", "q8_0")
        types = {t["type"] for t in json.loads(self.ok("inspect", out, "--json").out)["tensors"]}
        self.assertEqual(types, {"q8_0", "f32"})

    def test_paths(self):
        copy = self.write("in.gguf", pathlib.Path(SPM).read_bytes())
        link = self.dir / "link.gguf"
        os.symlink(copy, link)
        for same in (copy, str(link)):
            self.fails(2, "quantize", copy, same, "q8_0", "--force", says="the file that is read")
        old = self.write("old.gguf", b"old")
        self.fails(2, "quantize", copy, old, "q8_0", says="--force")
        self.assertEqual(pathlib.Path(old).read_bytes(), b"old")
        self.ok("quantize", copy, old, "q8_0", "--force")
        self.fails(2, "quantize", copy, self.dir, "q8_0", says="folder")
        self.fails(1, "quantize", copy, self.dir / "no" / "such.gguf", "q8_0")

    def test_bad_types_and_numbers(self):
        for kind in ("q9_9", "", "i8", "q4_k_m"):
            self.fails(2, "quantize", SPM, self.dir / "o.gguf", kind, says="expected one of")
        for n in ("-1", "99999", "99999999999999999999", "x"):
            self.fails(2, "quantize", SPM, self.dir / "o.gguf", "q8_0", "--threads", n)

    def test_values_that_cannot_be_stored(self):
        g = tiny.model(tiny.spm_vocabulary, n_layer=1)
        name, shape, kind, data = g.tensors[1 + 1]
        g.tensors[2] = (name, shape, kind, b"\x00\x7c" + data[2:])  # infinity
        source = self.write("inf.gguf", g.bytes())
        self.fails(1, "quantize", source, self.dir / "o.gguf", "q8_0", says=name)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["inf.gguf"])

    def test_interrupt_leaves_nothing(self):
        g = tiny.Gguf()
        g.set("general.architecture", tiny.STRING, "llama")
        for i in range(4):
            g.tensor(f"t{i}", (4096, 2048), tiny.F16_TENSOR, b"\x55\x32\x11\x2c" * (4096 * 1024))
        source = self.write("big.gguf", g.bytes())
        p = subprocess.Popen([BIN, "quantize", source, str(self.dir / "o.gguf"), "q2_k", "--threads", "1"], stderr=subprocess.PIPE,
                             env=environment())
        for _ in range(1000):  # until it writes
            if len(list(self.dir.iterdir())) > 1 or p.poll() is not None:
                break
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=LIMIT_S)[1]
        self.assertEqual(p.returncode, 130, err)
        self.assertEqual([q.name for q in self.dir.iterdir()], ["big.gguf"])


class Malformed(Cli):
    def test_every_case(self):
        folder = CASES / "gguf-malformed"
        if not (folder / "manifest.json").exists():
            self.skipTest(f"{folder} is not there")
        for case in json.loads((folder / "manifest.json").read_text()):
            for command in (["inspect"], ["run", "-n", "3", "--temp", "0"]):
                with self.subTest(case["id"], command=command[0]):
                    p = run(command[0], str(folder / case["file"]), *(["x"] + command[1:] if command[0] == "run" else []))
                    self.assertIn(p.returncode, (0, 1), p.err)  # no signal, no sanitizer report
                    if case["expected"] == "reject":
                        self.assertEqual(p.returncode, 1)
                    if p.returncode == 1:
                        self.assertRegex(p.err, r"\Aminfer: [^\n]*\n\Z")
                        self.assertGreater(len(p.err), 40)
                    if case["expected"] == "accept_no_crash" and command[0] == "inspect":
                        self.assertEqual(p.returncode, 0, p.err)
        base = folder / "_valid_base.gguf"
        self.ok("inspect", str(base))
        self.ok("run", str(base), "a", "-n", "2", "--temp", "0")


if __name__ == "__main__":
    unittest.main()
