#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_classes.inc: the general categories of all code points as ranges.

Needs the package unicodedata2 of the Unicode version wanted (16.0.0: what Hugging Face's tokenizers 0.23 use for \\p{..}).
Usage: python3 tools/make_unicode_classes.py > src/tokenizer/unicode_classes.inc
"""
import unicodedata2 as u

SPACE = set([*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000])


def kind(c):
    if c in SPACE:
        return "kSpace"
    cat = u.category(chr(c))
    if cat in ("Lu", "Lt"):
        return "kUpper"
    if cat == "Ll":
        return "kLower"
    if cat == "Lm" or cat == "Lo":
        return "kOtherLetter"
    return {"M": "kMark", "N": "kNumber", "P": "kPunct", "S": "kSymbol"}.get(cat[0])


def main():
    print(f"// Made by tools/make_unicode_classes.py from Unicode {u.unidata_version}; do not edit.")
    print("// {first, last, class}; code points that stand in no range have class kNone.")
    start, current = 0, None
    line = ""
    for c in range(0x110001):
        k = kind(c) if c < 0x110000 else None
        if k != current:
            if current:
                item = f"{{0x{start:x},0x{c - 1:x},{current}}}, "
                if len(line) + len(item) > 120:
                    print(line.rstrip())
                    line = ""
                line += item
            start, current = c, k
    print(line.rstrip())


main()
