#!/usr/bin/env python3
"""Checks for text that does not belong.

- anywhere: paths of one machine (a home folder, a temporary folder), notes of unfinished work
- in src/, outside tests: printing, ending the process (a library leaves both to its caller)

An exception stands in tools/words_allow.txt as `path:word  reason`.
"""
import re

import repo

ANYWHERE = [
    (re.compile(r"(?<![\w./~$}-])/(?:root|home/\w+|Users/\w+|work|tmp)(?![\w-])"), "path of one machine"),
    (re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b"), "note of unfinished work"),  # words-ok
]
IN_LIBRARY = [
    (re.compile(r"(?<![\w.>:])(?:std::)?(?:printf|vprintf|puts|putchar)\s*\("), "printing"),
    (re.compile(r"\bstd::(?:cout|cerr|clog)\b|\bfmt::print\b|\b(?:stdout|stderr)\b"), "printing"),
    (re.compile(r"(?<![\w.>:])(?:std::|::)?(?:exit|_exit|quick_exit|abort|terminate)\s*\("), "ending the process"),
]
# Written by people: what programs write (logs, traces, models' answers) may say what it likes.
SUFFIXES = repo.CODE | {".inc", ".py", ".sh", ".cmake", ".md", ".js", ".css", ".html"}
NAMES = {"Makefile", "CMakeLists.txt", "CMakePresets.json", "run"}
COMMENT = re.compile(r"//.*")


def in_library(path):
    return (path.parts[0] == "src" and path.suffix in repo.CODE and not path.name.endswith("_test.cpp")
            and "testing" not in path.parts)


def main():
    root = repo.arguments(__doc__).root
    allowed = repo.allowed(root, "words_allow.txt")
    used, problems, count = set(), [], 0

    def find(path, number, line, rules):
        for pattern, what in rules:
            for match in pattern.finditer(line):
                word = match.group().strip()
                key = f"{path}:{word}"
                if key in allowed:
                    used.add(key)
                else:
                    problems.append(f"{path}:{number}: {what}: '{word}'")

    for path in repo.files(root):
        content = repo.text(root, path) if path.suffix in SUFFIXES or path.name in NAMES else None
        if content is None:
            continue
        count += 1
        for number, line in enumerate(content.splitlines(), 1):
            if line.endswith("# words-ok"):
                continue
            find(path, number, line, ANYWHERE)
            if in_library(path):
                find(path, number, COMMENT.sub("", line), IN_LIBRARY)
    for key in sorted(set(allowed) - used):
        problems.append(f"tools/words_allow.txt: '{key}' is not found any more")
    repo.report("words", problems, f"{count} files")


if __name__ == "__main__":
    main()
