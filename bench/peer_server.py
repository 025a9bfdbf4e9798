"""llama-server as a peer: started on a free loopback port, asked over HTTP by threads that note when tokens come, stopped at the end."""
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time

START_SECONDS = 300   # loading a large model from a slow disk
ANSWER_SECONDS = 1800  # without a byte; a long prompt on a busy machine


def now_ms():
    return time.perf_counter() * 1e3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """with Server(program, model, threads, ["-np", "9"]) as server: server.ask(...)"""

    def __init__(self, program, model, threads, extra):
        self.port = free_port()
        self.command = [program, "-m", model, "--host", "127.0.0.1", "--port", str(self.port), "-t", str(threads), *extra]

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            self.wait_until_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        self.log.close()

    def wait_until_healthy(self):
        until = time.monotonic() + START_SECONDS
        while not self.healthy():
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                self.log.seek(0)
                sys.exit(f"{' '.join(self.command)} did not start:\n{self.log.read()[-2000:].decode(errors='replace')}")
            time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def ask(self, prompt, n, stream=True):
        return Answer(self.port, prompt, n, stream)


class Answer:
    """A greedy answer of n tokens to a list of ids, read on a thread of its own. Events are not parsed while they come, only counted, so that
    the client takes little of the processor it shares with the server."""

    def __init__(self, port, prompt, n, stream):
        self.body = json.dumps({"prompt": prompt, "n_predict": n, "temperature": 0, "ignore_eos": True, "stream": stream, "return_tokens": True})
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
        self.arrivals = []  # ms of each token
        self.raw = b""
        self.error = None
        self.cancelled = False
        self.first = threading.Event()  # the first token, or the end
        self.ended = threading.Event()
        self.connection.connect()
        self.socket = self.connection.sock
        self.stream = stream
        self.submitted = now_ms()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            self.connection.request("POST", "/completion", self.body, {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            parts = []
            while part := response.read1(1 << 20) if self.stream else response.read():
                if self.stream:
                    self.arrivals += [now_ms()] * part.count(b"data: ")
                    self.first.set()
                parts.append(part)
            self.raw = b"".join(parts)
            if response.status != 200:
                self.error = f"status {response.status}: {self.raw[:500].decode(errors='replace')}"
        except (OSError, http.client.HTTPException) as e:
            if not self.cancelled:
                self.error = repr(e)
        finally:
            self.finished = now_ms()
            self.ended.set()
            self.first.set()

    def cancel(self):
        self.cancelled = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def join(self):
        """The object that ends the answer (with its timings), empty when it was cancelled."""
        self.thread.join()
        self.connection.close()
        if self.error:
            sys.exit(f"llama-server: {self.error}")
        if self.cancelled:
            return {}
        if not self.stream:
            return json.loads(self.raw)
        events = [json.loads(line[6:]) for line in self.raw.split(b"\n") if line.startswith(b"data: {")]
        if not events or not events[-1].get("stop"):
            sys.exit(f"llama-server: the stream broke off: {self.raw[-500:].decode(errors='replace')}")
        self.ids = [i for e in events[:-1] for i in e.get("tokens", [])]
        del self.arrivals[len(events) - 1:]  # the last event carries no token
        return events[-1]

    def first_ms(self):
        return self.arrivals[0] - self.submitted
