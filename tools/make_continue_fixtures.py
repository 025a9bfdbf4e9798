"""Writes tests/data/chat/continue.json: what transformers renders with continue_final_message.

    python3 -m venv env && env/bin/pip install transformers==5.24.0 jinja2==3.1.6
    env/bin/python tools/make_continue_fixtures.py
"""
import json
import pathlib

from transformers.utils.chat_template_utils import render_jinja_template

CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
TRIMS = CHATML.replace("m.content", "m.content | trim")
PARTS = ("{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}"
         "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}[end]{% endfor %}")
THINKS = ("{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>\\n{{ m.reasoning_content }}\\n</think>"
          "\\n\\n{% endif %}{{ m.content }}<end>{% endfor %}").replace("\\n", "\n")
SPLITS = ("{% for m in messages %}<{{ m.role }}>{% set c = m.content %}{% if '</think>' in c %}"
          "{% set c = c.split('</think>')[-1].lstrip('\\n') %}{% endif %}{{ c }}<end>{% endfor %}")
DROPS = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
UPPER = "{% for m in messages %}{{ m.content | upper }}{% endfor %}"
BLIND = "{% for m in messages %}{{ m.role }}{% endfor %}"


def turn(role, content, **more):
    return {"role": role, "content": content, **more}


def talk(last, **more):
    return [turn("user", "Hi"), turn("assistant", last, **more)]


CASES = [(template, talk(last), "content") for template in (CHATML, TRIMS, PARTS, SPLITS)
         for last in ("The answer is", "ends in space ", " both \n", "\u00a0wide\u3000\u2003", "", " ", "é 😀",
                      "Hi", "<|im_end|>", "<think>\nhm\n</think>\n\nSo", "twice twice", "CONTINUE_FINAL_MESSAGE_TAG")]
CASES += [
    (PARTS, talk([{"type": "text", "text": "a "}, {"type": "text", "text": "b "}]), "content"),
    (PARTS, talk([]), "content"),
    (PARTS, talk([{"type": "text", "text": ""}]), "content"),
    (CHATML, [], "content"),
    (CHATML, talk(None), "content"),
    (CHATML, [{"role": "assistant"}], "content"),
    (CHATML, [turn("user", "a user's message goes on too ")], "content"),
    (DROPS, talk("gone"), "content"),
    (UPPER, talk("changed"), "content"),
    (UPPER, talk("SAME"), "content"),
    (BLIND, talk("unread"), "content"),
    (THINKS, talk("", reasoning_content="First, "), "reasoning_content"),
    (THINKS, talk("x", reasoning_content="done"), "content"),
    (THINKS, talk("x"), "reasoning_content"),
    (CHATML, talk("x", reasoning_content="hm"), "reasoning_content"),
]


def render(template, messages, field):
    try:
        out, _ = render_jinja_template([messages], chat_template=template, continue_final_message=field)
        return {"expected": out[0]}
    except (ValueError, TypeError) as e:
        return {"error": str(e).split("!")[0]}


def main():
    cases = [{"template": t, "messages": m, "field": f, **render(t, m, f)} for t, m, f in CASES]
    path = pathlib.Path(__file__).parent.parent / "tests/data/chat/continue.json"
    path.write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n")


main()
