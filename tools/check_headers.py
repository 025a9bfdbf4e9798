#!/usr/bin/env python3
"""Checks that every header compiles alone. Left out: *-inl.h (bodies that expect their includer's names), CUDA headers.

Headers of an instruction set's folder get that set's flags as cmake/isa.cmake gives them.
"""
import concurrent.futures
import os
import subprocess

import repo

FLAGS = ["-std=gnu++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-pragma-once-outside-header",
         "-Iinclude", "-Isrc"]


def compile_one(root, path, flags):
    unit = f'#include "{path}"\n#include "{path}"\n'  # twice: the guard must hold
    # The unit comes by standard input, so it is no file of its own and "#pragma once" means what it should.
    command = [os.environ.get("CXX", "g++"), *FLAGS, "-I.", *flags, "-x", "c++", "-"]
    done = subprocess.run(command, input=unit, cwd=root, capture_output=True, text=True)
    output = done.stderr.strip()
    return f"{path}: does not compile alone\n{output}" if done.returncode or output else None


def main():
    arguments = repo.arguments(__doc__, jobs=os.cpu_count() or 1)
    root, flags = arguments.root, repo.isa_flags(arguments.root)
    headers = [p for p in repo.files(root)
               if p.suffix == ".h" and not p.name.endswith("-inl.h") and p.parts[0] in {"include", "src", "cli"}]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = pool.map(lambda p: compile_one(root, p, flags.get(p.parent.name, [])), headers)
    repo.report("headers", [r for r in results if r], f"{len(headers)} headers")


if __name__ == "__main__":
    main()
