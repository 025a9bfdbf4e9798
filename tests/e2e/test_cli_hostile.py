#!/usr/bin/env python3
"""Arguments, variables and files that are wrong, odd or hostile: what the program says, its exit code, and that what was
there before is there afterwards. Standard library only."""
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from test_cli import BIN, BPE, LIMIT_S, ROOT, SPM, USER_HI, Cli, environment, run, tiny  # noqa: E402

GREEDY = ["--temp", "0", "-n", "2"]


class Numbers(Cli):
    def test_every_integer_flag(self):
        talk = self.write("m.txt", "hello " * 200)
        flags = [(["run", BPE, "x"], f) for f in ("-n", "--threads", "--ctx", "--chunk", "--top-k", "--repeat-last-n", "--seed")]
        flags += [(["bench", BPE], f) for f in ("-p", "-n", "-d", "-r", "--threads")]
        flags += [(["perplexity", BPE, talk], f) for f in ("--window", "--limit")]
        flags += [(["quantize", SPM, self.dir / "o.gguf", "q8_0"], "--threads")]
        for command, flag in flags:
            for text in ("", "x", "1.5", "0x10", " 1", "1 ", "+1", "1e3", "--", "99999999999999999999"):
                with self.subTest(command[0], flag=flag, text=text):
                    p = self.fails(2, *command, f"{flag}={text}" if len(flag) > 2 else flag, *([] if len(flag) > 2 else [text]))
                    self.assertRegex(p.err, r"expected -?\d+ to \d+")
        self.assertFalse((self.dir / "o.gguf").exists())

    def test_zero_and_negative(self):
        talk = self.write("m.txt", "hello " * 200)
        for command, flag in ((["run", BPE, "x"], "--chunk"), (["run", BPE, "x"], "--threads"), (["run", BPE, "x"], "--ctx"),
                              (["perplexity", BPE, talk], "--limit"), (["bench", BPE], "-r"),
                              (["quantize", SPM, self.dir / "o.gguf", "q8_0"], "--threads")):
            for text in ("0", "-3"):
                self.fails(2, *command, flag, text, says="expected 1 to")
        self.fails(2, "run", BPE, "x", "-n", "-2", says="expected -1 to")

    def test_decimal(self):
        a = self.ok("run", BPE, "hello", "--temp", "0", "-n", "010", "--json").out
        self.assertEqual(len(json.loads(a)["token_ids"]), 10)

    def test_reals(self):
        for text in ("", "x", "nan", "inf", "0x1p3", "1e400", "1e-50", "1e39", "0.5x"):
            self.fails(2, "run", BPE, "x", "--temp", text, says="--temp")
        self.fails(2, "run", BPE, "x", "--repeat-penalty", "1e-30", says="expected 0.01 to 100")
        self.ok("run", BPE, "x", *GREEDY, "--repeat-penalty", "0.01")
        for bias in ("5", "5=", "=1", "x=1", "5=nan", "5=inf", "0x5=1", ""):
            self.fails(2, "run", BPE, "x", "--logit-bias", bias, says="--logit-bias")
        self.fails(2, "run", BPE, "x", "--logit-bias", "99999=1", says="expected 0 to")
        self.ok("run", "--logit-bias", "5=-inf", BPE, "x", *GREEDY)  # one value, never the model

    def test_samplers(self):
        for flags, says in (("--samplers top_q", "expected names out of penalties, dry"), ("--samplers top_k;", "found ''"),
                            ("--samplers top_k;top_k", "'top_k' twice"), ("--mirostat 3", "expected 0 to 2"),
                            ("--mirostat 1 --xtc-probability 0.1", "together with xtc_probability"),
                            ("--xtc-threshold 2", "expected 0 to 1"), ("--adaptive-decay 1", "expected 0 to 0.99"),
                            ("--dry-base 0.5", "expected 1 to 100"), ("--dry-sequence-breaker a\\q", "after a backslash"),
                            ("--dry-sequence-breaker " + 41 * "x", "found 41 bytes")):
            self.fails(2, "run", BPE, "x", "--seed", "1", *flags.split(), says=says)
        plain = self.ok("run", BPE, "hello", "--seed", "1", "-n", "8").out
        for flags in ("--top-n-sigma -1", "--min-keep 0 --xtc-threshold 0.9", "--dry-multiplier 0 --mirostat 0"):
            self.assertEqual(self.ok("run", BPE, "hello", "--seed", "1", "-n", "8", *flags.split()).out, plain)
        for flags in ("--mirostat 1", "--mirostat 2 --mirostat-ent 3", "--dry-multiplier 1 --dry-sequence-breaker \\n",
                      "--xtc-probability 1", "--dynatemp-range 0.5 --dynatemp-exp 2", "--adaptive-target 0.3",
                      "--samplers temp;top_k", "--top-n-sigma 1 --typical-p 0.9 --min-keep 3"):
            args = ("run", BPE, "hello", "--seed", "1", "-n", "8", *flags.split())
            self.assertEqual(self.ok(*args).out, self.ok(*args).out)

    def test_the_last_one_counts(self):
        want = self.ok("run", BPE, "hello", "--temp", "0", "-n", "3").out
        self.assertEqual(self.ok("run", BPE, "hello", "--temp", "2", "--temp", "0", "-n", "1", "-n", "3", "--stats", "--stats").out, want)

    def test_ids(self):
        for text in ("1,,2", ",1", "1,", "1, ,2", ","):
            self.fails(2, "logits", BPE, "--tokens", text, "--sha256", says="found nothing")
            self.fails(2, "detokenize", BPE, text, says="found nothing")
        for text in ("999999", "-1", "1;2", "0x1", "1.0"):
            self.fails(2, "logits", BPE, "--tokens", text, "--sha256", says="expected 0 to")
        want = self.ok("logits", BPE, "--tokens", "1,2,3", "--sha256").out
        for text in ("1 2 3", " 1, 2 ,3\n", "1\t2\n3"):
            self.assertEqual(self.ok("logits", BPE, "--tokens", text, "--sha256").out, want)
            self.assertEqual(self.ok("detokenize", BPE, text).stdout, self.ok("detokenize", BPE, "1", "2", "3").stdout)


class Texts(Cli):
    def test_empty(self):
        for flag in ("--template", "--trace", "--dump-dir", "--dump-graph", "--isa", "--cache-type", "--cache-type-k", "--device"):
            self.fails(2, "run", BPE, "x", flag, "", says="is empty")
        self.fails(2, "chat", BPE, "--session", "", says="is empty")
        self.fails(2, "logits", BPE, "--text", "", "--sha256", says="--text: is empty")
        self.fails(2, "run", "", "x", says="is empty")

    def test_contradictions(self):
        for flags in (["--system", "s"], ["--template", "chatml"]):
            self.fails(2, "run", BPE, "x", "--no-template", *flags, says="contradict")
        say = ["template", BPE, "--messages", "-"]
        for bad in (["--kwarg", "a=1", "--kwarg", "a=2"], ["--kwarg", "messages=[]"], ["--kwarg", "tools=[]"],
                    ["--kwarg", "add_generation_prompt=true"], ["--kwarg", "a={"], ["--kwarg", ""]):
            self.fails(2, *say, *bad, stdin=USER_HI.encode(), says="--kwarg")
        for flag in (["--device", "ref"], ["--isa", "scalar"]):
            self.fails(2, "inspect", BPE, *flag, says="--kernels")

    def test_special(self):
        want = self.ok("tokenize", BPE, "<|im_end|>", "--special=on").out
        self.assertEqual(len(want.split()), 1)
        self.assertEqual(self.ok("tokenize", BPE, "--special", "<|im_end|>").out, want)
        self.assertEqual(self.ok("tokenize", "--special", "on", BPE, "<|im_end|>").out, want)
        self.assertEqual(self.ok("tokenize", BPE, "<|im_end|>", "--special").out, want)
        self.assertNotEqual(self.ok("tokenize", BPE, "<|im_end|>", "--special", "off").out, want)
        self.assertEqual(self.ok("detokenize", BPE, "--special", want.strip()).out, "<|im_end|>")
        hashes = [self.ok("logits", BPE, "--text", "<|im_end|>", "--sha256", *more).out for more in
                  ([], ["--special", "off"], ["--special"], ["--special", "on"])]
        self.assertEqual(hashes[0], hashes[1])
        self.assertEqual(hashes[2], hashes[3])
        self.assertNotEqual(hashes[0], hashes[2])
        self.ok("run", BPE, "x", "--special", *GREEDY)
        self.ok("run", BPE, "--special", "on", "x", *GREEDY)
        # The value of another option stays what it is.
        j = json.loads(self.ok("run", BPE, "x", "--system", "--special", *GREEDY, "--json").out)
        shown = self.ok("detokenize", BPE, *map(str, j["prompt_ids"])).out
        self.assertIn("--special", shown)
        self.assertNotIn("--special=on", shown)
        self.fails(2, "tokenize", BPE, "x", "--special=maybe", says="expected on or off")

    def test_bytes_without_a_token_are_no_control_token(self):
        g = tiny.Gguf()
        g.set("general.architecture", tiny.STRING, "llama")
        g.set("tokenizer.ggml.model", tiny.STRING, "gpt2")
        g.set("tokenizer.ggml.pre", tiny.STRING, "gpt-2")
        g.set_array("tokenizer.ggml.tokens", tiny.STRING, ["<|endoftext|>", "a", "c", "ac"])
        g.set_array("tokenizer.ggml.merges", tiny.STRING, ["a c"])
        g.set_array("tokenizer.ggml.token_type", tiny.I32, [3, 1, 1, 1])
        g.set("tokenizer.ggml.unknown_token_id", tiny.U32, 0)
        path = self.write("vocab.gguf", g.bytes())
        self.assertEqual(self.ok("tokenize", path, stdin=b"abc").out, "3\n")  # b is left out before merging
        self.assertEqual(self.ok("tokenize", path, stdin=b"\x04\xff").out, "\n")

    def test_perplexity_reads_standard_input(self):
        text = b"hello the inner thing " * 30
        file = self.write("t.txt", text)
        a = self.ok("perplexity", BPE, file, "--window", "16").out
        self.assertEqual(a, self.ok("perplexity", BPE, "-", "--window", "16", stdin=text).out)

    def test_messages_do_not_speak_to_the_terminal(self):
        for args in (["run", "\x1b[31m"], ["run", BPE, "x", "--template", "\x1b[31m"], ["\x1b[31m"], ["run", BPE, "x", "--seed", "\x1b[31m"]):
            p = run(*args)
            self.assertNotEqual(p.returncode, 0)
            self.assertNotIn("\x1b", p.err)
        jinja = self.write("t.jinja", "{{ raise_exception('\x1b[31mred') }}")
        self.assertNotIn("\x1b", self.fails(1, "run", BPE, "x", "--template", jinja, says="red").err)


class Environment(Cli):
    BAD = {"MINFER_THREADS": "x", "MINFER_ISA": "mmx", "MINFER_CACHE_TYPE": "q9", "MINFER_DISABLE_PASS": "nothing", "MINFER_KERNEL": "matmul:none"}

    def test_only_the_commands_that_have_the_flag(self):
        everything = {**self.BAD, "MINFER_TRACE": str(self.dir / "no/such"), "MINFER_DUMP_DIR": "/dev/null/x"}
        self.ok("list", env=everything)
        self.ok("tokenize", BPE, "x", env=everything)
        self.ok("inspect", BPE, env=everything)
        self.ok("run", "--help", env=everything)

    def test_a_bad_value_names_the_variable(self):
        for name in ("MINFER_THREADS", "MINFER_DISABLE_PASS", "MINFER_KERNEL"):
            self.fails(2, "run", BPE, "x", env={name: self.BAD[name]}, says=name)
        self.fails(2, "run", BPE, "x", env={"MINFER_THREADS": "0"}, says="MINFER_THREADS: found '0', expected 1 to 1024")
        self.fails(2, "run", BPE, "x", env={"MINFER_CACHE_TYPE": "q9"}, says="MINFER_CACHE_TYPE")
        self.fails(2, "run", BPE, "x", env={"MINFER_ISA": "mmx"}, says="MINFER_ISA")
        self.fails(2, "run", BPE, "x", env={"MINFER_KERNEL": "nothing"}, says="MINFER_KERNEL")
        self.fails(2, "run", BPE, "x", env={"MINFER_KERNEL": "noop:x"}, says="no op")
        self.fails(1, "run", BPE, "x", env={"MINFER_TRACE": str(self.dir / "no/such")}, says="MINFER_TRACE")

    def test_a_flag_wins(self):
        self.ok("run", BPE, "x", *GREEDY, "--threads", "1", "--cache-type", "f16", "--isa", "scalar", env={k: self.BAD[k] for k in (
            "MINFER_THREADS", "MINFER_CACHE_TYPE", "MINFER_ISA")})

    def test_an_instruction_set_is_nothing_to_the_reference(self):
        self.ok("run", BPE, "x", *GREEDY, "--device", "ref", env={"MINFER_ISA": "scalar"})
        self.fails(2, "run", BPE, "x", "--device", "ref", "--isa", "scalar", says="ref")

    def test_empty_is_not_set(self):
        self.ok("run", BPE, "x", *GREEDY, env={name: "" for name in self.BAD})

    def test_no_home(self):
        env = environment()
        del env["MINFER_MODELS"]
        env.pop("HOME", None)
        p = subprocess.run([BIN, "run", "no-such-model", "x"], capture_output=True, timeout=LIMIT_S, env=env)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr.decode(), r" in /.*/\.cache/minfer/models")


class Files(Cli):
    SCRIPT = b"hello\n"

    def chat(self, *flags, stdin=SCRIPT):
        return run("chat", BPE, *GREEDY, *flags, stdin=stdin)

    def odd_files(self):
        """Things that are no regular files, or that may not be replaced."""
        os.mkfifo(self.dir / "pipe")
        (self.dir / "folder").mkdir()
        os.symlink("nothing", self.dir / "dangling")
        return [self.dir / "pipe", self.dir / "folder", "/dev/null"]

    def test_saving_replaces_regular_files_only(self):
        for path in [*self.odd_files(), self.dir / "dangling"]:
            before = os.lstat(path)
            p = self.chat(stdin=b"hello\n/save " + str(path).encode() + b"\n")
            self.assertEqual(p.returncode, 1)
            self.assertIn("cannot write", p.err)
            self.assertEqual(stat.S_IFMT(os.lstat(path).st_mode), stat.S_IFMT(before.st_mode))
            self.assertEqual(self.chat("--session", path).returncode, 1)
            self.assertEqual(os.lstat(path).st_ino, before.st_ino)
        out = self.dir / "out.txt"
        with open(out, "wb") as f:
            p = subprocess.run([BIN, "chat", BPE, *GREEDY], input=b"hello\n/save /dev/stdout\n", stdout=f, stderr=subprocess.PIPE,
                               timeout=LIMIT_S, env=environment())
        self.assertIn(b"has it open already", p.stderr)
        self.assertNotIn("messages", out.read_text(errors="replace"))
        out.unlink()
        locked = self.write("locked.json", '{"messages": []}')
        os.chmod(locked, 0o444)
        p = self.chat(stdin=b"/save " + locked.encode() + b"\n")
        self.assertEqual((p.returncode, pathlib.Path(locked).read_text()), (1, '{"messages": []}'))
        self.assertIn("read-only", p.err)
        self.assertEqual(sorted(q.name for q in self.dir.iterdir()), ["dangling", "folder", "locked.json", "pipe"])

    def test_links_and_modes_stay(self):
        real = pathlib.Path(self.write("real.json", '{"messages": []}'))
        os.chmod(real, 0o640)
        os.symlink(real.name, self.dir / "link.json")
        self.assertEqual(self.chat("--session", self.dir / "link.json").returncode, 0)
        self.assertTrue((self.dir / "link.json").is_symlink())
        self.assertEqual(len(json.loads(real.read_text())["messages"]), 2)
        self.assertEqual(stat.S_IMODE(real.stat().st_mode), 0o640)
        self.assertEqual(self.chat("--session", self.dir / "new.json").returncode, 0)
        self.assertEqual(stat.S_IMODE((self.dir / "new.json").stat().st_mode), 0o600)

    def test_reading_never_waits(self):
        for path in self.odd_files()[:2]:
            says = "is not a regular file"
            self.fails(1, "run", path, "x", says="regular file" if path.name == "pipe" else "is a folder")
            self.fails(1, "run", BPE, "x", "--template", path, says=says)
            self.fails(1, "template", BPE, "--messages", path, says=says)
            self.fails(1, "template", BPE, "--messages", "-", "--tools", path, stdin=USER_HI.encode(), says=says)
            self.fails(1, "perplexity", BPE, path, says=says)
            self.assertIn("regular file", self.chat(stdin=f"/load {path}\n".encode()).err)
        for command in ("inspect", "tokenize", "detokenize"):
            self.fails(1, command, self.dir / "pipe", says="regular file")

    def test_what_a_file_holds_is_no_wrong_argument(self):
        bad = self.write("bad.json", "[1]")
        for text in ("{", "[1]", '[{"role": 3}]', "[" * 100000):
            path = self.write("m.json", text)
            self.fails(1, "template", BPE, "--messages", path)
            self.assertEqual(self.chat("--session", path).returncode, 1)
        self.fails(1, "template", BPE, "--messages", "-", "--tools", self.write("t.json", "[3]"), stdin=USER_HI.encode())
        self.fails(1, "run", BPE, "x", "--template", self.write("empty.jinja", ""), says="empty")
        self.fails(1, "run", BPE, "x", "--template", "no/such.jinja", says="no such file")
        self.fails(2, "run", BPE, "x", "--template", "nosuchname", says="chatml")
        self.fails(1, "perplexity", BPE, bad + ".absent", says="cannot open")

    def test_dump_dir_with_dumps(self):
        dumps = self.dir / "d"
        self.ok("logits", BPE, "--tokens", "1", "--sha256", "--dump-dir", dumps)
        n = len(list(dumps.iterdir()))
        self.assertGreater(n, 3)
        self.fails(2, "logits", BPE, "--tokens", "1", "--sha256", "--dump-dir", dumps, says="holds dumps already")
        self.assertEqual(len(list(dumps.iterdir())), n)
        self.fails(1, "logits", BPE, "--tokens", "1", "--sha256", "--dump-dir", BPE, says="not a folder")

    def test_outputs_are_checked_before_the_model_runs(self):
        for flag in ("--trace", "--dump-graph"):
            self.fails(1, "run", BPE, "x", flag, self.dir / "no" / "such", says=flag)
            self.fails(1, "run", BPE, "x", flag, self.dir, says="folder")
            self.ok("run", BPE, "x", *GREEDY, flag, "/dev/null")
            p = run("run", BPE, "x", *GREEDY, flag, "/dev/full")
            self.assertEqual((p.returncode, len(re.findall("(?m)^minfer: ", p.err))), (1, 1), p.err)
        self.ok("logits", BPE, "--tokens", "1", "--out", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_standard_output_that_fails(self):
        for args in (["--help"], ["--version"], ["run", "--help"], ["list"], ["tokenize", BPE, "x"], ["detokenize", BPE, "30"],
                     ["run", BPE, "x", *GREEDY], ["run", BPE, "x", *GREEDY, "--json"], ["logits", BPE, "--tokens", "1"],
                     ["logits", BPE, "--tokens", "1", "--sha256"], ["inspect", BPE, "--json"]):
            with open("/dev/full", "wb") as full:
                p = subprocess.run([BIN, *args], stdout=full, stderr=subprocess.PIPE, timeout=LIMIT_S, env=environment())
            self.assertEqual(p.returncode, 1, args)
            self.assertRegex(p.stderr.decode(), r"\Aminfer: writing to standard output failed[^\n]*\n\Z", args)


    def test_closed_standard_streams(self):
        for how, code in ((">&-", 1), ("2>&-", 0), (">&- 2>&-", 1)):
            session = self.dir / "s.json"
            p = subprocess.run(["sh", "-c", f'exec "$0" "$@" {how}', BIN, "chat", BPE, *GREEDY, "--session", str(session)], input=b"hello\n",
                               capture_output=True, timeout=LIMIT_S, env=environment())
            self.assertEqual(p.returncode, code, how)
            self.assertEqual(len(json.loads(session.read_text())["messages"]), 2)
            session.unlink()
        p = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&-', BIN, "run", BPE], capture_output=True, timeout=LIMIT_S, env=environment())
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"standard input", p.stderr)


class Models(Cli):
    def folder(self, *names):
        for name in names:
            os.symlink(BPE, self.dir / name)
        return {"MINFER_MODELS": str(self.dir)}

    def test_list_and_lookup_agree(self):
        env = self.folder("one-a.gguf", "one-b.gguf", "two.gguf", "UPPER.gguf")
        (self.dir / "folder.gguf").mkdir()
        os.symlink("nothing", self.dir / "gone.gguf")
        names = [m["name"] for m in json.loads(self.ok("list", "--json", env=env).out)]
        self.assertEqual(names, ["UPPER", "one-a", "one-b", "two"])
        for name in [*names, "upper", "tw", "TWO.gguf"]:
            self.ok("tokenize", name, "x", env=env)
        for name in ("folder", "gone", ""):
            self.assertNotEqual(run("tokenize", name, "x", env=env).returncode, 0, name)
        p = self.fails(1, "tokenize", "one", "x", env=env, says="more than one cached model begins so")
        self.assertEqual(p.err.split()[-2:], ["one-a", "one-b"])

    def test_a_folder_never_hides_a_cached_model(self):
        env = {**environment(), **self.folder("two.gguf")}
        (self.dir / "two").mkdir()
        p = subprocess.run([BIN, "tokenize", "two", "x"], capture_output=True, timeout=LIMIT_S, env=env, cwd=self.dir)
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_names_that_speak_to_the_terminal(self):
        env = self.folder("\x1b[31mred\n.gguf")
        p = self.ok("list", env=env)
        self.assertNotIn("\x1b", p.out)
        self.assertEqual(p.out.count("\n"), 1)
        self.assertNotIn("\x1b", run("tokenize", "zzz", "x", env=env).err)


class Bench(Cli):
    def test_arguments_before_work(self):
        p = self.fails(2, "bench", "--shape", "qwen2.5-0.5b", "--type", "q4_k", says="types that fit: f32, f16, bf16, q4_0")
        self.fails(2, "bench", "--shape", "llama-3.1-8b", "--type", "f32", "-p", "8000000", says="positions")
        self.fails(2, "bench", "--shape", "llama-3.1-8b", "--type", "nothing", says="--type")
        self.fails(2, "bench", "--shape", "nothing", says="smollm2-135m")
        self.assertNotIn("GB", p.err)

    def test_a_model_that_does_not_fit(self):
        free = int(re.search(r"MemAvailable: +(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) * 1024
        if free > 60e9:
            self.skipTest("this machine has room for the largest shape")
        p = self.fails(1, "bench", "--shape", "llama-3.1-8b", "--type", "f32")
        self.assertRegex(p.err, r"needs 6\d\.\d GB, \d+\.\d GB are free")

    def test_type_of_a_file(self):
        out = self.dir / "q.gguf"
        self.ok("quantize", SPM, out, "q8_0")
        env = {"HOME": str(self.dir)}
        j = json.loads(self.ok("bench", out, "-p", "4", "-n", "2", "-r", "1", "--json", env=env).out)
        self.assertEqual(j["type"], "q8_0")
        os.chmod(self.dir / ".cache/minfer/peak.json", 0o400)  # what cannot be kept is measured and said
        p = self.ok("bench", "--peak", "--threads", "1", env=env)
        self.assertIn("warning", p.err)
        self.assertIn("read-only", p.err)

    def test_quantize_that_changes_nothing(self):
        p = self.ok("quantize", SPM, self.dir / "o.gguf", "q4_k", "--fallback", "q8_0")
        self.assertIn("warning: no matrix becomes q4_k", p.err)
        self.assertNotIn("warning", self.ok("quantize", SPM, self.dir / "p.gguf", "q8_0").err)


class Interrupts(Cli):
    def interrupted(self, args, ready):
        """Sends Ctrl-C once `ready(process)` holds; returns the exit code."""
        p = subprocess.Popen([BIN, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        until = time.monotonic() + LIMIT_S
        while not ready(p) and p.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        p.wait(timeout=LIMIT_S)
        for f in (p.stdin, p.stdout, p.stderr):
            f.close()
        return p.returncode

    @staticmethod
    def waits_for_input(p):
        try:
            return "read" in pathlib.Path(f"/proc/{p.pid}/wchan").read_text() or pathlib.Path(f"/proc/{p.pid}/syscall").read_text().startswith("0 0x0 ")
        except OSError:
            time.sleep(0.3)
            return True

    def test_while_reading(self):
        for args in (["run", BPE], ["tokenize", BPE], ["detokenize", BPE], ["template", BPE, "--messages", "-"], ["perplexity", BPE, "-"],
                     ["chat", BPE]):
            self.assertEqual(self.interrupted(args, self.waits_for_input), 130, args)

    def test_while_measuring(self):
        self.assertEqual(self.interrupted(["bench", BPE, "-r", "10000", "-p", "100", "-n", "20"], lambda p: time.sleep(0.5) or True), 130)


if __name__ == "__main__":
    unittest.main()
