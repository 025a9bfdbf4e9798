#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_categories.inc and unicode_scripts.inc: what regular expressions say about code points.

The categories come from the package unicodedata2 of the Unicode version wanted (16.0.0: what Hugging Face's tokenizers
0.23 use for \\p{..}); the scripts and word characters from those tokenizers themselves, asked about every code point.
Needs: pip install tokenizers==0.23.3 unicodedata2==16.0.0
Usage: python3 tools/make_unicode_classes.py
"""
import pathlib

import unicodedata2 as u
from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "src/tokenizer"
SCRIPTS = ["Han", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Thai", "Lao",
           "Khmer", "Myanmar", "Devanagari", "Bengali", "Tamil", "Telugu", "Alphabetic", "Word"]
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(kind_of):
    start, current = 0, None
    for c in range(0x110001):
        kind = kind_of(c) if c < 0x110000 else None
        if kind != current:
            if current:
                yield start, c - 1, current
            start, current = c, kind


def write(name, head, items):
    lines, line = [f"// Made by tools/make_unicode_classes.py from Unicode {u.unidata_version}; do not edit."] + head, ""
    for item in items:
        if len(line) + len(item) > 118:
            lines.append(line.rstrip())
            line = ""
        line += item + ", "
    (OUT / name).write_text("\n".join(lines + [line.rstrip()]) + "\n")


def category(c):
    cat = u.category(chr(c))
    return None if cat == "Cn" else "k" + cat


def matching(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for i in range(0, len(SCALARS), 4096):
        chunk = SCALARS[i:i + 4096]
        rest = {ord(c) for piece, _ in split.pre_tokenize_str("".join(map(chr, chunk))) for c in piece}
        found.update(c for c in chunk if c not in rest)
    return found


def main():
    write("unicode_categories.inc", ["// {first, last, category}; code points that stand in no range are unassigned."],
          [f"{{0x{a:x},0x{b:x},{k}}}" for a, b, k in ranges(category)])
    items = []
    for name in SCRIPTS:
        members = matching(r"\w" if name == "Word" else rf"\p{{{name}}}")
        items += [f"{{0x{a:x},0x{b:x},Script::k{name}}}" for a, b, _ in ranges(lambda c: "x" if c in members else None)]
    write("unicode_scripts.inc", ["// {first, last, script}; Word is what \\w matches."], items)


main()
