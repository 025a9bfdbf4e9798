#!/usr/bin/env python3
"""Checks what the Markdown files point at: links and their anchors, paths in `backticks`, and make targets.

A path in backticks is checked when it starts with one of the project's folders; `*`, `<name>` and `{a,b}` stand for
anything, for anything, and for each of the names.
"""
import fnmatch
import itertools
import re

import repo

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```[ \t]*$", re.M | re.S)
TICKS = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:src|include|cli|tests|tools|docs|bench|fuzz|cmake|python|\.ci)/[\w./*<>{},-]*")
MAKE = re.compile(r"\bmake ((?:[a-z]+-)*[a-z]+)\b")


def anchors(markdown):
    """The names a page's headings get: lower case, spaces to dashes, other signs dropped."""
    titles = re.findall(r"^#{1,6} +(.+?) *$", FENCE.sub("", markdown), re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


def patterns(path):
    """The shell patterns a path in backticks stands for."""
    parts = re.split(r"(\{[^}]*\})", re.sub(r"<[^>]*>", "*", path))
    pieces = [p[1:-1].split(",") if p.startswith("{") else [p] for p in parts]
    return ["".join(choice) for choice in itertools.product(*pieces)]


def check_link(root, page, target, texts, problems):
    if re.match(r"[a-z]+:", target):
        return
    name, _, anchor = target.partition("#")
    path = (root / page).parent / name if name else root / page
    if not path.exists():
        problems.append(f"{page}: link to {target}: no such file")
    elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
        problems.append(f"{page}: link to {target}: no such heading")


def main():
    root = repo.arguments(__doc__).root
    listed = [str(p) for p in repo.files(root)]
    folders = {"/".join(p.split("/")[:n]) for p in listed for n in range(1, p.count("/") + 1)}
    known = listed + sorted(folders)
    makefile = repo.text(root, "Makefile") if (root / "Makefile").exists() else ""
    targets = set(re.findall(r"^((?:[a-z-]+ ?)+):", makefile, re.M))
    targets = {word for line in targets for word in line.split()}
    pages = [p for p in listed if p.endswith(".md") and not p.startswith("tests/data/")]
    problems = []
    for page in pages:
        content = repo.text(root, page) or ""
        for target in LINK.findall(FENCE.sub("", content)):
            check_link(root, page, target, known, problems)
        for code in TICKS.findall(FENCE.sub("", content)):
            match = PATH.fullmatch(code)
            for pattern in patterns(code.rstrip("/")) if match else []:
                if not any(fnmatch.fnmatchcase(name, pattern) for name in known):
                    problems.append(f"{page}: `{code}`: no such file or folder")
        commands = "\n".join(TICKS.findall(FENCE.sub("", content)) + FENCE.findall(content))
        for target in sorted(set(MAKE.findall(commands)) - targets):
            problems.append(f"{page}: 'make {target}': no such target")
    repo.report("docs", problems, f"{len(pages)} pages")


if __name__ == "__main__":
    main()
