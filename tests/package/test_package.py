#!/usr/bin/env python3
"""Installs the build (MINFER_BUILD) into a folder, builds examples/ against the package and runs them on a tiny model."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("MINFER_BUILD", str(ROOT / "build/release"))
MODEL = str(ROOT / "tests/data/models/tiny-bpe.gguf")


def run(*args):
    p = subprocess.run(list(map(str, args)), capture_output=True, text=True)
    if p.returncode != 0:
        raise AssertionError(f"{args}: {p.returncode}\n{p.stdout[-4000:]}\n{p.stderr[-4000:]}")
    return p.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="minfer-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, True)
        cls.prefix = cls.dir / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        run("cmake", "-G", "Ninja", "-S", ROOT / "examples", "-B", cls.dir / "build", f"-DCMAKE_PREFIX_PATH={cls.prefix}",
            *([f"-DCMAKE_CXX_COMPILER={os.environ['MINFER_CXX']}"] if "MINFER_CXX" in os.environ else []))
        run("cmake", "--build", cls.dir / "build", "-j", "2")

    def example(self, name, *args):
        return run(self.dir / "build" / name, MODEL, *args)

    def test_what_is_installed(self):
        files = {str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*") if p.is_file()}
        self.assertIn("bin/minfer", files)
        for header in (ROOT / "include/minfer").glob("*.h"):
            self.assertIn(f"include/minfer/{header.name}", files)
        for name in ("libminfer.a", "cmake/minfer/minferConfig.cmake", "cmake/minfer/minferConfigVersion.cmake"):
            self.assertTrue(any(f.endswith("/" + name) for f in files), name)
        # Nothing of this machine's folders in what other machines would read.
        for config in self.prefix.rglob("*.cmake"):
            self.assertNotIn(str(ROOT), config.read_text())
        self.assertRegex(run(self.prefix / "bin/minfer", "--version"), r"^minfer \d")

    def test_answer(self):
        out = self.example("answer", "hello the")
        self.assertEqual(out, self.example("answer", "hello the"))
        self.assertTrue(1 <= len(re.findall(r"(?m)^token \d+: log-probability -\d+\.\d{4}$", out)) <= 16, out)

    def test_many_streams(self):
        out = self.example("many_streams", "hello", "the", "inner thing")
        for i in range(3):
            self.assertRegex(out, rf"(?m)^{i}: ")
        self.assertRegex(out, r"(?m)^\d+ tokens in \d+ steps$")

    def test_embeddings(self):
        lines = self.example("embeddings", "hello the", "hello the", "thing").splitlines()
        self.assertEqual([line.split(" ", 1)[1] for line in lines], ["hello the", "hello the", "thing"])
        near = [float(line.split(" ", 1)[0]) for line in lines]
        self.assertEqual(near[:2], [1.0, 1.0])
        self.assertLess(near[2], 1.0)


if __name__ == "__main__":
    unittest.main()
