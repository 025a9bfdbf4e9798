#!/usr/bin/env python3
"""minfer chat as a user has it: turns, commands, branches, a full context, session files, Ctrl-C. Standard library only."""
import json
import os
import pathlib
import pty
import select
import signal
import stat
import subprocess
import sys
import time
import unittest

from test_cli import BIN, BPE, LIMIT_S, ROOT, SPM, Cli, environment, run

sys.path.insert(0, str(ROOT / "tools"))
import make_tiny_model as tiny  # noqa: E402


class Chat(Cli):
    FLAGS = ["--temp", "0", "-n", "5"]
    LONG = "this is a longer message, so that it fills a page"

    def setUp(self):
        super().setUp()
        x = self.ok("tokenize", BPE, "x").out.strip()
        self.ALWAYS_X = ["--logit-bias", f"{x}=1000"]  # its text has the ids that were drawn

    @staticmethod
    def read(p):
        """Prompt tokens of each turn, and how many of them were in the cache."""
        lines = [line for line in p.err.splitlines() if line.startswith("prompt_tokens")]
        return [int(line.split()[1]) for line in lines], [int(line.split("(")[1].split()[0]) for line in lines]

    def messages(self, path):
        return [(m["role"], m["content"]) for m in json.loads(pathlib.Path(path).read_text())["messages"]]

    def test_scripted(self):
        saved = self.dir / "talk.json"
        script = f"hello\nand then\n/save {saved}\n/help\n\n/exit\nnot read\n"
        p = self.ok("chat", BPE, *self.FLAGS, "--system", "be", stdin=script.encode())
        talk = json.loads(saved.read_text())["messages"]
        self.assertEqual([m["role"] for m in talk], ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual([m["content"] for m in talk[::2] if m["role"] != "assistant"][0], "be")
        self.assertEqual(p.out, "".join(m["content"] + "\n" for m in talk if m["role"] == "assistant"))
        self.assertIn("/regen", p.err)

    def test_later_turns_read_only_what_is_new(self):
        p = self.ok("chat", BPE, *self.FLAGS, *self.ALWAYS_X, "--stats", stdin=b"hello\nmore\nand more\n")
        prompts, cached = self.read(p)
        self.assertEqual(cached[0], 0)
        for turn in (1, 2):  # all of the turn before, but for the last token drawn: it was not computed yet
            self.assertEqual(cached[turn], prompts[turn - 1] + 5 - 1)

    def test_an_answer_that_reads_differently(self):
        """The ids of a text are not always those that were drawn: what is shared is reused, the rest read as it is."""
        p = self.ok("chat", BPE, *self.FLAGS, "--stats", stdin=f"{self.LONG}\nmore\n".encode())
        self.assertGreaterEqual(self.read(p)[1][1], 32)

    def test_templates_that_rewrite_earlier_turns(self):
        """What an earlier answer was is left out of later prompts: each answer is that of a fresh rendering."""
        template = self.write("t.jinja", "{% for m in messages %}{% if m.role == 'user' or loop.last %}<|im_start|>{{ m.role }} "
                              "{{ m.content }}<|im_end|>{% else %}.{% endif %}{% endfor %}<|im_start|>assistant ")
        flags = [*self.FLAGS, "--template", template, "--stats"]
        turns = [self.LONG, "and then", "the last"]
        p = self.ok("chat", BPE, *flags, stdin="\n".join(turns).encode())
        prompts, cached = self.read(p)
        self.assertGreaterEqual(cached[1], 32)
        self.assertGreaterEqual(cached[2], cached[1])
        answers = p.out.splitlines()
        for n in (1, 2, 3):
            talk = []
            for turn in range(n):
                talk += [{"role": "user", "content": turns[turn]}, {"role": "assistant", "content": answers[turn]}]
            part = self.write("part.json", json.dumps(talk[:-1]))
            ids = self.ok("template", BPE, "--messages", part, "--template", template, "--ids").out.split()
            self.assertEqual(len(ids), prompts[n - 1])
            saved = self.write("s.json", json.dumps({"messages": talk[:-2]}))
            q = self.ok("chat", BPE, *flags, "--session", saved, stdin=turns[n - 1].encode())
            self.assertEqual(q.out, answers[n - 1] + "\n")

    def test_answers_equal_run(self):
        j = json.loads(self.ok("run", BPE, "hello", *self.FLAGS, "--json").out)
        self.assertEqual(self.ok("chat", BPE, *self.FLAGS, stdin=b"hello\n").out, j["text"] + "\n")

    def test_regenerate_and_clear(self):
        p = self.ok("chat", BPE, *self.FLAGS, stdin=b"hello\n/regen\n/clear\nhello\n")
        lines = p.stdout.split(b"\n")
        self.assertEqual(p.stdout, (p.stdout[: len(p.stdout) // 3]) * 3, lines)
        saved = self.dir / "t.json"
        self.ok("chat", BPE, *self.FLAGS, stdin=f"hello\n/regen\n/save {saved}\n".encode())
        self.assertEqual(len(json.loads(saved.read_text())["messages"]), 2)
        self.fails(1, "chat", BPE, *self.FLAGS, stdin=b"/regen\n", says="no message")

    def test_session_goes_on(self):
        file = self.dir / "s.json"
        self.ok("chat", BPE, *self.FLAGS, "--session", file, stdin=b"hello\n")
        p = self.ok("chat", BPE, *self.FLAGS, "--session", file, stdin=b"more\n")
        self.assertIn("going on with 2 messages", p.err)
        both = self.dir / "b.json"
        self.ok("chat", BPE, *self.FLAGS, "--session", both, stdin=b"hello\nmore\n")
        self.assertEqual(file.read_text(), both.read_text())
        self.assertEqual(sorted(q.name for q in self.dir.iterdir()), ["b.json", "b.json.kv", "s.json", "s.json.kv"])
        self.assertEqual([stat.S_IMODE(q.stat().st_mode) for q in self.dir.iterdir()], [0o600] * 4)
        q = self.ok("chat", BPE, *self.FLAGS, stdin=f"/load {file}\n/save {self.dir}/c.json\n".encode())
        self.assertEqual((self.dir / "c.json").read_text(), file.read_text(), q.err)

    def test_a_session_has_one_chat(self):
        file = self.dir / "s.json"
        first = subprocess.Popen([BIN, "chat", BPE, *self.FLAGS, "--session", str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=environment())
        first.stdin.write(b"hello\n")
        first.stdin.flush()
        first.stdout.readline()
        self.fails(1, "chat", BPE, *self.FLAGS, "--session", file, stdin=b"more\n", says="another minfer chat has this session open")
        first.stdin.write(b"and\n")
        first.stdin.flush()
        first.stdout.readline()
        self.fails(1, "chat", BPE, *self.FLAGS, "--session", file, stdin=b"", says="another minfer chat has this session open")
        _, err = first.communicate(f"/save {file}\nagain\n".encode())
        self.assertEqual(first.returncode, 0, err)
        self.assertEqual(len(self.messages(file)), 6)
        self.assertEqual(sorted(q.name for q in self.dir.iterdir()), ["s.json", "s.json.kv"])

    def test_a_session_changed_by_others_stays(self):
        file, other = self.dir / "s.json", '{"messages": [{"role": "user", "content": "mine"}]}'
        p = subprocess.Popen([BIN, "chat", BPE, *self.FLAGS, "--session", str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment())
        p.stdin.write(b"hello\n/turns\n")
        p.stdin.flush()
        while b"   1  hello" not in p.stderr.readline():
            pass
        file.write_text(other)
        _, err = p.communicate(b"more\n")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"another program has changed it", err)
        self.assertEqual(file.read_text(), other)
        self.assertFalse((self.dir / "s.json.kv").exists())

    def test_save_spares_other_files(self):
        for name, text in (("notes.txt", "my notes"), ("a.json", '{"a": 1}'), ("empty", "")):
            file = self.write(name, text)
            self.fails(1, "chat", BPE, *self.FLAGS, stdin=f"hello\n/save {file}\n".encode(), says="holds no conversation")
            self.assertEqual(pathlib.Path(file).read_text(), text)
        file = self.write("talk.json", '{"messages": []}')
        self.ok("chat", BPE, *self.FLAGS, stdin=f"hello\n/save {file}\n".encode())
        self.assertEqual(len(self.messages(file)), 2)

    def test_a_pipe_as_kv_is_not_waited_for(self):
        os.mkfifo(self.dir / "s.json.kv")
        p = self.ok("chat", BPE, *self.FLAGS, "--session", self.dir / "s.json", stdin=b"hello\n")
        self.assertIn("is another file", p.err)
        self.ok("chat", BPE, *self.FLAGS, "--session", self.dir / "s.json", stdin=b"more\n")
        self.assertTrue(stat.S_ISFIFO(os.stat(self.dir / "s.json.kv").st_mode))

    def test_left_out_is_told_once(self):
        say = f"{'long ' * 12}\n"
        flags = [*self.FLAGS, "--ctx", "128", "--overflow", "truncate-oldest-turns"]
        p = self.ok("chat", BPE, *flags, stdin=(say * 8 + "/undo\n" + say).encode())
        counts = [int(line.split("the ")[2].split()[0]) for line in p.err.splitlines() if "messages are left out" in line]
        self.assertTrue(counts, p.err)
        self.assertLessEqual(sum(counts), 16, p.err)  # no message twice

    def test_long_system_message(self):
        self.fails(1, "chat", BPE, *self.FLAGS, "--ctx", "64", "--system", "long " * 200, stdin=b"hello\n", says="the system message is too long")

    def test_bad_sessions(self):
        for name, text in (("a", "{"), ("b", "[3]"), ("c", ""), ("d", '{"messages": 4}')):
            path = self.write(name, text)
            p = run("chat", BPE, *self.FLAGS, "--session", path, stdin=b"hello\n")
            self.assertIn(p.returncode, (1, 2))
            self.assertEqual(pathlib.Path(path).read_text(), text)  # as it was
        self.fails(1, "chat", BPE, "--session", self.dir / "no" / "such", stdin=b"x\n")

    def test_a_session_is_not_read_again(self):
        file = self.dir / "s.json"
        first = self.ok("chat", BPE, *self.FLAGS, "--session", file, "--stats", stdin=self.LONG.encode() + b"\n")
        whole = self.ok("chat", BPE, *self.FLAGS, stdin=f"{self.LONG}\nmore\n".encode()).out
        kv = file.with_name("s.json.kv")
        data, talk = kv.read_bytes(), file.read_text()
        p = self.ok("chat", BPE, *self.FLAGS, "--session", file, "--stats", stdin=b"more\n")
        self.assertGreaterEqual(self.read(p)[1][0], 32)
        self.assertEqual(first.out + p.out, whole)
        # Without it, with a damaged one, with one of other cache types: the same answer, computed again, and said.
        for name, change, says, flags in (("gone", lambda: kv.unlink(), "", []), ("cut", lambda: kv.write_bytes(data[:-5]), "computed again", []),
                                          ("changed", lambda: kv.write_bytes(data[:600] + b"?" + data[601:]), "checksum", [])):
            with self.subTest(name):
                file.write_text(talk)
                change()
                p = self.ok("chat", BPE, *self.FLAGS, "--session", file, "--stats", *flags, stdin=b"more\n")
                self.assertEqual(self.read(p)[1][0], 0)
                self.assertEqual(first.out + p.out, whole)
                self.assertIn(says, p.err)
        file.write_text(talk)
        kv.write_bytes(data)
        p = self.ok("chat", BPE, *self.FLAGS, "--session", file, "--cache-type", "f32", stdin=b"more\n")
        self.assertIn("types f16 f16", p.err)
        file.write_text(talk)
        kv.write_text("what somebody else keeps here")
        p = self.ok("chat", BPE, *self.FLAGS, "--session", file, stdin=b"more\n")
        self.assertIn("is another file", p.err)
        self.assertEqual(kv.read_text(), "what somebody else keeps here")

    def test_undo_and_edit(self):
        a, b = self.dir / "a.json", self.dir / "b.json"
        self.ok("chat", BPE, *self.FLAGS, stdin=f"hello\nwrong\n/undo\nright\n/save {a}\n".encode())
        self.ok("chat", BPE, *self.FLAGS, stdin=f"hello\nright\n/save {b}\n".encode())
        self.assertEqual(a.read_text(), b.read_text())
        p = self.ok("chat", BPE, *self.FLAGS, stdin=f"hello\nwrong\nmore\n/turns\n/edit 2  right \n/save {a}\n".encode())
        self.assertEqual(a.read_text(), b.read_text())
        self.assertIn("   2  wrong\n   3  more\n", p.err)
        for command, says in (("/undo", "no message to forget"), ("/edit 1 x", "no message yet"), ("hello\n/edit 2 x", "1 to 1"), ("hello\n/edit 0 x", "1 to 1"),
                              ("hello\n/edit 1", "and a text"), ("hello\n/edit x y", "the number"), ("hello\n/edit", "the number")):
            self.fails(1, "chat", BPE, *self.FLAGS, stdin=f"{command}\n".encode(), says=None if command.startswith("hello") else says)
            self.assertIn(says, run("chat", BPE, *self.FLAGS, stdin=f"{command}\n".encode()).err)
        # A message that cannot be answered leaves all as it was.
        p = run("chat", BPE, *self.FLAGS, stdin=f"hello\nright\n/edit 1 {'long ' * 60}\n/save {a}\n".encode())
        self.assertEqual((p.returncode, a.read_text()), (1, b.read_text()))
        self.assertIn("too long", p.err)

    def test_branches(self):
        file, plain = self.dir / "s.json", self.dir / "p.json"
        script = "hello\n/branch other\nin the other\n/switch main\nin the first\n/branches\n"
        p = self.ok("chat", BPE, *self.FLAGS, "--session", file, stdin=script.encode())
        self.assertIn("* main  4 messages  in the first\n  other  4 messages  in the other\n", p.err)
        for name in ("main", "other"):
            self.ok("chat", BPE, *self.FLAGS, "--session", file, stdin=f"/switch {name}\n/save {self.dir}/{name}.json\n".encode())
            self.ok("chat", BPE, *self.FLAGS, stdin=f"hello\nin the {'first' if name == 'main' else name}\n/save {plain}\n".encode())
            self.assertEqual(self.messages(self.dir / f"{name}.json"), self.messages(plain))
        # Names are no paths, and odd ones are refused.
        before = sorted(q.name for q in self.dir.iterdir())
        self.ok("chat", BPE, *self.FLAGS, "--session", file, stdin=f"/branch ../../{self.dir.name}/evil\n/branches\n".encode())
        self.assertEqual(sorted(q.name for q in self.dir.iterdir()), before)
        for command, says in (("/branch", "expected a name"), ("/branch a b", "white space"), ("/branch main", "there already"), ("/branch \x1b[31m", "white space"),
                              ("/switch nowhere", "no branch 'nowhere'"), ("/switch", "expected the name"), (f"/branch {'x' * 65}", "64 bytes")):
            p = self.fails(1, "chat", BPE, *self.FLAGS, stdin=f"{command}\n".encode(), says=says)
            self.assertNotIn("\x1b", p.err)
        for bad in ({"messages": [], "branches": 3}, {"messages": [], "branches": {"a": 3}}, {"messages": [], "branches": {"a b": {"messages": []}}},
                    {"messages": [], "branch": 3}, {"messages": [], "branch": "x", "branches": {"x": {"messages": []}}},
                    {"messages": [], "left_out": -1}, {"messages": [], "left_out": 1}, {"messages": [], "left_out": "x"},
                    {"messages": [], "branches": {f"b{i}": {"messages": []} for i in range(300)}}):
            path = self.write("bad.json", json.dumps(bad))
            self.fails(1, "chat", BPE, "--session", path, stdin=b"x\n", says="bad.json")
            self.assertEqual(pathlib.Path(path).read_text(), json.dumps(bad))

    def test_context_overflow(self):
        turns = "".join(f"turn {i}\n" for i in range(12)).encode()
        p = run("chat", BPE, *self.FLAGS, stdin=turns)
        self.assertEqual(p.returncode, 1)
        self.assertIn("minfer: the context is full: the conversation has", p.err)
        self.assertIn("/undo, /edit or /clear make room; --overflow truncate-oldest-turns", p.err)
        self.fails(2, "chat", BPE, "--overflow", "never", stdin=b"x\n", says="expected error, truncate-oldest-turns or shift")
        for rule, unit in (("truncate-oldest-turns", "oldest messages"), ("shift", "oldest tokens")):
            with self.subTest(rule):
                p = self.ok("chat", BPE, *self.FLAGS, *self.ALWAYS_X, "--overflow", rule, "--stats", stdin=turns)
                self.assertIn("notice: the context is full; the ", p.err)
                self.assertIn(unit, p.err)
                self.assertEqual(len(p.out.splitlines()), 12)
                prompts, cached = self.read(p)
                self.assertLessEqual(max(prompts), 128 - 5)
                # Something is left out now and then, not at every turn: the others read only what is new.
                self.assertGreaterEqual(sum(c >= 32 for c in cached), 4, (prompts, cached))
                # One message that is too long: an error; the conversation goes on.
                p = run("chat", BPE, *self.FLAGS, "--overflow", rule, stdin=b"hello\n" + b"long " * 60 + b"\nhello\n")
                self.assertEqual(p.returncode, 1)
                self.assertIn("too long", p.err)
                self.assertEqual(p.err.count("too long"), 1)
                self.assertEqual(len(p.out.splitlines()), 2)
        p = run("chat", BPE, *self.FLAGS, stdin=b"long " * 60 + b"\nhello\n")
        self.assertEqual(p.err.count("too long"), 1)

    def test_faults_go_on(self):
        p = run("chat", BPE, *self.FLAGS, stdin=b"/bogus\n/save\n/load /no/such\n\xff\xfe\n//slash\n")
        self.assertEqual(p.returncode, 1)
        for words in ("no command here", "expected a file name", "cannot open", "not UTF-8"):
            self.assertIn(words, p.err)
        self.assertNotEqual(p.out, "")

    def test_templates_that_refuse(self):
        g = tiny.model(tiny.bpe_vocabulary, n_layer=1, template="{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}x")
        path = self.write("m.gguf", g.bytes())
        self.fails(1, "chat", path, "--system", "be", says="no system")
        g = tiny.model(tiny.bpe_vocabulary, n_layer=1)
        g.keys = [k for k in g.keys if k[0] != "tokenizer.chat_template"]
        self.fails(1, "chat", self.write("n.gguf", g.bytes()), says="--template")

    def test_absurd_numbers(self):
        for flags in (["-n", "0"], ["-n", "-5"], ["-n", "99999999999999"], ["--ctx", "-1"], ["--ctx", "1000000"], ["--temp", "nan"], ["--temp", "-1"],
                      ["--top-p", "7"], ["--threads", "x"], ["--seed", "-1"], ["--seed", "18446744073709551616"], ["--cache-type", "q9"]):
            self.fails(2, "chat", BPE, *flags, stdin=b"x\n")

    def chat_at_terminal(self, *flags):
        try:
            pid, fd = pty.fork()
        except OSError as e:  # no /dev/pts here, as in a bare chroot
            self.skipTest(f"no terminal can be opened here: {e}")
        if pid == 0:
            os.execve(BIN, [BIN, "chat", BPE, *flags], {**environment(), "TERM": "dumb"})
        return pid, fd

    def read_until(self, fd, words, seen=""):
        until = time.monotonic() + LIMIT_S
        while words not in seen:
            self.assertLess(time.monotonic(), until, seen)
            if select.select([fd], [], [], 1)[0]:
                try:
                    seen += os.read(fd, 4096).decode("utf-8", "replace")
                except OSError:
                    break
        self.assertIn(words, seen)
        return seen

    def test_ctrl_c_at_the_prompt_ends(self):
        pid, fd = self.chat_at_terminal()
        self.read_until(fd, "> ")
        os.kill(pid, signal.SIGINT)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130)
        os.close(fd)

    def test_ctrl_c_stops_an_answer_only(self):
        g = tiny.model(tiny.bpe_vocabulary, n_ctx=100000, tied=True, seed=2)
        path = self.write("long.gguf", g.bytes())
        p = subprocess.Popen([BIN, "chat", path, "--temp", "0", "--device", "ref", "--logit-bias", "266=-inf", "--logit-bias",
                              "264=-inf", "--threads", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment())
        p.stdin.write(b"hello\n")
        p.stdin.flush()
        self.assertNotEqual(p.stdout.read(1), b"")  # it answers
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(b"/save " + str(self.dir / "t.json").encode() + b"\n", timeout=LIMIT_S)
        self.assertEqual(p.returncode, 0, err)
        self.assertIn(b"stopped", err)
        self.assertEqual([m["role"] for m in json.loads((self.dir / "t.json").read_text())["messages"]], ["user", "assistant"])


if __name__ == "__main__":
    unittest.main()
