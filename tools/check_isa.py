#!/usr/bin/env python3
"""Checks that the objects of one instruction set leak nothing into the rest of the program.

An inline function or template compiled in such a file becomes a weak symbol; the linker keeps one copy of each, and if it
keeps this one, a processor without these instructions runs them and dies. So those objects may define no weak symbol.
(Only the folders of cmake/isa.cmake have flags of their own; what the others leak runs everywhere.)
"""
import pathlib
import re
import subprocess

import repo

OBJECT = re.compile(r"src/backend/cpu/(?P<isa>[^/]+)/[^/]+\.cpp\.o$")


def symbols(path):
    """[(type letter, demangled name)] of what the object defines; undefined names carry U or w and are left out."""
    command = ["nm", "-C", "--defined-only", str(path)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [(m.group(1), m.group(2)) for m in re.finditer(r"^[0-9a-f]* *(\w) (.+)$", listed, re.M)]


def main():
    arguments = repo.arguments(__doc__, build=pathlib.Path("build/release"))
    build = arguments.root / arguments.build
    isas = repo.isa_flags(arguments.root)
    problems, count = [], 0
    if not build.is_dir():
        raise SystemExit(f"isa: {build} does not exist; run 'make build'")
    for path in sorted(build.glob("CMakeFiles/*/src/backend/cpu/*/*.o")):
        match = OBJECT.search(path.as_posix())
        if not match or match["isa"] not in isas or path.name.endswith("_test.cpp.o"):
            continue
        count += 1
        where = f"{match['isa']}/{path.name[:-2]}"
        for kind, name in symbols(path):
            if kind in "WwVvu":
                problems.append(f"{where}: weak symbol {name}")
    sources = [p for p in repo.files(arguments.root)
               if p.parts[:3] == ("src", "backend", "cpu") and p.parts[3] in isas and p.suffix == ".cpp"]
    if sources and count == 0:
        problems.append(f"{build}: no object of {sources[0]} or any other kernel file; run 'make build'")
    repo.report("isa", problems, f"{count} objects")


if __name__ == "__main__":
    main()
