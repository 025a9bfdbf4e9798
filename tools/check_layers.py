#!/usr/bin/env python3
"""Checks which files may include which.

- src/<layer>/ may include its own files, include/minfer/, and the layers named in its minfer_layer(... DEPS ...) line in
  CMakeLists.txt or reached through those; each of these must stand above it in that list.
- include/minfer/ may include only itself and the standard library.
- Headers of third-party libraries that are slow to compile stand in .cpp files only.
- Kernels of one instruction set (src/backend/cpu/<folder>/, for the folders of cmake/isa.cmake) and what they include may
  include only *kernels.h and *-inl.h of src/backend/cpu/, intrinsics, <cstdint>, <cstddef> and <cstring>: what they
  compile with their own flags must never be picked by the linker for a processor that lacks those instructions.
  (generic/ has no flags of its own, so it is free to include more, and the others may not include it.)
"""
import re

import repo

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
HEAVY = {"nlohmann/json.hpp", "CLI/CLI.hpp", "fmt/format.h", "regex", "iostream"}
KERNEL_SYSTEM = {"immintrin.h", "arm_neon.h", "cstdint", "cstddef", "cstring"}


def layers(cmake):
    """[(name, [direct deps])] in the order of CMakeLists.txt."""
    found = []
    for body in re.findall(r"^\s*minfer_layer\(([^)]*)\)", cmake, re.M):
        words = body.split()
        deps, key = [], None
        for word in words[1:]:
            if word in {"DEPS", "LIBS", "PRIVATE_LIBS"}:
                key = word
            elif key == "DEPS":
                deps.append(word)
        found.append((words[0], deps))
    return found


def reachable(order, problems):
    """{layer: set of layers it may include}; reports DEPS that point down or nowhere."""
    may = {}
    for name, deps in order:
        may[name] = {name}
        for dep in deps:
            if dep not in may:
                problems.append(f"CMakeLists.txt: layer '{name}' depends on '{dep}', which does not stand above it")
            else:
                may[name] |= may[dep]
    return may


def is_test(path):
    return path.name.endswith("_test.cpp") or "testing" in path.parts


def check_kernel(path, kind, name):
    """The message if a kernel file may not include name."""
    if kind == "<":
        ok = name in KERNEL_SYSTEM
    else:
        ok = name.endswith(("kernels.h", "-inl.h")) and (name.startswith("backend/cpu/") or "/" not in name)
        ok = ok and not name.startswith("backend/cpu/generic/")
    return None if ok else (f"{path}: kernel file includes {name}; expected *kernels.h, *-inl.h, intrinsics, <cstdint>, "
                            "<cstddef>, <cstring>")


def is_kernel(path, isas):
    parts = path.parts
    if parts[:3] != ("src", "backend", "cpu") or parts[3] == "generic" or is_test(path):
        return False
    return parts[3] in isas or path.name.endswith(("kernels.h", "-inl.h"))


def check_file(root, path, may, isas, names, problems):
    layer = path.parts[1] if path.parts[0] == "src" else None
    if layer is not None and layer not in may:
        problems.append(f"{path}: folder src/{layer}/ has no minfer_layer line in CMakeLists.txt")
        return
    source = repo.text(root, path) or ""
    for kind, name in INCLUDE.findall(source):
        if path.suffix == ".h" and name in HEAVY:
            problems.append(f"{path}: header includes {name}; expected only in .cpp files")
        if is_kernel(path, isas):
            problem = check_kernel(path, kind, name)
            if problem:
                problems.append(problem)
        if kind == "<":
            continue
        first = name.split("/")[0]
        if first == "minfer":
            if f"include/{name}" not in names:
                problems.append(f"{path}: include/{name} does not exist")
        elif layer is None:
            problems.append(f"{path}: public header includes {name}; expected only minfer/* and the standard library")
        elif first in may and "/" in name:
            if first not in may[layer]:
                problems.append(f"{path}: layer '{layer}' may not include {name}; it may use "
                                + ", ".join(sorted(may[layer])))
            elif f"src/{name}" not in names:
                problems.append(f"{path}: src/{name} does not exist")
        elif str(path.parent / name) not in names:
            problems.append(f'{path}: "{name}" is neither <layer>/<file> under src/ nor beside the file '
                            "(other libraries go in <>)")


def main():
    root = repo.arguments(__doc__).root
    problems = []
    order = layers((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not order:
        problems.append("CMakeLists.txt: no minfer_layer line found")
    may = reachable(order, problems)
    isas = set(repo.isa_flags(root))
    listed = repo.files(root)
    names = {str(p) for p in listed}
    code = [p for p in listed if p.suffix in repo.CODE and len(p.parts) > 2 and p.parts[0] in {"src", "include"}]
    for path in code:
        check_file(root, path, may, isas, names, problems)
    repo.report("layers", problems, f"{len(code)} files, {len(order)} layers")


if __name__ == "__main__":
    main()
