"""Writes tests/data/chat/fixtures.json: small templates and what Jinja2 renders from them.

Set up as Hugging Face's apply_chat_template sets Jinja2 up: the immutable sandbox, trim_blocks, lstrip_blocks, loop
controls, {% generation %}, its tojson, raise_exception and strftime_now (here with a pinned clock).

    python3 -m venv env && env/bin/pip install jinja2==3.1.6
    env/bin/python tools/make_template_fixtures.py
"""
import copy
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

CLOCK = datetime.datetime(2026, 1, 15, 12, 0, 0)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = CLOCK.strftime
    return env


VARIABLES = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi <|im_end|> & 'you'"},
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"x": 1, "y": [True, None]}}}]},
        {"role": "tool", "content": "  42\n", "tool_call_id": "c1"},
    ],
    "tools": None,
    "bos_token": "<s>",
    "eos_token": "</s>",
    "add_generation_prompt": True,
    "n": 7, "z": 0, "neg": -3, "f": 2.5, "big": 18446744073709551615,
    "s": "Hello, World", "u": "größe ΑΣ ß İ ﬁ 😀 日本", "e": "", "ws": " \t a b \n c \x1f\u3000",
    "l": [3, 1, 2], "ls": ["b", "A", "c"], "d": {"b": 1, "a": {"x": [1, 2]}, "items": 5}, "empty": [], "nil": None,
    "people": [{"name": "Ann", "age": 30, "tags": ["x"]}, {"name": "bob", "age": 25, "tags": []}, {"name": "Cy", "age": 30}],
    "multi": "one\ntwo\r\nthree\n\nfive",
    "quote": "it's \"q\" \\ \n\t\x00\x7f\u00e9\u200b\U0001f600",
}

EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2
2 ** 3 ** 2, -2 ** 2, 2 ** -1, (-8) ** 3
1 / 3, 1e16, 1e15, 123456789012345680.0, 1e-5, 0.0001, 1.0, 100.0, 1e100, 5e-324, 0.1 + 0.2
1_000, 0x1F, 0b101, 0o17, 1_0.5e1_0
true, false, none, True, None
'a' 'b' "c"
'a\tb\n\x41\u00e9\101\q\'"'
"\"x\"" + '\\'
[1, 'a', 2.0, none, true, [1], (1,), (), {'k': 'v'}]
{'a': 1, "b": [1, 2], 3: 4, none: 5}
(1, 2), [1, 2,], (3)
not true, not e, not l, not empty, not nil, not missing
1 < 2 < 3, 1 < 3 < 2, 1 == 1.0, true == 1, 'a' < 'b', [1, 2] < [1, 3], (1, 2) == (1, 2), [1] == (1,)
1 in l, 'ell' in s, 'b' in d, 4 not in l, 'x' in missing
n and s, z and s, z or s, n or s, missing or 'd'
s if n else 'no', s if z
'a' ~ 1 ~ none ~ true ~ 2.0 ~ l
s * 2, 2 * 'ab', l * 2, 'x' * 0, 'x' * -1, (1, 2) * 2
l + [4], (1,) + (2,), s + '!'
s[0], s[-1], s[1:3], s[::-1], s[::2], s[-3:], s[:-3], s[5:2], s[100:], u[3], u[-2:], u[::-1], u[2:8:2]
l[0], l[-1], l[5], l[1:], l[::-1], l[:-1], l[-2:], l[::2], (1, 2, 3)[1:]
d.b, d['b'], d.a.x[1], d.a.x.0, d['missing'], d.missing, d['items']
messages[0].role, messages[0]['content'], messages[-1].tool_call_id
s.upper(), s.lower(), u.upper(), u.lower(), u.title(), u.capitalize(), s.swapcase(), u.casefold()
s.split(), s.split(','), s.split('l', 1), s.rsplit('l', 1), ws.split(), ws.split(none, 1), ws.rsplit(none, 1), 'a,,b'.split(',')
ws.strip(), ws.lstrip(), ws.rstrip(), 'xxaxx'.strip('x'), 'xyaxy'.lstrip('xy'), '日a日'.strip('日')
s.replace('l', 'L'), s.replace('l', 'L', 1), s.replace('', '-'), s.replace('zz', 'y'), 'abc'.replace('', '-', 2)
s.startswith('He'), s.endswith(('x', 'ld')), s.startswith('W', 7), s.startswith(('a', 'b')), s.endswith('o', 0, 5)
s.find('o'), s.rfind('o'), s.find('zz'), s.index('W'), s.count('l'), u.find('ß'), s.find('o', 5), s.count('')
'-'.join(['a', 'b']), ''.join(s), 'a b c'.partition(' '), 'a b c'.rpartition(' '), 'abc'.partition('x')
'abc'.center(10, '*'), 'abc'.center(6), 'abcd'.center(7), 'abc'.ljust(5) ~ '|', 'abc'.rjust(5), '42'.zfill(5), '-42'.zfill(5)
'abc'.removeprefix('a'), 'abc'.removesuffix('bc'), multi.splitlines(), multi.splitlines(true), 'a\tb'.expandtabs(4)
'abc'.isalpha(), '12'.isdigit(), 'a1'.isalnum(), ' '.isspace(), ''.isspace(), 'Abc'.istitle(), 'ABC'.isupper(), 'abc'.islower(), 'a_1'.isidentifier(), '²'.isdigit(), '²'.isdecimal(), '½'.isnumeric(), 'é'.isascii()
'%s and %d, %5.2f|%-5s|%05d|%x|%r|%%' % ('a', 3, 2.5, 'b', 42, 255, 'q')
'%(a)s-%(b)03d' % {'a': 'x', 'b': 7}
'%s' % 'one', '%s' % l, '%d' % 3.9, '%+d' % 5, '%e' % 12345.678, '%g' % 0.0001, '%c' % 'x', '%c' % 65, '%10s|' % u[:3], '%.2s' % 'abc'
'{} {} {}'.format(1, 'a', none), '{0}{1}{0}'.format('a', 'b'), '{x}-{y[0]}-{z[k]}'.format(x=1, y=[2], z={'k': 3})
'{:>5}|{:<5}|{:^5}|{:*^7}|{:05d}|{:.2f}|{:,}|{:x}|{:#x}|{:e}|{:%}'.format(1, 2, 3, 4, 5, 2.345, 1234567, 255, 255, 1234.5, 0.25)
'{:_x} {:_d} {:_b}'.format(1234567890, 1234567, 1000), '{{}} {!r} {:{}}'.format('a', 'b', 5), '{:+d} {: d}'.format(3, 4), '{:s}'.format('x'), '{:.3}'.format('abcdef'), '{:.3}'.format(3.14159), '{:g}'.format(1e10)
d.get('b'), d.get('zz'), d.get('zz', 'def'), d.keys(), d.values(), d.items(), d.keys()|list
d.items()|list|length, d|length, d|list, s|length, u|length, l|count, empty|length
l|first, l|last, s|first, s|last, d|first, empty|first, d.values()|first, ''|last
l|sort, ls|sort, ls|sort(case_sensitive=true), l|sort(reverse=true), people|sort(attribute='name')|map(attribute='name')|list, people|sort(attribute='age,name')|map(attribute='name')|join(',')
l|reverse|list, s|reverse, l|max, l|min, ls|max, l|sum, people|sum(attribute='age'), empty|max, [0.1]*3|sum
ls|join, ls|join(', '), l|join('-'), people|join(', ', attribute='name'), s|join('.'), d|join(',')
[1, 2, 1, 'a', 'A']|unique|list, people|map(attribute='age')|unique|list, people|map(attribute='tags.0', default='-')|list
[1, 2, 3, 4]|select('odd')|list, [0, 1, '', 'a']|select|list, [1, 2, 3]|reject('odd')|list, [1, 2, 3]|select('>', 1)|list, l|select('in', [1, 2])|list
nil|map('upper')|list, [1, 2]|truncate(3), people|selectattr('age', 'equalto', 30)|map(attribute='name')|list, people|rejectattr('tags')|map(attribute='name')|list, people|selectattr('tags', 'defined')|list|length, nil|select|list
ls|map('upper')|list, ls|map('replace', 'A', 'z')|list, l|map('string')|join, [' a ', 'b ']|map('trim')|list
d|dictsort, {'b': 2, 'A': 1}|dictsort, {'b': 1, 'a': 2}|dictsort(false, 'value'), {'b': 2, 'A': 1}|dictsort(true), {'b': 1, 'a': 2}|dictsort(reverse=true)
d|items|list, missing|items|list
[1, 2, 3, 4, 5]|batch(2)|list, [1, 2, 3]|batch(2, 'x')|list, [1, 2, 3, 4, 5]|slice(3)|list, [1, 2, 3, 4]|slice(3, 'x')|list
people|groupby('age')|list|length, people|groupby('age')|map('first')|list
42.55|round, 42.55|round(1), 42.55|round(1, 'floor'), 2.5|round, 3.5|round, 42|round, 2.675|round(2), 1234|round(-2), 1.1|round(0, 'ceil')
'42'|int, '42.9'|int, 'x'|int, 'x'|int(-1), '0x1A'|int(0, 16), 3.99|int, true|int, nil|int, ' 7 '|int, '1_000'|int, '1e3'|int
'2.5'|float, 'x'|float, 'x'|float(1.5), 3|float, 'inf'|float, '1e3'|float, ' 1.5 '|float
neg|abs, -2.5|abs, -n, +n, -f
s|upper, s|lower, 'foo bar-baz (qux'|title, 'FOO bar'|capitalize, s|center(20) ~ '|', 12|string ~ 'x', u|title
'  x '|trim, 'xxaxx'|trim('x'), s|replace('o', '0'), s|replace('l', 'L', 1), 12|replace(1, 2)
multi|indent, multi|indent(2, true), multi|indent('> ', blank=true), 'a'|indent
'foo bar baz qux'|truncate(9), 'foo bar baz qux'|truncate(9, true), 'foo bar baz qux'|truncate(11), 'foo bar baz qux'|truncate(11, false, '..', 0), s|truncate(255)
'a <b> & "c"'|e, 'a'|safe + '<b>', '<'|safe ~ '<', '<'|escape|escape, '<'|e|forceescape, ('<'|safe)|upper, 'x' + ('<'|safe)
('<%s>'|safe) % '<', ('<'|safe)|list, ls is lower, ['A'] is upper, 'a b/c?d=é'|urlencode, {'a': 1, 'b c': 'd&e'}|urlencode, 'one two, three'|wordcount
1|filesizeformat, 1000|filesizeformat, 1500000|filesizeformat, 1024|filesizeformat(true), 999|filesizeformat
{'a': 'x<', 'b': none}|xmlattr
d|tojson, l|tojson, s|tojson, u|tojson, u|tojson(ensure_ascii=true), quote|tojson, none|tojson, 1.0|tojson, 1e16|tojson, true|tojson, [(1, 2)]|tojson, {1: 2, none: 3, true: 4}|tojson
d|tojson(indent=2), [[], {}]|tojson(indent=1), d|tojson(separators=(',', ':')), {'b': 1, 'a': 2}|tojson(sort_keys=true), [1, 2]|tojson(indent='--')
messages|tojson, messages[2].tool_calls|tojson(indent=4), big|tojson, big
quote, [quote], [u], ['it\'s'], ['a"b'], ['it\'s "x"'], {'a': none}, ['\x00\x1f\x7f\xa0\xad']
missing is defined, s is defined, nil is none, s is string, n is number, f is float, n is integer, true is integer, true is boolean, d is mapping, l is sequence, s is sequence, d is sequence, l is iterable, n is iterable, missing is iterable
n is odd, n is even, 9 is divisibleby 3, 9 is divisibleby(2), n is eq 7, n is ne 7, n is lt 8, n is gt 8, 'a' is in 'abc', n is in l, s is lower, 'abc' is lower, 'ABC' is upper, nil is sameas none, true is sameas true, true is true, 1 is true, false is false
range is callable, s is callable, missing is undefined, s is not undefined, d.items is callable, l is not mapping, 'upper' is filter, 'nope' is filter, 'odd' is test, ('a'|safe) is escaped
missing|default('x'), nil|default('x'), nil|default('x', true), e|d('y', true), missing|default, d.zz|default(d.b)
range(3), range(3)|list, range(1, 10, 3)|list, range(5, 0, -2)|list, range(3)[1], range(5)[1:3], range(10)[::-2], range(10)[3:3], range(9)[::2], range(9)[-1:0:-3], range(3)|length, 2 in range(3), range(0)|list
dict(a=1, b=2), dict({'x': 1}, y=2), dict([('p', 1)]), namespace(a=1).a, namespace(a=1)
cycler('a', 'b').next(), joiner(',')(), s|attr('upper') is defined, d|attr('b') is defined
strftime_now('%Y-%m-%d %H:%M:%S'), strftime_now('%d %B %Y %A %j %p %I %y %b %a %%'), strftime_now('%-d %e %D %F %T')
(s|upper)[0:3], s|upper|lower|title, ls|map('upper')|map('lower')|list|join('-'), (1 if true else 2) + 1
s.upper() ~ s|lower, 'a' if 1 > 2 else 'b' if 2 > 1 else 'c', -n|abs, not n == 7, not (n == 7)
[1, 2, 3][-1], {'a': {'b': 'c'}}.a.b, 'abc'[1], ('a', 'b')[0], [[1, 2], [3]]|sum(start=[])
1.5|string, 1|string|length, l|string, none|string, 3.0|int|string
'a' is string and 'b' is string, 1 is number or false, (1 is number) == true
messages|length, messages|map(attribute='role')|list, messages|selectattr('role', 'equalto', 'user')|list|length, messages[1:]|length, (messages|last).content
loop is defined, caller is defined
missing.x
missing + 1
nil.x.y
d.nope.deeper
1 + 'a'
'a' + 1
l + 'a'
none + 1
'a' < 1
1 // 0
1 % 0
1.0 / 0
l.append(4)
d.pop('a')
s.__class__
''.__class__.__mro__
1()
s()
missing()
'%d' % 'x'
'%s %s' % 'x'
'%s' % (1, 2)
{[1]: 2}
1 in 5
5 in 'abc'
s|nofilter
s is notest
range(1000000)
none|length
5|list
raise_exception('stop ' ~ n)
missing|tojson
l|map('upper')|tojson
'abc'.index('z')
l[none]
l['a']
l[1:'a']
nil[1:]
d[1:2]
'x'|int(base=99)
d|dictsort(by='foo')
1|round(0, 'no')
'{} {}'.format(1)
'a'.join([1])
s.split('')
l|sort(attribute='x')|list
[1, 'a']|sort
[1, 2]|map|list
true|last
n|indent
missing|abs
missing in s
[1]|urlencode
5|items|list
5 is divisibleby 0
dict(1)
2**63, 2**64, -2**63, 2**100 - 2**99, 10**30 // 7, -10**30 // 7, 10**30 % -7, 2**64 * 3, 10**20 / 3, 9007199254740993 / 3
9223372036854775807 + 1, -9223372036854775808 - 1, 9223372036854775807 * 2, -(-9223372036854775808), (-9223372036854775808)|abs
123456789012345678901234567890, 0xffffffffffffffffffff, big + 1, big // 2, big == 2**64 - 1, big > 1e19, big < 1.8446744073709552e19
2**64 == 2.0**64, 2**64 in [2.0**64], {2**64: 'a'}[2.0**64], 2**53 + 1 == 2.0**53, (2**64)|tojson, (2**64)|float, (2**70)|round(-3)
'123456789012345678901234567890'|int, 1e25|int, '0xffffffffffffffffffff'|int(0, 16), '%d' % 2**70, '%x' % 2**70, '{:,}'.format(10**20), '{:b}'.format(2**65)
l[2**70:], l[-2**70:], s[:2**70], l[2**70], 2**64 is integer, 2**64 is number, 2**64 is even, 'x' * -2**70
(1)[1:3], none[1:], {}[1:2], 'abc'[1:'a'], (1.5)[::2], [][1.5], true.x, (2.5).is_integer(), [1][none], 'a'['b'], {'a': 1}[[]]
1[0], 1.5[0], none[0], true['x'], (1, 2)['a'], {}.x, [].x, ''.x
{'b': 1, 'a': 2}|pprint, [1, 'a', none]|pprint, s|pprint, messages|pprint, (u * 12)|pprint, [s * 9, 'two words ' * 9]|pprint, {1: 'x', none: 'y', 'z': [2]}|pprint
('key value ' * 12)|pprint, {'k': 'key value ' * 12, 'nested': {'list': l * 20}}|pprint, (multi * 6)|pprint, (1,)|pprint, [(1, 2), ()]|pprint
'<b>Bold</b> &amp; <!-- c <i> --> x  y'|striptags, 'a < b > c'|striptags, '&lt;&eacute;&notit;&#65;&#x41;&#128;&unknown;&amp'|striptags, '<!-- open'|striptags, 5|striptags
'see http://example.com/a?b=c, (www.example.org) and me@example.org.'|urlize, 'http://10.0.0.1:80/x'|urlize(9), 'a.example.com x.y'|urlize(target='_blank', nofollow=true)
'mailto:a@b.co <http://x.io> ftp://q.r https://[::1]/ http://x'|urlize(extra_schemes=['ftp://']), '@a@b.co a@b a@b.c_d'|urlize(rel='me')
'the quick brown-fox jumps over--the lazy dog'|wordwrap(10), 'averyveryverylongword and more'|wordwrap(8), 'averyveryverylongword and more'|wordwrap(8, false), 'a-b-c-d-e well-known e-mail'|wordwrap(5)
multi|wordwrap(4), 'one two'|wordwrap(3, wrapstring='|'), 'well-known facts'|wordwrap(6, break_on_hyphens=false), '  lead and trail  '|wordwrap(6), 'x'|wordwrap(0)
[7]|random, []|random, ''|random, lipsum is callable
[1, 'a']|map('abs')|first, [1, 'a']|select('odd')|first, [1]|map('nope')|string is string, []|map('nope')|list, 5|items is defined
'{:05}|{:<05}|{:^010}|{:020,}|{:012,.2f}|{:08_x}'.format('ab', 42, 0, 17, 1234.5, 255), '{:^5}|{:5}'.format(true, false), '{:z.1f}'.format(-0.01)
'{0[0]} {}'.format('ab', 1), '{[0]}'.format([1])
'{} {0}'.format(1)
'{1} {}'.format(1, 2)
'{:,}'.format('a')
'{:+}'.format('a')
'%5%' % 1
'%s %5%' % 1
'ΑΣ ΣΑΣ'|capitalize, 'ΑΣ'.capitalize(), ('<'|e).partition('l'), ('<'|e).join([1, '<'])
range(3) in {}, {range(2): 1}[range(2)], {1: 2}.keys()
{1: 2}|xmlattr
[1] in {1: 2}.keys()
s|attr(1)
(e ~ 'inf')|float|int
dict(missing, a=1)
{} is test
[1]|map('abs')|join, [1, 'a']|map('abs')|list
1 // 0 + 2**70
2**70 % 0
2**5000 / 3
2.0**2000
10**400 * 1.0
5|round(-2, 'ceil'), 2**60|round(2, 'floor'), -7|round(1, 'floor')
""".strip("\n").split("\n")

# Errors whose wording is not kept.
FAILING = ['{{ "a"|upper(1) }}', "{{ s.upper(1) }}", "{{ range() }}", "{{ d.get() }}", "{{ namespace|tojson }}"]

TEMPLATES = [
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "  {% if true %}  x  {% endif %}  y",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a  {%+ if true +%}\n  b {%+ endif %}\nc",
    "x {# comment #} y\n  {# line #}\nz {#- tight -#} w",
    "a\n  {{- 1 -}}\n b",
    "  {{ 1 }}\n  {{+ 2 }}\n",
    "{% raw %}{{ not }} {% raw %}{% endraw %}\nx\n  {% raw -%}  y {%- endraw %} z",
    "{% for i in range(3) %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for i in [] %}x{% else %}none{% endfor %}|{% for i in missing %}x{% else %}none{% endfor %}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.cycle('a', 'b') }} {% endfor %}",
    "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for i in range(10) if i is odd %}{{ loop.index }}:{{ i }}{{ loop.length }} {% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for x in [[1, [2]], [3]] recursive %}{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}",
    "{% for c in 'añb' %}[{{ c }}]{% endfor %}{% for k in d %}{{ k }}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }},{% endfor %}{{ x }}",
    "{% set ns = namespace(n=0, items=[]) %}{% for i in l %}{% set ns.n = ns.n + i %}{% set ns.items = ns.items + [i] %}{% endfor %}{{ ns.n }}{{ ns.items }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = (3, 4) %}{{ c }}{{ d2 }}{% set t = 1, 2 %}{{ t }}",
    "{% set x %}  body {{ n }}\n{% endset %}[{{ x }}]{% set y | upper | trim %} abc {% endset %}[{{ y }}]",
    "{% if z %}a{% elif n == 7 %}b{% else %}c{% endif %}{% if z %}{% elif e %}{% else %}d{% endif %}",
    "{% if n == 7 %}{% set q = 5 %}{% endif %}{{ q }}",
    "{% macro m(a, b='x', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(1, c=3) }}{{ m(b=2, a=1) }}{{ m() }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}{{ m.name }}{{ m.arguments }}",
    "{% macro outer() %}{{ inner() }}{% endmacro %}{% macro inner() %}in{{ later }}{% endmacro %}{% set later = 9 %}{{ outer() }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}x{{ n }}{% endcall %}",
    "{% macro each(l) %}{% for i in l %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(v, i) each(l) %}{{ i }}:{{ v }} {% endcall %}",
    "{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b') | upper %}aXa{% endfilter %}",
    "{% with x = 1, y = n %}{{ x }}{{ y }}{% endwith %}{{ x }}{% with %}{% set w = 1 %}{{ w }}{% endwith %}{{ w }}",
    "{% for m in messages %}<|{{ m.role }}|>{% generation %}{{ m.content }}{% endgeneration %}\n{% endfor %}",
    "{% block a %}x{% endblock %}{% block b %}{{ n }}{% endblock b %}",
    "{% autoescape false %}{{ '<' }}{% endautoescape %}",
    "{% print 1, 'a' %}{% set x = [1, 2] %}{{ x[0] }}{{ x }}",
    "{{ bos_token }}{% for m in messages if m.role != 'system' %}{{ m.role + ': ' + (m.content or '') | trim }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",
    "{%- set gen = l | map('string') -%}{{ gen | join(',') }}|{{ gen | join(',') }}|{{ gen is defined }}",
    "{% set g = [1, 2, 3, 4] | select('odd') %}{% for x in g %}{{ x }}{% break %}{% endfor %}{{ g | list }}{% if [] | select %}truthy{% endif %}",
    "{% set ns = namespace(stop=false) %}{% for i in range(6) if not ns.stop %}{{ i }}{% if i == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% for i in l %}{% for j in ls %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in l %}{% macro lm() %}{{ i }}{% endmacro %}{{ lm() }}{% endfor %}",
    "{% set x = 1 %}{% macro m() %}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}",
    "{{ {'a': {'b': {}}} }}{{ {'x': {'y': 1}}['x']['y'] }}{{ [{}] }}",
    "{{ 1 }}{{'}}'}}{{ \"%}\" }}{{ '{%' }}",
    "line1\r\nline2\rline3\n{% if true %}\r\nx{% endif %}\r\n",
    "\n\n{% if true %}\n\n  x\n{% endif %}\n\n",
    "{%if true%}a{%endif%}{%- if true %} b{% endif -%} c",
    "{% for i in l -%}\n  {{ i }}\n{%- endfor %}\nend",
    "{% for i in l +%}\n  {{ i }}\n{% endfor %}\nend",
    "    {%- for i in l %}\n    {{ i }}\n    {%- endfor %}\n\t{# c #}\n\tend",
    "{% set r = cycler('x', 'y') %}{{ r.next() }}{{ r.next() }}{{ r.next() }}{{ r.current }}{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b{{ j() }}c",
    "{% call(x) undefined_macro() %}{% endcall %}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(zz=2) }}",
    "{% set d.x = 1 %}",
    "{% for a, b in [1, 2] %}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
    "{% for x in 5 %}{% endfor %}",
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools, ' + m.role) }}{% endif %}{% endfor %}",
    "{% for i in l %}{{ loop(i) }}{% endfor %}",
    "{% if messages[0]['role'] == 'system' %}{% set sys = messages[0]['content'] %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}{{ sys }}{% for m in rest %}{{ loop.index0 }}{{ m['role'] }}{% endfor %}",
    "{{ '' if tools is none else tools | tojson }}{{ (messages | first)['content'] | upper }}{{ [s, e, nil] | select | join(' + ') }}",
    "{% set l2 = [] %}{% for i in l %}{% set l2 = l2 + [i * 2] %}{% endfor %}{{ l2 }}",
    "{%- macro json_type(v) -%}\n  {%- if v is string -%}str\n  {%- elif v is boolean -%}bool\n  {%- elif v is mapping -%}{ {%- for k, x in v | dictsort -%}{{ k }}: {{ json_type(x) }}{{ ', ' if not loop.last }}{%- endfor -%} }\n  {%- else -%}other\n  {%- endif -%}\n{%- endmacro -%}\n{{ json_type({'b': 'x', 'a': {'c': true}, 'd': 1}) }}",
]

# Where names live, lazy iterators, what Jinja computes while it compiles.
TEMPLATES += [
    "{% for i in [1,2] %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}",
    "{% for i in [1,2] %}{{ n }}{% set n = i %}{% endfor %}",
    "{{ n }}{% for i in [1,2] %}{{ n }}{% endfor %}{% set n = 1 %}",
    "{% if z %}{% set n = 3 %}{% endif %}{% for i in [1] %}{{ n }}{% endfor %}",
    "{% if z %}{% set n = 3 %}{% else %}{% set n = 4 %}{% endif %}{{ n }}",
    "{% for i in [1] %}{{ n }}{% endfor %}{% if z %}{% set n = 3 %}{% else %}{% set n = 4 %}{% endif %}{{ n }}",
    "{% for i in [1] %}{{ n }}{% endfor %}{% if not z %}{% set n = 3 %}{% endif %}{{ n }}",
    "{% for i in [1] %}{{ n }}{% endfor %}{% macro n() %}{% endmacro %}",
    "{% for i in [1] %}{% for j in [1] %}{{ n }}{% endfor %}{% set n = 5 %}{{ n }}{% endfor %}{{ n }}",
    "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 5 %}{{ m() }}",
    "{% set x %}{{ n }}{% endset %}{% set n = 1 %}{{ x }}",
    "{% filter upper %}{{ s }}{% endfilter %}{% set s = 'q' %}",
    "{% with %}{{ s }}{% endwith %}{% set s = 'q' %}",
    "{% with s = s %}{{ s }}{% endwith %}{% set s = 'q' %}",
    "{% for s in s %}{{ s }}{% endfor %}{% set s = 'q' %}",
    "{% for i in [1] if n %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}",
    "{% for i in n|string %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}",
    "{% set n = n + 1 %}{{ n }}{% for i in [1, 2] %}{% set n = n + 1 %}{{ n }}{% endfor %}{{ n }}",
    "{% for i in [1] %}{% if z %}{% set n = 1 %}{% endif %}{{ n }}{% endfor %}{% set n = 5 %}",
    "{% generation %}{{ n }}{% endgeneration %}{% set n = 1 %}",
    "{% block b %}{{ n }}{% endblock %}{% set n = 1 %}",
    "{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(x) m() %}{{ n }}{% endcall %}{% set n = 1 %}",
    "{% for i in [1] %}{{ range(2) }}{% endfor %}{% set range = 1 %}",
    "{% for i in [1] %}{{ n }}{% endfor %}{% for i in [1] %}{% set n = 4 %}{{ n }}{% endfor %}{{ n }}",
    "{% set n %}{{ n }}{% endset %}{{ n }}",
    "{% if z %}{% for i in [1] %}{{ n }}{% endfor %}{% endif %}{% for i in [1] %}{{ n }}{% endfor %}{% set n = 4 %}",
    "{% if z %}{% set n = 3 %}{% elif not z %}{% for i in [1] %}{{ n }}{% endfor %}{% endif %}{% set n = 4 %}",
    "{% macro m(a, n=n, b=c, c=a) %}{{ a }}{{ n }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, n=2, c=3) }}",
    "{% macro m() %}{{ caller }}{{ caller.name }}{% endmacro %}{% call m() %}{% endcall %}{{ m.caller }}",
    "{% filter wordcount %}a b{% endfilter %}",
    "{% for i in l %}{% for j in l if loop.first %}{{ j }}{% endfor %}{{ loop }}{% endfor %}",
    "{% set g = [1, 'a', 2] | map('abs') %}{{ g | first }}{% for x in g %}{{ x }}{% endfor %}",
    "{% for x in [1, 2, 'a'] | select('odd') %}{{ x }}{% break %}{% endfor %}",
    "{{ n }}{#",
    "{% for i in [1, 2] %}{% continue %}{% else %}e{% endfor %}{% for i in [1, 2] %}{{ i }}{% break %}{% else %}e{% endfor %}{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{% else %}e{% endfor %}",
    "{% for i in l %}{% generation %}{% continue %}{% endgeneration %}{% endfor %}",
    "{{ '%(a)s%s' % {'a': 1} }}",
    "{{ '%s%(a)s' % {'a': 1} }}{{ -2 | round(-2, 'ceil') }}{{ (-2) | round(-2, 'ceil') }}",
    "{{ n }}{% raw %}",
    "{% set x = (1)[1:3] %}",
    "{% for group in people | groupby('age') %}{{ group.grouper }}{{ group.list | length }}{{ group[0] }}{% endfor %}",
]

SYNTAX_ERRORS = [
    "{% if true %}", "{{ 1 +", "{{ }}", "{% endif %}", "{{ 'abc }}", "{{ (1 }}", "{{ 1) }}", "{# open", "{% raw %}x",
    "{% for x in %}{% endfor %}", "{% set 1 = 2 %}", "{% unknown %}", "{{ a b }}", "{{ 1 is }}", "{{ x | }}", "{% break %}",
    "{% macro m(a=1, b) %}{% endmacro %}", "{{ f(a=1, 2) }}", "{{ a.!b }}", "{% if %}{% endif %}", "{{ {1} }}", "{% set true = 1 %}",
    "{{ 1 is none is none }}", "{{ f(**a, *b) }}", "{% call 5 %}{% endcall %}", "{{ ? }}",
]


def render(env, source):
    try:
        template = env.from_string(source)
    except (jinja2.exceptions.TemplateSyntaxError, SyntaxError, ValueError):
        return {"syntax_error": True}
    try:
        return {"expected": template.render(**copy.deepcopy(VARIABLES))}
    except jinja2.exceptions.TemplateSyntaxError:
        return {"syntax_error": True}
    except Exception as e:  # every kind: what Python says is the fixture
        return {"error": e.args[0] if e.args and isinstance(e.args[0], str) else str(e)}


def main():
    env = make_environment()
    fixtures = []
    for expression in EXPRESSIONS:
        source = "{{ " + expression + " }}"
        fixtures.append({"template": source, **render(env, source)})
    for source in TEMPLATES + SYNTAX_ERRORS:
        fixtures.append({"template": source, **render(env, source)})
    for source in FAILING:
        assert "error" in render(env, source)
        fixtures.append({"template": source, "error": ""})
    out = pathlib.Path(__file__).parent.parent / "tests/data/chat/fixtures.json"
    out.write_text(json.dumps({"variables": VARIABLES, "cases": fixtures}, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
