#!/usr/bin/env python3
"""minfer batch and minfer replay as a user runs them: the same bytes whatever the threads, kill -9 at any moment, hostile
lines, mismatched resumes. Standard library only."""
import hashlib
import json
import math
import os
import random
import signal
import struct
import subprocess
import time
import unittest

from test_cli import BIN, BPE, SPM, Cli, environment, run


def chat(text, **more):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 8, **more}


def envelope(custom_id, body, url="/v1/chat/completions"):
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def jsonl(items):
    return "".join((i if isinstance(i, str) else json.dumps(i)) + "\n" for i in items)


def mixed(n, seed=1):
    """Requests of every kind, some with overlapping prompts, some that are refused."""
    rng = random.Random(seed)
    out = []
    for i in range(n):
        text = "hello the inner thing " * rng.randint(1, 6) + str(rng.randint(0, 9))
        kind = rng.randint(0, 6)
        if kind <= 2:
            out.append(envelope(f"c{i}", chat(text, max_tokens=rng.randint(1, 24), n=rng.choice([1, 1, 3]))))
        elif kind == 3:
            out.append({"id": i, "prompt": text, "max_tokens": rng.randint(1, 20), "seed": i, "temperature": 1.5})
        elif kind == 4:
            out.append(envelope(f"p{i}", {"prompt": [text, "thing"], "logprobs": 2, "temperature": 0}, "/v1/completions"))
        elif kind == 5:
            out.append(envelope(f"e{i}", {"input": [text, "hello"]}, "/v1/embeddings"))
        else:
            out.append(rng.choice([envelope(f"b{i}", chat(text, frobnicate=1)), "{not json", envelope(f"s{i}", chat(text, stream=True))]))
    return out


class Batch(Cli):
    def batch(self, items, *args, out="out.jsonl", model=SPM, code=0, **kw):
        text = items if isinstance(items, (str, bytes)) else jsonl(items)
        source = self.write("in.jsonl", text)
        target = self.dir / out
        p = run("batch", model, source, target, *args, **kw)
        self.assertEqual(p.returncode, code, p.err)
        return target.read_text().splitlines() if target.exists() else None

    def answers(self, *args, **kw):
        return [json.loads(line) for line in self.batch(*args, **kw)]

    def test_chat_completion_and_embeddings(self):
        r = self.answers([envelope("a", chat("hello", temperature=0)),
                          {"id": 7, "prompt": "hello", "temperature": 0, "max_tokens": 5, "echo": True, "logprobs": 1},
                          envelope("e", {"input": "hello"}, "/v1/embeddings"),
                          chat("hello", n=2, logprobs=True, top_logprobs=3)])
        self.assertEqual([x["line"] for x in r], [1, 2, 3, 4])
        self.assertTrue(all(x["error"] is None and x["response"]["status_code"] == 200 for x in r), r)
        self.assertEqual((r[0]["custom_id"], r[1]["id"]), ("a", 7))
        self.assertNotIn("custom_id", r[3])
        a = r[0]["response"]["body"]
        self.assertEqual((a["object"], a["created"], a["model"]), ("chat.completion", 0, a["model"]))
        single = json.loads(self.ok("run", SPM, "hello", "--temp", "0", "-n", "8", "--json").out)
        self.assertEqual(a["choices"][0]["message"]["content"], single["text"])
        self.assertEqual(a["minfer"]["token_ids"], [single["token_ids"]])
        self.assertEqual(a["minfer"]["prompt_ids"], single["prompt_ids"])
        self.assertEqual(a["usage"]["prompt_tokens"], len(single["prompt_ids"]))
        self.assertEqual(a["usage"]["total_tokens"], len(single["prompt_ids"]) + len(single["token_ids"]))
        b = r[1]["response"]["body"]
        self.assertEqual(b["object"], "text_completion")
        self.assertTrue(b["choices"][0]["text"].startswith("hello"))
        lists = b["choices"][0]["logprobs"]
        n = len(b["minfer"]["prompt_ids"]) + len(b["minfer"]["token_ids"][0])
        self.assertEqual({k: len(v) for k, v in lists.items()},
                         {"tokens": n, "token_logprobs": n, "top_logprobs": n, "text_offset": n})
        self.assertIsNone(lists["token_logprobs"][0])
        e = r[2]["response"]["body"]["data"][0]["embedding"]
        self.assertAlmostEqual(sum(x * x for x in e), 1.0, places=4)
        d = r[3]["response"]["body"]["choices"]
        self.assertEqual([c["index"] for c in d], [0, 1])
        for c in d:
            for token in c["logprobs"]["content"]:
                self.assertEqual(len(token["top_logprobs"]), 3)
                self.assertLessEqual(token["logprob"], 0)

    def test_hashes_are_what_the_documents_say(self):
        stamp = self.answers([chat("hello", n=2)])[0]["response"]["body"]["minfer"]
        with open(SPM, "rb") as f:
            self.assertEqual(stamp["model_sha256"], hashlib.sha256(f.read()).hexdigest())
        ids = stamp["prompt_ids"]
        self.assertEqual(stamp["prompt_sha256"], hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest())
        self.assertEqual(stamp["numerics"], 1)

    def test_bad_lines_harm_nobody(self):
        bad = {
            "{not json": "[json]", "[]": "expected a JSON object", "5": "expected a JSON object", "{}": "expected a \"body\"",
            '{"a":' * 200 + "1" + "}" * 200: "nested deeper",
            '{"messages":[{"role":"user","content":"\\ud800"}]}': "[json]",
            json.dumps(envelope("x", chat("a", temprature=1))): "\"temprature\": unknown field",
            json.dumps(envelope("x", chat("a"), "/v1/nothing")): "url: found \"/v1/nothing\"",
            json.dumps({**envelope("x", chat("a")), "method": "GET"}): "method: found \"GET\"",
            json.dumps({**envelope("x", chat("a")), "extra": 1}): "\"extra\": unknown field",
            json.dumps(envelope("x" * 600, chat("a"))): "custom_id: found",
            json.dumps(envelope("x", chat("a", stream=True))): "a batch does not stream",
            json.dumps(envelope("x", chat("a", response_format={"type": "json_object"}))): "response_format",
            json.dumps(envelope("x", chat("a", logit_bias={"999999": 1}))): "logit_bias: token id 999999",
            json.dumps(envelope("x", chat("a", max_tokens=1000000))): "positions, the context has",
            json.dumps(envelope("x", chat("word " * 5000))): "positions, the context has",
            json.dumps({"prompt": []}): "prompt: found []",
            json.dumps({"prompt": [5, 10 ** 9]}): "token id 1000000000",
            json.dumps({"prompt": "a", "max_tokens": 100, "n": 128, "top_k": -5}): "top_k",
        }
        good = chat("hello", temperature=0)
        items = [good]
        for line in bad:
            items += [line, good]
        r = self.answers(items)
        self.assertEqual(len(r), len(items))
        for i, (line, says) in enumerate(bad.items()):
            x = r[1 + 2 * i]
            self.assertIsNone(x["response"], line[:200])
            self.assertIn(says, x["error"]["message"])
            self.assertTrue(x["error"]["message"].startswith(f"line {x['line']}: "), x)
        texts = {x["response"]["body"]["choices"][0]["message"]["content"] for x in r[::2]}
        self.assertEqual(len(texts), 1)
        known = [x for x in r if x.get("custom_id") == "x"]
        self.assertGreaterEqual(len(known), 8)  # a refusal carries the id where it could be read

    def test_bytes_that_are_no_text(self):
        good = json.dumps(chat("hello")).encode()
        lines = [b'{"messages":[{"role":"user","content":"\xff"}]}', b"\0\0\0", b"", b"   \t", b"\xef\xbb\xbf" + good, good + b"\r"]
        r = self.answers(b"\n".join(lines))  # without a line end at the end
        self.assertEqual([(x["line"], x["error"] is None) for x in r], [(1, False), (2, False), (5, True), (6, True)])

    def test_long_line(self):
        long = json.dumps(chat("x" * (33 << 20)))
        r = self.answers([chat("hello"), long, chat("hello")])
        self.assertEqual([x["error"] is None for x in r], [True, False, True])
        self.assertIn("the line has more than 33554432 bytes", r[1]["error"]["message"])

    def test_same_bytes_whatever_the_run(self):
        items = mixed(60)
        first = self.batch(items)
        for i, flags in enumerate((["--threads", "1", "--parallel", "1"], ["--threads", "2", "--parallel", "7", "--chunk", "3"],
                                   ["--kv-memory", "100K", "--ctx", "127"])):
            again = self.batch(items, *flags, out=f"again{i}.jsonl")
            if "--ctx" not in flags:
                self.assertEqual(again, first, flags)
            else:  # another context, but these requests fit both
                self.assertEqual([json.loads(x)["response"] for x in again], [json.loads(x)["response"] for x in first])
        for i, draft in enumerate(([], ["--draft-max", "3", "--draft-kv-memory", "100K"])):
            self.assertEqual(self.batch(items, "--draft", SPM, *draft, out=f"draft{i}.jsonl"), first)
        finished = self.batch(items, "--as-finished", out="finished.jsonl")
        self.assertEqual(sorted(finished), sorted(first))

    def test_seeds(self):
        r = self.answers([chat("hello", temperature=2)] * 3 + [chat("hello", temperature=2, seed=5)] * 2)
        seeds = [x["response"]["body"]["minfer"]["parameters"]["seed"] for x in r]
        self.assertEqual(len(set(seeds)), 4)
        self.assertEqual(seeds[3:], [5, 5])
        self.assertLess(max(seeds), 2 ** 53)
        other = self.answers([chat("hello", temperature=2)], "--seed", "9", out="other.jsonl")
        self.assertNotEqual(other[0]["response"]["body"]["minfer"]["parameters"]["seed"], seeds[0])

    def test_best_of(self):
        ask = {"prompt": "hello the inner thing", "temperature": 1.5, "max_tokens": 8, "ignore_eos": True}
        items = [{**ask, "n": 2, "best_of": 5, "seed": 3}] + [{**ask, "logprobs": 0, "seed": 3 + i} for i in range(5)]
        items.append({**ask, "best_of": 3, "seed": 9, "max_tokens": 4, "stop": ["e"], "ignore_eos": False})
        r = [x["response"]["body"] for x in self.answers(items)]
        means = [sum(b["choices"][0]["logprobs"]["token_logprobs"]) for b in r[1:6]]
        order = sorted(range(5), key=lambda i: -means[i])
        self.assertEqual([c["text"] for c in r[0]["choices"]], [r[1 + i]["choices"][0]["text"] for i in order[:2]])
        self.assertEqual([c["index"] for c in r[0]["choices"]], [0, 1])
        self.assertEqual(r[0]["usage"]["completion_tokens"], 40)
        self.assertEqual(r[0]["minfer"]["parameters"]["best_of"], 5)
        self.assertIn("7 answers", self.ok("replay", self.dir / "out.jsonl").out)

    def test_logprobs_of_what_was_drawn_from(self):
        more = {"logprobs": True, "top_logprobs": 5, "post_sampling_probs": True, "top_k": 3, "top_p": 1, "min_p": 0}
        r = self.answers([chat("hello", temperature=1, **more), chat("hello", temperature=0, **more),
                          {"prompt": "hello", "logprobs": 3, "post_sampling_probs": True, "temperature": 0}])
        for t in r[0]["response"]["body"]["choices"][0]["logprobs"]["content"]:
            self.assertEqual(len(t["top_logprobs"]), 3)
            self.assertAlmostEqual(sum(math.exp(x["logprob"]) for x in t["top_logprobs"]), 1, places=5)
            self.assertIn(t["logprob"], [x["logprob"] for x in t["top_logprobs"]])
        for t in r[1]["response"]["body"]["choices"][0]["logprobs"]["content"]:
            self.assertEqual((t["logprob"], len(t["top_logprobs"])), (0, 1))
        self.assertEqual(set(r[2]["response"]["body"]["choices"][0]["logprobs"]["token_logprobs"]), {0})

    def test_dry_sequence_breakers(self):
        ask = chat("hello hello hello", dry_multiplier=1, temperature=0)
        items = [ask, {**ask, "dry_sequence_breakers": []}, {**ask, "dry_sequence_breakers": ["e"]},
                 {**ask, "dry_sequence_breakers": ["\n", ":", "\"", "*"]}, chat("a", dry_sequence_breakers=["e"])]
        ids = [x["response"]["body"]["minfer"]["parameters"].get("dry_breakers") for x in self.answers(items)]
        self.assertEqual(ids[1], [])
        self.assertTrue(ids[2] and ids[2] != ids[0])
        self.assertEqual(ids[3], ids[0])
        self.assertIsNone(ids[4])
        self.ok("replay", self.dir / "out.jsonl")

    def test_ctrl_c_stops_embeddings(self):
        inputs = [[(i * 31 + k) % 200 + 3 for k in range(120)] for i in range(2048)]
        items = [chat("hello")] + [{"input": [[k + 3] + x for x in inputs]} for k in range(6)]
        source, target = self.write("in.jsonl", jsonl(items)), self.dir / "out.jsonl"
        p = subprocess.Popen([BIN, "batch", SPM, source, str(target)], stderr=subprocess.PIPE, env=environment())
        while p.poll() is None and (not target.exists() or target.stat().st_size == 0):
            time.sleep(0.005)
        p.send_signal(signal.SIGINT)
        err = p.communicate()[1].decode()
        self.assertEqual(p.returncode, 130, err)
        self.assertLess(target.read_text().count("\n"), 7)  # each line is a quarter of a million tokens

    def test_kill_at_random_moments(self):
        items = [chat("hello the inner thing " * (1 + i % 9), max_tokens=None, ignore_eos=True, temperature=1) for i in range(80)]
        whole = self.batch(items, "--ctx", "120", out="whole.jsonl")
        source = str(self.dir / "in.jsonl")
        rng = random.Random(int.from_bytes(os.urandom(4), "little"))
        for order in ([], ["--as-finished"]):
            kills = 0
            for attempt in range(50):  # a fast machine ends a batch before ten kills: then the next batch gets the rest
                target = self.dir / f"killed{'-finished' if order else ''}-{attempt}.jsonl"
                kills = self.kill_and_resume([BIN, "batch", SPM, source, str(target), "--ctx", "120", *order], target, whole, kills, rng)
                lines = target.read_text().split("\n")[:-1]
                self.assertEqual(lines if not order else sorted(lines), whole if not order else sorted(whole))
                if kills == 10:
                    break
            self.assertEqual(kills, 10)

    def kill_and_resume(self, command, target, whole, kills, rng):
        """Runs a batch to its end, killed until `kills` is 10; gives the kills so far."""
        kept = []
        for _ in range(200):
            p = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment())
            if kills < 10:
                # Once a line more is there than before, or after a moment: both happen in the middle of things.
                size, until = target.stat().st_size if target.exists() else 0, time.time() + rng.uniform(0, 1)
                grow = rng.randint(0, 40000)
                while p.poll() is None and time.time() < until and (not target.exists() or target.stat().st_size <= size + grow):
                    time.sleep(0.001)
                kills += p.poll() is None
                p.kill()
            p.wait()
            p.stderr.close()
            text = target.read_text() if target.exists() else ""
            lines = text.split("\n")[:-1]
            self.assertEqual(lines[:len(kept)], kept)  # what was there stays there
            kept = lines
            if p.returncode == 0:
                return kills
            if kills < 10 and rng.randint(0, 1):
                with open(target, "a") as f:  # as a crash in the middle of a write leaves it
                    f.write(whole[0][:rng.randint(1, len(whole[0]) - 1)])
        self.fail("200 runs did not end the batch")

    def test_ctrl_c_and_on(self):
        items = [chat("hello", max_tokens=None, ignore_eos=True) for _ in range(2000)]
        source, target = self.write("in.jsonl", jsonl(items)), self.dir / "out.jsonl"
        command = [BIN, "batch", SPM, source, str(target)]
        p = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment())
        while p.poll() is None and (not target.exists() or target.stat().st_size == 0):
            time.sleep(0.005)
        p.send_signal(signal.SIGINT)
        err = p.communicate()[1].decode()
        self.assertEqual(p.returncode, 130, err)
        self.assertIn("goes on", err)
        text = target.read_text()
        self.assertTrue(text.endswith("\n"))
        self.assertLess(text.count("\n"), 2000)

    def test_what_is_done_is_not_done_again(self):
        items = mixed(12)
        first = self.batch(items)
        stat = (self.dir / "out.jsonl").stat()
        self.assertEqual(self.batch(items), first)
        self.assertEqual((self.dir / "out.jsonl").stat().st_mtime_ns, stat.st_mtime_ns)
        more = self.batch(items + [chat("more")])  # the input has grown
        self.assertEqual(more[:-1], first)

    def test_mismatches_are_refused(self):
        items = [chat("hello"), chat("the")]
        first = self.batch(items)
        source, target = self.dir / "in.jsonl", self.dir / "out.jsonl"

        def refused(*args, says, model=SPM):
            self.fails(1, "batch", model, source, target, *args, says=says)
            self.assertEqual(target.read_text().splitlines(), first)

        refused("--seed", "1", says="another sampling")
        refused("--temp", "0", says="another sampling")
        refused("--cache-type", "f32", says="another cache_type_k")
        refused("--ctx", "100", says="another ctx")
        refused("-n", "3", says="another max_tokens")
        refused("--as-finished", says="another order")
        refused("--no-stamp", says="another stamp")
        refused("--template", "chatml", says="another template_sha256")
        refused(says="another model", model=BPE)
        source.write_text(jsonl([chat("hello"), chat("thing")]))
        refused(says="the result of another line 2")
        source.write_text(jsonl([chat("hello")]))
        refused(says="the input has 1 lines")
        source.write_text(jsonl(items))
        note = self.dir / "out.jsonl.batch"
        kept = note.read_text()
        note.write_text("{")
        refused(says="damaged")
        note.unlink()
        refused(says="that says what made it")
        note.write_text(kept)
        for damage, says in ((first[0] + "\n" + first[0] + "\n", "second result of the same line"),
                             ("hello\n", "no result of a batch"), (first[0][:-1] + "\n", "no JSON")):
            target.write_text(damage)
            self.fails(1, "batch", SPM, source, target, says=says)
            self.assertEqual(target.read_text(), damage)
        self.ok("batch", SPM, source, target, "--overwrite")
        self.assertEqual(target.read_text().splitlines(), first)

    def test_arguments(self):
        source = self.write("in.jsonl", jsonl([chat("hello", model="tiny-spm"), chat("hello", model="gpt-4o"), chat("hello")]))
        out = self.dir / "out.jsonl"
        self.fails(2, "batch", source)
        self.fails(2, "batch", SPM, source, out, "--model", SPM, says="given already")
        self.fails(1, "batch", SPM, self.dir / "absent", out, says="cannot open")
        self.fails(1, "batch", SPM, self.dir, out, says="not a regular file")
        self.fails(1, "batch", SPM, source, self.dir)
        self.fails(1, "batch", SPM, source, "/dev/null", says="not a regular file")
        self.fails(2, "batch", SPM, source, source, says="both the input and the output")
        self.fails(2, "batch", SPM, source, out, "--kv-memory", "2X", says="--kv-memory")
        self.fails(2, "batch", SPM, source, out, "--cache-type", "q4_0", says="--cache-type")
        self.fails(2, "batch", SPM, source, out, "--draft-max", "4", says="--draft-max: expected --draft MODEL too")
        self.fails(2, "batch", SPM, source, out, "--draft", SPM, "--draft-max", "65", says="--draft-max")
        self.fails(2, "batch", SPM, source, out, "--draft", BPE, says="a vocabulary of 267 tokens, expected the 297")
        # Without MODEL: --model, or the model that the first line names and all others have to name too.
        self.ok("batch", "--model", SPM, source, out)
        self.ok("batch", source, self.dir / "named.jsonl")
        named = [json.loads(x) for x in (self.dir / "named.jsonl").read_text().splitlines()]
        self.assertEqual([x["error"] is None for x in named], [True, False, True])
        self.assertIn("model: found \"gpt-4o\", expected \"tiny-spm\"", named[1]["error"]["message"])
        nameless = self.write("nameless.jsonl", jsonl([chat("hello")]))
        self.fails(2, "batch", nameless, self.dir / "x.jsonl", says="names none")

    def test_two_at_once(self):
        source = self.write("in.jsonl", jsonl([chat("hello", max_tokens=None, ignore_eos=True)] * 3000))
        target = self.dir / "out.jsonl"
        p = subprocess.Popen([BIN, "batch", SPM, source, str(target)], stderr=subprocess.PIPE, env=environment())
        while p.poll() is None and (not target.exists() or target.stat().st_size == 0):
            time.sleep(0.005)
        self.fails(1, "batch", SPM, source, target, says="another minfer batch is writing it")
        p.kill()
        p.wait()
        p.stderr.close()

    def test_empty_input(self):
        self.assertEqual(self.batch(""), [])
        self.assertEqual(self.batch("\n \n", out="blank.jsonl"), [])

    def test_disk_full(self):
        source = self.write("in.jsonl", jsonl([chat("hello")] * 50))
        limited = ["bash", "-c", 'ulimit -f 8; exec "$0" "$@"', BIN, "batch", SPM, source, str(self.dir / "out.jsonl")]
        env = environment()
        p = subprocess.run(limited, capture_output=True, env=env, preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn(b"writing failed", p.stderr)
        self.ok("batch", SPM, source, self.dir / "out.jsonl")
        self.assertEqual(len((self.dir / "out.jsonl").read_text().splitlines()), 50)


    def test_the_umask_counts(self):
        source = self.write("in.jsonl", jsonl([chat("hello")]))
        self.ok("batch", SPM, source, self.dir / "a.jsonl", umask=0o077)
        self.ok("batch", SPM, source, self.dir / "b.jsonl", umask=0o022)
        modes = {name: os.stat(self.dir / name).st_mode & 0o777 for name in ("a.jsonl", "a.jsonl.batch", "b.jsonl", "b.jsonl.batch")}
        self.assertEqual(modes, {"a.jsonl": 0o600, "a.jsonl.batch": 0o600, "b.jsonl": 0o644, "b.jsonl.batch": 0o644})

    def test_texts_that_are_not_quite_json(self):
        r = self.answers('{"prompt":"Hi"}\0garbage\n{"prompt":"a","prompt":"b"}\n{"body":{"prompt":"a","n":1,"n":1}}\n')
        says = [x["error"]["message"] for x in r]
        self.assertIn("found a NUL byte", says[0])
        self.assertIn("the key 'prompt' occurs twice", says[1])
        self.assertIn("the key 'n' occurs twice", says[2])

    def test_ids(self):
        r = self.answers([{"id": None, "prompt": "hello", "max_tokens": 1}, {"custom_id": None, "id": 3, "prompt": "hello", "max_tokens": 1},
                          {"custom_id": None, "id": None, "prompt": "hello", "max_tokens": 1}, envelope(None, chat("hello")),
                          {"id": 1.5, "prompt": "hello"}, {"id": 1 << 64, "prompt": "hello"}])
        self.assertTrue(all(x["error"] is None for x in r[:4]), r)
        self.assertEqual([x.get("id") for x in r[:4]], [None, 3, None, None])
        for x in r[4:]:
            self.assertIn("or a whole number of 64 bits", x["error"]["message"])


class Replay(Cli):
    def test_batch(self):
        source, out = self.write("in.jsonl", jsonl(mixed(30))), self.dir / "out.jsonl"
        self.ok("batch", BPE, source, out)
        p = self.ok("replay", out)
        self.assertRegex(p.out, r"^the same, bit for bit: \d+ answers, \d+ tokens\n$")
        self.ok("replay", out, "--threads", "1", "--parallel", "2", "--isa", "scalar")
        self.fails(1, "replay", out, "--model", SPM, says="made with the model of hash")

    def test_run(self):
        answer = self.write("a.json", self.ok("run", SPM, "hello", "--json", "--stamp", "--temp", "1", "-n", "9",
                                              "--cache-type", "q8_0", "--logit-bias", "5=-inf").stdout)
        self.assertIn("bit for bit: 1 answers", self.ok("replay", answer).out)
        self.fails(2, "run", SPM, "hello", "--stamp", says="--stamp")

    def test_insight(self):
        source, out, trace, dumps = self.write("in.jsonl", jsonl(mixed(6))), self.dir / "out.jsonl", self.dir / "t.json", self.dir / "dumps"
        p = self.ok("batch", BPE, source, out, "--trace", trace, "--dump-graph", self.dir / "g.dot")
        self.assertIn("GFLOP/s", p.err)
        self.assertIn("traceEvents", json.loads(trace.read_text()))
        self.assertIn("digraph", (self.dir / "g.dot").read_text())
        p = self.ok("replay", out, "--dump-dir", dumps, env={"MINFER_DISABLE_PASS": "fuse_rope_store", "MINFER_TRACE": str(self.dir / "r.json")})
        self.assertIn("bit for bit", p.out)
        self.assertGreater(len(list(dumps.iterdir())), 20)
        self.assertIn("traceEvents", json.loads((self.dir / "r.json").read_text()))
        self.fails(1, "batch", BPE, source, out, "--trace", self.dir / "no/such", says="--trace")
        self.fails(2, "batch", BPE, source, out, env={"MINFER_KERNEL": "matmul:none"}, says="MINFER_KERNEL")

    def test_context_that_ended(self):
        out = run("run", SPM, "hello", "--json", "--stamp", "--ctx", "40", "--ignore-eos")
        self.assertEqual(json.loads(out.out)["finish_reason"], "context")
        self.ok("replay", self.write("a.json", out.stdout))

    def test_first_difference(self):
        record = json.loads(self.ok("run", SPM, "hello", "--json", "--stamp", "--temp", "0", "-n", "9", "--ignore-eos").out)
        good = record["minfer"]["token_ids"][0][4]
        record["minfer"]["token_ids"][0][4] = 40 if good != 40 else 41
        p = run("replay", self.write("a.json", json.dumps(record)))
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.out, rf'^line 1, choice 0, token 4: recorded 4[01] ".*", now {good} ".*"\n1 of 1 answers differ\n$')
        record["minfer"]["token_ids"][0][4] = good
        record["minfer"]["output_sha256"] = "0" * 64
        self.assertIn("another text", run("replay", self.write("a.json", json.dumps(record))).out)
        record["minfer"]["prompt_ids"][0] = 5
        self.fails(1, "replay", self.write("a.json", json.dumps(record)), says="the record was changed")

    def test_what_is_shown_is_compared(self):
        record = json.loads(self.ok("run", SPM, "hello", "--json", "--stamp", "--temp", "0", "-n", "9", "--ignore-eos").out)
        self.ok("replay", self.write("a.json", json.dumps(record)))
        for key, value in (("text", "another"), ("text", None), ("token_ids", record["token_ids"][:-1]), ("prompt_ids", [1]),
                           ("finish_reason", "stop"), ("seed", 1 + record["seed"]), ("generated_tokens", 4)):
            p = run("replay", self.write("a.json", json.dumps({**record, key: value})))
            self.assertEqual(p.returncode, 1, p.out)
            self.assertIn(f"line 1, what is shown is not what was computed: {key} is ", p.out)
        changed = json.loads(json.dumps(record))
        changed["minfer"]["finish"] = ["stop"]
        self.assertIn('stamp.finish is "stop", computed "length"', run("replay", self.write("a.json", json.dumps(changed))).out)

        source, out = self.write("in.jsonl", jsonl([
            chat("hello", n=2, ignore_eos=True), {"prompt": ["hello", "thing"], "echo": True, "max_tokens": 5, "ignore_eos": True},
            {"prompt": [[5, 6, 7]], "echo": True, "max_tokens": 5, "logprobs": 1}])), self.dir / "out.jsonl"
        self.ok("batch", SPM, source, out)
        self.assertIn("bit for bit: 4 answers", self.ok("replay", out).out)
        lines = [json.loads(line) for line in out.read_text().splitlines()]

        def edited(line, change):
            record = json.loads(json.dumps(lines[line]))
            change(record["response"]["body"])
            return run("replay", self.write("e.jsonl", json.dumps(record)))

        def put(*path, value):
            def change(body):
                for key in path[:-1]:
                    body = body[key]
                body[path[-1]] = value
            return change

        for line, change, says in (
                (0, put("choices", 1, "message", "content", value="no"), "choice 1: message is"),
                (0, put("choices", 0, "message", "tool_calls", value=[{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}]), "choice 0: message is"),
                (0, put("choices", 0, "message", "reasoning_content", value="hm"), "choice 0: message is"),
                (0, put("choices", 0, "finish_reason", value="stop"), 'choice 0: finish_reason is "stop", computed "length"'),
                (0, put("choices", value=lines[0]["response"]["body"]["choices"][:1]), "choices: 1 are shown"),
                (0, put("usage", "completion_tokens", value=3), "usage.completion_tokens is 3"),
                (1, put("choices", 1, "text", value="no"), "line 1, prompt 1, what is shown is not what was computed: choice 1: text is"),
                (1, put("choices", 0, "text", value="x" + lines[1]["response"]["body"]["choices"][0]["text"]), "choice 0: text is"),
                (1, put("choices", 1, "finish_reason", value="stop"), "choice 1: finish_reason is"),
                (2, put("choices", 0, "text", value=""), "choice 0: text is")):
            p = edited(line, change)
            self.assertEqual(p.returncode, 1, p.out)
            self.assertIn(says, p.out)

    def test_lines_that_cannot_be_read(self):
        source, out = self.write("in.jsonl", jsonl([chat("hello"), chat("thing")])), self.dir / "out.jsonl"
        self.ok("batch", SPM, source, out)
        good = out.read_text().splitlines()
        long = json.loads(good[0])
        long["response"]["body"]["more"] = "x" * (33 << 20)  # longer than a line of an input may be
        self.assertIn("bit for bit: 2 answers", self.ok("replay", self.write("l.jsonl", jsonl([long, good[1]]))).out)
        p = self.fails(1, "replay", self.write("b.jsonl", jsonl([good[0], "{half", good[1], '{"minfer":{}}'])), says="line 2: [json]")
        self.assertIn("line 4: stamp.model_sha256", p.err)
        self.assertIn("2 lines could not be compared", p.err)
        self.assertIn("bit for bit: 2 answers", p.out)

    def test_files_that_are_no_records(self):
        for text, says in (("", "no stamped answer"), ("{}\n", "no stamped answer"), ("x", "[json]"), ('{"minfer":5}', "stamp: found 5"),
                           ('{"minfer":[[]]}', "stamp: found []"), ('{"model_sha256":1}', "stamp.model_sha256: found 1")):
            self.fails(1, "replay", self.write("x.json", text), says=says)
        self.fails(1, "replay", self.dir / "absent", says="cannot open")
        record = json.loads(self.ok("run", SPM, "hello", "--json", "--stamp", "-n", "2").out)
        record["minfer"]["model_sha256"] = "1" * 64
        self.fails(1, "replay", self.write("x.json", json.dumps(record)), says="no model with the hash")


if __name__ == "__main__":
    unittest.main()
