#!/usr/bin/env python3
"""Checks that files stay small: 400 lines is the aim (named, no error), 800 the end (reasons: tools/size_allow.txt)."""
import repo

AIM, LIMIT = 400, 800
SUFFIXES = repo.CODE | {".inc", ".py", ".sh", ".cmake", ".js", ".css", ".html"}


def main():
    root = repo.arguments(__doc__).root
    allowed = repo.allowed(root, "size_allow.txt")
    problems, long, count = [], [], 0
    listed = repo.files(root)
    for path in listed:
        if path.suffix not in SUFFIXES:
            continue
        count += 1
        content = repo.text(root, path)
        lines = len(content.splitlines()) if content is not None else 0
        if lines > LIMIT and str(path) not in allowed:
            problems.append(f"{path}: {lines} lines, expected at most {LIMIT} (or a reason in tools/size_allow.txt)")
        elif lines <= LIMIT and str(path) in allowed:
            problems.append(f"tools/size_allow.txt: {path} has {lines} lines and needs no entry")
        elif AIM < lines <= LIMIT:
            long.append((lines, path))
    for name in sorted(set(allowed) - {str(p) for p in listed}):
        problems.append(f"tools/size_allow.txt: {name} does not exist")
    for lines, path in sorted(long, reverse=True):
        print(f"note: {path}: {lines} lines, over the aim of {AIM}")
    repo.report("size", problems, f"{count} files")


if __name__ == "__main__":
    main()
