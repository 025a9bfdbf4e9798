#!/usr/bin/env python3
"""Tests of the check scripts: each finds the fault it is there for, in a small project made for it, and nothing else."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent

CMAKE = "minfer_layer(base LIBS fmt::fmt)\nminfer_layer(quant DEPS base)\nminfer_layer(backend DEPS quant)\n"


class Checks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_check(self, check, *arguments):
        done = subprocess.run([sys.executable, str(TOOLS / f"check_{check}.py"), "--root", str(self.root), *arguments],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def expect(self, check, *findings):
        """The check reports exactly one problem for each finding, which is a part of its line."""
        code, output = self.run_check(check)
        self.assertEqual(code, 1 if findings else 0, output)
        for finding in findings:
            self.assertIn(finding, output)
        self.assertIn(f"{len(findings)} problems" if findings else "ok", output)

    def project(self):
        self.write("CMakeLists.txt", CMAKE)
        self.write("include/minfer/error.h", "#include <string>\n")
        self.write("src/base/a.h", '#include "minfer/error.h"\n')
        self.write("src/quant/b.h", '#include "base/a.h"\n')

    def test_layers_clean(self):
        self.project()
        self.expect("layers")

    def test_layers_upward(self):
        self.project()
        self.write("src/base/c.cpp", '#include "quant/b.h"\n')
        self.expect("layers", "src/base/c.cpp: layer 'base' may not include quant/b.h")

    def test_layers_missing(self):
        self.project()
        self.write("src/base/c.cpp", '#  include "base/gone.h"\n')
        self.write("src/base/d.cpp", '#include "minfer/gone.h"\n')
        self.write("src/odd/e.cpp", "\n")
        self.expect("layers", "src/base/gone.h does not exist", "include/minfer/gone.h does not exist", "folder src/odd/")

    def test_layers_public_and_heavy(self):
        self.project()
        self.write("include/minfer/model.h", '#include "base/a.h"\n')
        self.write("src/base/d.h", "#include <nlohmann/json.hpp>\n")
        self.write("src/base/d.cpp", "#include <nlohmann/json.hpp>\n")
        self.expect("layers", "public header includes base/a.h", "header includes nlohmann/json.hpp")

    def test_layers_order(self):
        self.project()
        self.write("CMakeLists.txt", CMAKE.replace("(base LIBS", "(base DEPS backend LIBS"))
        self.expect("layers", "layer 'base' depends on 'backend', which does not stand above it")

    def test_layers_kernels(self):
        self.project()
        self.write("cmake/isa.cmake", "minfer_isa(avx2 -O3 -mavx2)\n")
        self.write("src/backend/cpu/generic/dot.cpp", "#include <cmath>\n")
        self.write("src/backend/cpu/pack/pack.cpp", "#include <vector>\n")
        self.write("src/backend/cpu/kernels.h", "#include <cstddef>\n")
        self.write("src/backend/cpu/dot-inl.h", "#include <cstdint>\n")
        good = '#include "backend/cpu/kernels.h"\n#include "backend/cpu/dot-inl.h"\n#include <immintrin.h>\n'
        self.write("src/backend/cpu/avx2/dot.cpp", good)
        self.write("src/backend/cpu/avx2/dot_test.cpp", good + "#include <vector>\n")
        self.expect("layers")
        self.write("src/backend/cpu/avx2/dot.cpp", good + '#include <algorithm>\n#include "base/a.h"\n')
        self.write("src/backend/cpu/kernels.h", "#include <vector>\n")
        self.write("src/backend/cpu/generic/vec-inl.h", "")
        self.write("src/backend/cpu/sum-inl.h", '#include "backend/cpu/generic/vec-inl.h"\n')
        self.expect("layers", "kernel file includes algorithm", "kernel file includes base/a.h", "kernels.h: kernel file "
                    "includes vector", "sum-inl.h: kernel file includes backend/cpu/generic/vec-inl.h")

    def test_size(self):
        self.write("src/a.cpp", "\n" * 800)
        self.expect("size")
        self.write("src/b.cpp", "\n" * 801)
        self.expect("size", "src/b.cpp: 801 lines")
        self.write("tools/size_allow.txt", "src/b.cpp  a table\n")
        self.expect("size")
        self.write("tools/size_allow.txt", "src/b.cpp  a table\nsrc/a.cpp  no need\nsrc/c.cpp  gone\n")
        self.expect("size", "src/a.cpp has 800 lines and needs no entry", "src/c.cpp does not exist")
        self.write("tools/size_allow.txt", "src/b.cpp\n")
        self.assertIn("no reason given", self.run_check("size")[1])

    def test_words(self):
        self.write("src/base/a.cpp", 'int n = snprintf(b, 2, "x");  // printf( in a comment\nfoo.exit();\nfputs("x", file);\n')
        self.write("docs/a.md", "`~/home/x` src/work/b $HOME/work\n")
        self.write("cli/main.cpp", 'std::printf("x");\n')
        self.expect("words")
        self.write("src/base/b.cpp", 'fputs("x", stderr);\nstd::cerr << 1;\nexit(1);\n')
        self.write("docs/b.md", "see /" + "work/x\n/" + "home/someone\nTO" + "DO later\n")
        self.expect("words", "b.cpp:1: printing", "b.cpp:2: printing", "b.cpp:3: ending", "b.md:1: path", "b.md:2: path",
                    "b.md:3: note")
        self.write("tools/words_allow.txt", "src/base/b.cpp:exit(  wanted\nsrc/base/b.cpp:abort(  not there\n")
        self.assertIn("'src/base/b.cpp:abort(' is not found any more", self.run_check("words")[1])
        self.assertNotIn("b.cpp:3", self.run_check("words")[1])

    def test_words_of_programs(self):
        self.write("answer.log", "/" + "work/x\n")
        self.expect("words")

    def test_docs(self):
        self.write("Makefile", "a b-c: d\nd:\n")
        self.write("src/x/one.cpp", "")
        self.write("docs/two.md", "# A heading, here\n")
        self.write("README.md", "[a](docs/two.md#a-heading-here) [b](https://example.org) `src/x/{one,<name>}.cpp` `src/x/`\n"
                                "`make b-c`\n```\nmake a\n```\n")
        self.expect("docs")
        self.write("README.md", "[a](docs/two.md#other) [b](gone.md) `src/x/gone.cpp` `src/y/*.cpp`\n```\nmake gone\n```\n")
        self.expect("docs", "docs/two.md#other: no such heading", "gone.md: no such file", "`src/x/gone.cpp`",
                    "`src/y/*.cpp`", "'make gone'")

    def test_headers(self):
        self.write("src/a.h", "#pragma once\n#include <string>\ninline std::string f() { return {}; }\n")
        self.write("src/b-inl.h", "not C++\n")
        self.expect("headers")
        self.write("src/c.h", "#pragma once\ninline std::string f() { return {}; }\n")
        self.write("src/d.h", "struct Twice {};\n")
        self.expect("headers", "src/c.h: does not compile alone", "src/d.h: does not compile alone")

    def test_isa(self):
        self.write("cmake/isa.cmake", "minfer_isa(avx2 -O3 -mavx2)\n")
        weak = "inline int f() { return 1; }\nint (*h())() { return f; }\n"
        strong = "static inline int f() { return 1; }\nint g() { return f(); }\n"
        for name, source in {"avx2/good": strong, "avx2/bad": weak, "matmul/free": weak}.items():
            target = self.root / f"build/release/CMakeFiles/x.dir/src/backend/cpu/{name}.cpp.o"
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["g++", "-x", "c++", "-c", "-o", str(target), "-"], input=source, text=True, check=True)
        self.expect("isa", "avx2/bad.cpp: weak symbol f()")

    def test_isa_not_built(self):
        self.write("cmake/isa.cmake", "minfer_isa(avx2 -O3 -mavx2)\n")
        self.write("build/release/build.ninja", "")
        self.expect("isa")
        self.write("src/backend/cpu/avx2/dot.cpp", "")
        self.expect("isa", "no object of src/backend/cpu/avx2/dot.cpp")


if __name__ == "__main__":
    unittest.main()
