"""Writes src/chat/jinja/html_entities.inc: the HTML standard's character references as Python's html.entities has them.

    python3 tools/make_html_entities.py
"""
import html.entities
import pathlib


def quoted(text):
    return '"' + "".join(f"\\{b:03o}" if b < 0x20 or b > 0x7e else "\\" * (chr(b) in '"\\') + chr(b)
                         for b in text.encode()) + '"'


def main():
    entries = [f"{{{quoted(name)}, {quoted(text)}}}," for name, text in sorted(html.entities.html5.items())]
    lines, line = ["// Made by tools/make_html_entities.py: name, text."], ""
    for entry in entries:
        if line and len(line) + 1 + len(entry) > 150:
            lines.append(line)
            line = ""
        line += (" " if line else "") + entry
    path = pathlib.Path(__file__).parent.parent / "src/chat/jinja/html_entities.inc"
    path.write_text("\n".join(lines + [line]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
