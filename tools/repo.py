"""What the check scripts share: the project's files, their text, and how findings are reported."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

CODE = {".h", ".cpp", ".cu", ".cuh"}


def arguments(doc, **extra):
    """The parsed command line: --root, and --NAME with a default for each of extra."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    for name, default in extra.items():
        parser.add_argument("--" + name, type=type(default), default=default)
    return parser.parse_args()


def files(root):
    """Paths relative to root of everything that belongs to the project: what git tracks or would add."""
    if (root / ".git").exists():
        try:
            listed = subprocess.run(["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"],
                                    capture_output=True, check=True).stdout
            names = sorted(set(os.fsdecode(listed).split("\0")) - {""})
            return [pathlib.PurePosixPath(n) for n in names if (root / n).is_file()]
        except (OSError, subprocess.CalledProcessError):
            pass  # no git, or one that refuses the folder: walk it
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in {".git", "__pycache__"} and not f.startswith("build"))
        found += [pathlib.PurePosixPath(pathlib.Path(folder, n).relative_to(root)) for n in sorted(names)]
    return found


def text(root, path):
    """The file's text; None when it is no text (data, pictures)."""
    try:
        return (root / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def isa_flags(root):
    """{folder: flags} of the instruction sets, from the minfer_isa(...) lines of cmake/isa.cmake."""
    path = root / "cmake" / "isa.cmake"
    lines = re.findall(r"^\s*minfer_isa\(([^)]*)\)", path.read_text(encoding="utf-8"), re.M) if path.exists() else []
    return {words[0]: words[1:] for words in map(str.split, lines)}


def allowed(root, name):
    """An allow file: `key<two or more spaces>reason` a line, # for comments. Returns {key: reason}."""
    entries = {}
    path = root / "tools" / name
    if not path.exists():
        return entries
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, _, reason = line.partition("  ")
        if not reason.strip():
            sys.exit(f"tools/{name}:{number}: no reason given, expected 'key  reason'")
        entries[key.strip()] = reason.strip()
    return entries


def report(check, problems, checked):
    """Prints the findings and ends the program: 0 when there are none, else 1."""
    for problem in problems:
        print(problem)
    print(f"{check}: {len(problems)} problems in {checked}" if problems else f"{check}: ok ({checked})")
    sys.exit(1 if problems else 0)
