"""A grammar of random chat templates for compare_templates.py: mostly sensible, now and then not.

Sizes stay small (exponents, widths, repeats), so that both sides answer at once.
"""
import random

INTS = ["0", "1", "2", "3", "7", "10", "-1", "-2", "-7", "255", "1_000", "0x1f", "0b101", "0o17", "100000", "n", "z",
        "neg", "9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
        "123456789012345678901234567890", "true", "false", "l|length", "s|length", "2**64", "10**25", "big"]
FLOATS = ["0.0", "-0.0", "0.5", "1.5", "2.5", "-2.5", "1e16", "1e-5", "1e300", "3.14159", "1e22", "123456.789", "f",
          "(e ~ 'inf')|float", "(e ~ '-inf')|float", "(e ~ 'nan')|float", "0.1", "1e15", "5e-324", "2.675", "1.0"]
STRINGS = ["''", "'a'", "'Hello, World'", "'  pad \\t'", "'x,y,,z'", "'aXbXc'", "'one two  three'", "'42'", "'-7'",
           "'3.5'", "'1e3'", "'größe'", "'ΑΣ ΣΑΣ'", "'日本語'", "'ß'", "'😀a'", "'<b>&\"q\"</b>'", "'it\\'s'",
           "'a\\nb\\n\\nc'", "'a\\r\\nb\\x0bc'", "'%s'", "'{}'", "'tab\\tx'", "'ABC'", "'abc'", "'TITLE case'",
           "'back\\\\slash'", "'\\u200b\\xa0x'", "'ﬁx'", "'İı'", "'123abc'", "'http://example.com/a?b=c#d'",
           "'mail me@example.org now'", "s", "u", "ws", "multi", "quote", "e", "bos_token", "messages[0].content"]
LISTS = ["[]", "[1, 2, 3]", "['b', 'A', 'c', 'a']", "[1, 'a', none, 2.5]", "[[1, 2], [3, 4]]", "[true, false, 1, 0]",
         "[3, 1, 2, 1]", "['x', 'y']", "l", "ls", "empty", "messages", "people", "(1, 2)", "()", "(1,)", "range(5)",
         "range(10, 0, -3)", "[1.5, 2, 10**20]", "['a', 'A', 'a', 'b']", "[none, missing, '']", "[(1, 'b'), (0, 'c')]",
         "[{'k': 2, 'v': 'x'}, {'k': 1, 'v': 'Y'}]", "range(0)", "dict(a=1, b=2)|items|list", "'abc'|list"]
DICTS = ["{}", "{'a': 1, 'b': 2}", "{'b': 1, 'A': 2, 'c': 3}", "{1: 'x', none: 'y', true: 'z'}", "d",
         "{'a': {'b': {'c': 1}}}", "{'items': 1, 'keys': 2}", "messages[2]", "people[0]", "dict(x=1, y='z')",
         "{'x': [1, {'y': none}], 'z': 'é'}", "{(1, 2): 'p', 1.5: 'q'}", "messages[2].tool_calls[0].function"]
NAMES = ["n", "s", "l", "d", "x", "y", "i", "missing", "nil", "ns", "f", "people"]
STR_METHODS = {
    "upper": 0, "lower": 0, "strip": "?s", "lstrip": "?s", "rstrip": "?s", "title": 0, "capitalize": 0, "swapcase": 0,
    "casefold": 0, "split": "?s?i", "rsplit": "?s?i", "splitlines": "?b", "replace": "ss?i", "startswith": "s?i?i",
    "endswith": "s?i?i", "find": "s?i?i", "rfind": "s?i?i", "index": "s", "rindex": "s", "count": "s?i?i", "join": "l",
    "partition": "s", "rpartition": "s", "center": "w?c", "ljust": "w?c", "rjust": "w?c", "zfill": "w",
    "removeprefix": "s", "removesuffix": "s", "expandtabs": "?w", "isalpha": 0, "isdigit": 0, "isalnum": 0,
    "isspace": 0, "isupper": 0, "islower": 0, "istitle": 0, "isidentifier": 0, "isdecimal": 0, "isnumeric": 0,
    "isascii": 0, "isprintable": 0,
}
STR_FILTERS = {
    "upper": 0, "lower": 0, "trim": "?s", "title": 0, "capitalize": 0, "replace": "ss?i", "length": 0, "count": 0,
    "e": 0, "escape": 0, "safe": 0, "string": 0, "list": 0, "first": 0, "last": 0, "reverse": 0, "join": "?s",
    "indent": "?w?b?b", "truncate": "?w?b?c?i", "center": "?w", "wordcount": 0, "urlencode": 0, "striptags": 0,
    "urlize": "?w", "wordwrap": "?w?b?c", "forceescape": 0, "int": "?i", "float": "?f", "tojson": 0, "default": "?a",
    "d": "?a?b", "format": "?a?a", "unique": 0, "sort": 0, "max": 0, "min": 0, "pprint": 0, "batch": "w", "slice": "w",
    "select": 0, "abs": 0, "attr": "s", "xmlattr": 0, "items": 0, "dictsort": 0, "round": "?i", "filesizeformat": "?b",
    "map": "t", "sum": 0, "groupby": "w", "reject": 0,
}
LIST_FILTERS = {
    "length": 0, "first": 0, "last": 0, "join": "?s", "list": 0, "sort": "?b?b", "reverse": 0, "unique": "?b",
    "max": "?b", "min": "?b", "sum": 0, "batch": "w?a", "slice": "w?a", "select": "?t", "reject": "?t", "map": "m",
    "tojson": 0, "string": 0, "pprint": 0, "default": "?a", "count": 0, "selectattr": "p?t", "rejectattr": "p?t",
    "groupby": "p", "upper": 0, "trim": 0, "e": 0, "wordcount": 0, "int": 0, "float": 0, "urlencode": 0, "items": 0,
    "dictsort": 0, "xmlattr": 0, "striptags": 0, "random": 0, "center": "?w", "title": 0, "indent": 0, "replace": "ss",
}
DICT_FILTERS = {
    "length": 0, "list": 0, "first": 0, "last": 0, "items": 0, "dictsort": "?b", "tojson": 0, "join": "?s",
    "string": 0, "pprint": 0, "xmlattr": "?b", "urlencode": 0, "sort": 0, "max": 0, "default": "?a", "reverse": 0,
    "map": "m", "unique": 0, "e": 0, "attr": "s", "batch": "w", "select": 0, "sum": 0,
}
NUM_FILTERS = {
    "abs": 0, "round": "?i?r", "int": "?i", "float": "?f", "string": 0, "tojson": 0, "default": "?a",
    "filesizeformat": "?b", "e": 0, "pprint": 0, "length": 0, "upper": 0, "center": "?w", "trim": 0, "list": 0,
    "wordcount": 0, "urlencode": 0, "replace": "ss", "title": 0, "format": 0, "first": 0, "max": 0, "xmlattr": 0,
    "truncate": 0, "indent": 0, "join": 0, "striptags": 0, "sum": 0, "urlize": 0, "wordwrap": 0,
}
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
         "iterable", "callable", "odd", "even", "lower", "upper", "true", "false", "escaped", "divisibleby {i}",
         "eq {a}", "ne {a}", "lt {a}", "gt {a}", "ge {a}", "le {a}", "in {l}", "sameas {a}", "divisibleby({i})",
         "equalto({a})", "filter", "test", "in({s})"]
PLAIN_TESTS = ["'odd'", "'even'", "'string'", "'none'", "'defined'", "'number'", "'gt', 1", "'in', [1, 2]",
               "'eq', 'a'", "'mapping'", "'lower'", "'sameas', none", "'true'", "'=='", "'==', 1", "'nope'"]
MAPS = ["'upper'", "'string'", "'length'", "attribute='k'", "attribute='name'", "attribute='tags.0'", "'trim'",
        "'abs'", "attribute=0", "attribute='0'", "attribute='x', default='-'", "'default', 'q'", "'tojson'", "'int'",
        "'replace', 'a', 'Z'", "attribute='name.0'", "'batch', 2", "'first'", "", "'nope'", "attribute='role'"]
PATHS = ["'k'", "'name'", "'age'", "'tags'", "'tags.0'", "'role'", "0", "'0'", "'missing'", "'content'"]
PERCENTS = ["%s", "%d", "%5d", "%-5d|", "%05d", "%+d", "%x", "%X", "%#x", "%o", "%e", "%.2f", "%10.3f", "%g", "%G",
            "%r", "%a", "%c", "%5s", "%-5s|", "%.2s", "%%", "%(a)s", "%(b)d", "%i", "%u", "% d", "%#o", "%.3d", "%*d",
            "%.*f", "%5%", "%E", "%F", "%#g", "%08.3f", "%+.1e", "%.0f", "%.10g", "%q"]
BRACES = ["{}", "{0}", "{1}", "{a}", "{!r}", "{!s}", "{!a}", "{:d}", "{:5}", "{:>5}", "{:<5}|", "{:^5}", "{:*^7}",
          "{:05d}", "{:05}", "{:,}", "{:_}", "{:x}", "{:#x}", "{:#b}", "{:_x}", "{:o}", "{:e}", "{:.2f}", "{:10.3f}",
          "{:g}", "{:.3g}", "{:%}", "{:.1%}", "{:+}", "{: }", "{:+.2e}", "{:=+8}", "{:c}", "{:n}", "{:s}", "{:.2}",
          "{0[0]}", "{0.a}", "{a[k]}", "{:{}}", "{:>{w}}", "{{", "}}", "{:,.2f}", "{:010,.1f}", "{:#.0f}", "{:G}",
          "{:020,}", "{:08_x}", "{:z.1f}", "{:<05}", "{:-}", "{:E}", "{:q}", "{:,x}", "{:.3d}", "{:!r}", "{!x}", "{:é>4}",
          "{:#X}", "{:^010}", "{:012,.2f}", "{:#g}", "{:.0f}", "{:.17g}", "{:F}", "{:>8s}", "{:05s}", "{:=5s}"]
SPACES = ["", "", "", " ", "  ", "\n", "\n\n", "  \n", "\n  ", "\t", "x", " y ", "\nz", "\r\n", "text & <b>", "{", "}",
          "%", "#", "{ {", "é", "\n    ", "-", "'"]


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.macros = []
        self.loops = 0
        self.names = list(NAMES)

    def chance(self, p):
        return self.r.random() < p

    def pick(self, items):
        return self.r.choice(items)

    # ---- expressions

    def value(self, depth):
        return self.pick([self.integer, self.number, self.string, self.string, self.list, self.dict, self.boolean,
                          self.name])(depth - 1)

    def name(self, depth):
        return self.pick(self.names + (["loop", "loop.index", "loop.first", "loop.last", "loop.length", "loop.previtem",
                                        "loop.nextitem", "loop.revindex", "loop.index0", "loop.depth",
                                        "loop.cycle('a', 'b')", "loop.changed(i)", "loop.revindex0"]
                                       if self.loops else []))

    def argument(self, code, depth):
        if self.chance(0.04):
            return self.value(min(depth, 1))
        return {
            "s": lambda: self.string(depth), "i": lambda: self.pick(["0", "1", "2", "3", "-1", "-2", "5", "100"]),
            "b": lambda: self.pick(["true", "false", "1", "0"]), "a": lambda: self.value(depth),
            "l": lambda: self.list(depth), "w": lambda: self.pick(["0", "1", "2", "3", "5", "8", "12", "20", "-1"]),
            "c": lambda: self.pick(["'*'", "'.'", "' '", "'é'", "'<'", "'ab'", "''"]),
            "f": lambda: self.pick(FLOATS), "t": lambda: self.pick(PLAIN_TESTS), "m": lambda: self.pick(MAPS),
            "p": lambda: self.pick(PATHS), "r": lambda: self.pick(["'common'", "'ceil'", "'floor'"]),
        }[code]()

    def arguments(self, codes, depth):
        out, i = [], 0
        codes = codes or ""
        while i < len(codes):
            optional = codes[i] == "?"
            i += optional
            if optional and self.chance(0.5):
                break
            out.append(self.argument(codes[i], depth - 1))
            i += 1
        return ", ".join(out)

    def filtered(self, source, table, depth):
        for _ in range(self.pick([1, 1, 1, 2])):
            name = self.pick(list(table))
            arguments = self.arguments(table[name], depth)
            source = f"{source}|{name}({arguments})" if arguments else f"{source}|{name}"
            if name == "tojson" and self.chance(0.4):
                source += self.pick(["(indent=2)", "(sort_keys=true)", "(separators=(',', ':'))", "(ensure_ascii=true)",
                                     "(true)", "(indent='-')", "(indent=0)", "(separators=('; ', '='), indent=1)"])
            elif name == "sort" and not arguments and self.chance(0.4):
                source += self.pick(["(attribute='k')", "(attribute='age,name')", "(reverse=true)",
                                     "(case_sensitive=true)", "(attribute=0)", "(attribute='name', reverse=true)"])
            elif name == "dictsort" and not arguments and self.chance(0.4):
                source += self.pick(["(by='value')", "(reverse=true)", "(case_sensitive=true)", "(true, 'value', true)"])
            elif name in ("join", "sum", "max", "min", "unique") and not arguments and self.chance(0.2):
                source += self.pick(["(attribute='k')", "(attribute='age')", "(attribute=0)"])
            elif name == "groupby" and self.chance(0.6):
                source += "|list"
            table = self.pick([table, STR_FILTERS, LIST_FILTERS])
        return source

    def integer(self, depth):
        if depth <= 0 or self.chance(0.4):
            return self.pick(INTS)
        kind = self.r.randrange(9)
        if kind < 4:
            op = self.pick(["+", "-", "*", "//", "%", "+", "-"])
            return f"({self.integer(depth - 1)} {op} {self.integer(depth - 1)})"
        if kind == 4:
            return f"({self.integer(depth - 1)} ** {self.pick(['0', '1', '2', '3', '-1', '5', '17'])})"
        if kind == 5:
            return f"-{self.integer(depth - 1)}"
        if kind == 6:
            return f"({self.number(depth - 1)})|int"
        if kind == 7:
            return f"({self.list(depth - 1)})|length"
        return f"({self.string(depth - 1)})|int"

    def number(self, depth):
        if depth <= 0 or self.chance(0.35):
            return self.pick(FLOATS + INTS)
        kind = self.r.randrange(6)
        if kind < 3:
            op = self.pick(["+", "-", "*", "/", "//", "%"])
            return f"({self.number(depth - 1)} {op} {self.number(depth - 1)})"
        if kind == 3:
            return self.filtered(f"({self.number(depth - 1)})", NUM_FILTERS, depth)
        if kind == 4:
            return f"({self.number(depth - 1)} ** {self.pick(['2', '0.5', '-1', '3', '0', '-0.5'])})"
        return self.integer(depth)

    def string(self, depth):
        if depth <= 0 or self.chance(0.3):
            return self.pick(STRINGS)
        kind = self.r.randrange(13)
        if kind < 3:
            name = self.pick(list(STR_METHODS))
            return f"{self.atom(self.string, depth)}.{name}({self.arguments(STR_METHODS[name], depth)})"
        if kind < 6:
            return self.filtered(self.atom(self.string, depth), STR_FILTERS, depth)
        if kind == 6:
            return f"({self.string(depth - 1)} ~ {self.value(depth - 1)})"
        if kind == 7:
            return f"({self.string(depth - 1)} + {self.string(depth - 1)})"
        if kind == 8:
            return f"{self.atom(self.string, depth)}{self.index(depth)}"
        if kind == 9:
            return f"({self.string(depth - 1)} * {self.pick(['0', '1', '2', '3', '-1', 'true'])})"
        if kind == 10:
            form = "".join(self.pick(PERCENTS) + self.pick(["", " ", "-"]) for _ in range(self.pick([1, 1, 2])))
            args = ", ".join(self.value(1) for _ in range(form.count("%") - 2 * form.count("%%") + form.count("*")))
            given = self.pick([f"({args},)", f"({args},)", "{'a': %s, 'b': %s}" % (self.value(1), self.integer(1)),
                               self.value(1)])
            return f"('{form}' % {given})"
        if kind == 11:
            form = "".join(self.pick(BRACES) + self.pick(["", " ", "-"]) for _ in range(self.pick([1, 1, 2])))
            args = [self.pick([self.number, self.string, self.value])(1) for _ in range(2)]
            return f"'{form}'.format({args[0]}, {args[1]}, a={self.value(1)}, w={self.pick(['3', '6'])})"
        return f"({self.string(depth - 1)} if {self.boolean(depth - 1)} else {self.string(depth - 1)})"

    def index(self, depth):
        bound = lambda: self.pick(["", "", "0", "1", "2", "-1", "-2", "5", "-9", "100", "2**70", "-(2**70)"])
        if self.chance(0.35):
            return f"[{self.integer(1) if self.chance(0.3) else self.pick(['0', '1', '-1', '2'])}]"
        if self.chance(0.5):
            return f"[{bound()}:{bound()}]"
        return f"[{bound()}:{bound()}:{self.pick(['', '1', '2', '-1', '-2', '3', '0'])}]"

    def atom(self, make, depth):
        text = make(depth - 1)
        return text if text.replace("_", "").isalnum() and not text[0].isdigit() or text[0] in "'[(" and \
            text[-1] in "')]" and not any(c in text[1:-1] for c in "'[(|+~") else f"({text})"

    def list(self, depth):
        if depth <= 0 or self.chance(0.3):
            return self.pick(LISTS)
        kind = self.r.randrange(10)
        if kind < 2:
            return "[" + ", ".join(self.value(depth - 1) for _ in range(self.r.randrange(4))) + "]"
        if kind < 5:
            return self.filtered(self.atom(self.list, depth), LIST_FILTERS, depth)
        if kind == 5:
            return f"({self.list(depth - 1)} + {self.list(depth - 1)})"
        if kind == 6:
            return f"{self.atom(self.list, depth)}{self.index(depth)}"
        if kind == 7:
            return f"({self.list(depth - 1)} * {self.pick(['0', '1', '2', '-1'])})"
        if kind == 8:
            return f"{self.atom(self.dict, depth)}.{self.pick(['keys()', 'values()', 'items()'])}"
        return f"({self.string(depth - 1)}).split({self.arguments('?s', depth)})"

    def dict(self, depth):
        if depth <= 0 or self.chance(0.4):
            return self.pick(DICTS)
        kind = self.r.randrange(6)
        if kind < 2:
            keys = ["'a'", "'b'", "1", "none", "'x y'", "(1, 2)", "true", "1.0", "'k'"]
            return "{" + ", ".join(f"{self.pick(keys)}: {self.value(depth - 1)}" for _ in range(self.r.randrange(4))) + "}"
        if kind == 2:
            return self.filtered(self.atom(self.dict, depth), DICT_FILTERS, depth)
        if kind == 3:
            return f"{self.atom(self.dict, depth)}.get({self.arguments('s?a', depth)})"
        if kind == 4:
            return f"{self.atom(self.dict, depth)}{self.pick(['.a', '[1]', '.items', '.name', '.x.y', '.x[0]', '.b'])}"
        return f"dict({self.dict(depth - 1)}, q={self.value(depth - 1)})"

    def boolean(self, depth):
        if depth <= 0 or self.chance(0.2):
            return self.pick(["true", "false", "n", "z", "e", "missing", "nil", "l", "empty"])
        kind = self.r.randrange(8)
        if kind < 3:
            op = self.pick(["==", "!=", "<", "<=", ">", ">=", "==", "!="])
            make = self.pick([self.number, self.string, self.list, self.value])
            more = f" {self.pick(['<', '==', '>='])} {make(depth - 1)}" if self.chance(0.15) else ""
            return f"({make(depth - 1)} {op} {make(depth - 1)}{more})"
        if kind == 3:
            return f"({self.value(depth - 1)} {self.pick(['in', 'not in'])} " \
                   f"{self.pick([self.list, self.string, self.dict])(depth - 1)})"
        if kind == 4:
            test = self.pick(TESTS).format(i=self.pick(["2", "3", "0", "n"]), a=self.atom(self.value, 1),
                                           l=self.atom(self.list, 1), s=self.string(1))
            return f"({self.atom(self.value, depth)} {self.pick(['is', 'is', 'is not'])} {test})"
        if kind == 5:
            return f"(not {self.boolean(depth - 1)})"
        return f"({self.boolean(depth - 1)} {self.pick(['and', 'or'])} {self.boolean(depth - 1)})"

    # ---- statements

    def sign(self):
        return self.pick(["", "", "", "", "-", "-", "+"])

    def tag(self, body):
        end = self.pick(["", "", "", "-", "-", "+"])
        return "{%" + self.sign() + self.pick([" ", " ", "", "\n "]) + body + " " + end + "%}"

    def out(self, expression):
        return "{{" + self.pick(["", "", "", "-"]) + " " + expression + " " + self.pick(["", "", "", "-"]) + "}}"

    def text(self):
        return "".join(self.pick(SPACES) for _ in range(self.r.randrange(3)))

    def body(self, depth):
        return self.text() + "".join(self.statement(depth - 1) + self.text() for _ in range(self.pick([1, 1, 2, 3])))

    def fresh(self):
        return self.pick(["x", "y", "i", "v", "n"])

    def statement(self, depth):
        if depth <= 0 or self.chance(0.4):
            if self.macros and self.chance(0.25):
                return self.out(self.call())
            return self.out(self.value(self.pick([1, 2, 2, 3])))
        kind = self.pick(["if", "if", "for", "for", "for", "set", "set", "setblock", "macro", "call", "filter", "with",
                          "raw", "comment", "jump", "namespace", "recursive", "print", "generation", "unpack"])
        if kind == "if":
            out = self.tag(f"if {self.boolean(2)}") + self.body(depth)
            if self.chance(0.3):
                out += self.tag(f"elif {self.boolean(2)}") + self.body(depth)
            if self.chance(0.5):
                out += self.tag("else") + self.body(depth)
            return out + self.tag("endif")
        if kind == "for":
            source = self.pick([self.list, self.list, self.list, self.dict, self.string])(self.pick([0, 1, 2]))
            test = f" if {self.pick([self.boolean(2), 'i is odd', 'i != 2', 'x', 'loop is defined'])}" \
                if self.chance(0.25) else ""
            return self.loop(f"for {self.pick(['i', 'x', 'n'])} in {source}{test}", depth)
        if kind == "unpack":
            target = self.pick(["k, v", "k, v", "a, (b, c)", "(k, v)", "a, b, c"])
            source = self.pick([f"{self.dict(1)}|items", f"{self.atom(self.dict, 1)}.items()", "[(1, 2), (3, 4)]",
                                "[(1, (2, 3))]", "['ab', 'cd']", f"{self.dict(1)}|dictsort", self.list(1),
                                "[(1, 2, 3)]", "people|groupby('age')"])
            return self.tag(f"for {target} in {source}") + self.out(self.pick(["k", "v", "a ~ b", "k ~ v"])) + \
                self.tag("endfor")
        if kind == "recursive":
            return self.tag("for i in [1, [2, [3]], []] recursive") + self.text() + \
                self.pick(["{% if i is iterable %}<{{ loop(i) }}>{% else %}{{ i }}{{ loop.depth0 }}{% endif %}",
                           "{{ loop.depth }}{{ loop(i) if i is sequence else i }}{{ loop.index }}"]) + self.tag("endfor")
        if kind == "set":
            if self.chance(0.2):
                return self.tag(f"set x, y = {self.pick([self.value(1) + ', ' + self.value(1), self.list(1)])}")
            return self.tag(f"set {self.fresh()} = {self.value(2)}")
        if kind == "setblock":
            chain = self.pick(["", "", " | upper", " | trim | length", " | replace('a', 'b')", " | indent(2, true)"])
            return self.tag(f"set {self.fresh()}{chain}") + self.body(depth) + self.tag("endset")
        if kind == "namespace":
            return self.tag(f"set ns = namespace(a={self.value(1)}, b=0)") + self.tag(
                self.pick([f"set ns.a = {self.value(2)}", "set ns.b = ns.b + 1", "set ns.c = ns"])) + \
                self.out(self.pick(["ns.a", "ns.b", "ns.zz", "ns.a ~ ns.b", "ns is mapping", "ns.c.b"]))
        if kind == "macro":
            name = f"m{len(self.macros)}"
            params = self.pick(["", "a", "a, b", "a, b=2", "a='p', b=a", "x, n=n", "a, b=x"])
            loops, self.loops = self.loops, 0
            inner = self.body(depth) + self.out(self.pick(
                ["a", "b", "varargs", "kwargs", "x", "caller is defined", "kwargs.k", "varargs|length", "a ~ b", "n"])) + (
                self.out(self.pick(["caller()", "caller(1)", "caller('q', n)"])) if self.chance(0.3) else "")
            self.loops = loops
            self.macros.append(name)
            return self.tag(f"macro {name}({params})") + inner + self.tag("endmacro") + (
                self.out(self.call()) if self.chance(0.7) else "")
        if kind == "call" and self.macros:
            params = self.pick(["", "", "(v)", "(v, w=1)", "(v, n)"])
            loops, self.loops = self.loops, 0
            inner = self.body(depth) + self.out(self.pick(["v", "w", "n", "s"]))
            self.loops = loops
            return self.tag(f"call{params} {self.call()}") + inner + self.tag("endcall")
        if kind == "filter":
            chain = self.pick(["upper", "trim", "replace('a', 'b')", "indent(2)", "length", "upper | trim", "title",
                               "wordcount", "center(20)", "e", "truncate(9)", "wordwrap(10)", "striptags"])
            return self.tag(f"filter {chain}") + self.body(depth) + self.tag("endfilter")
        if kind == "with":
            return self.tag(f"with {self.fresh()} = {self.value(1)}, w = {self.value(1)}") + self.body(depth) + \
                self.out("w") + self.tag("endwith")
        if kind == "raw":
            return self.tag("raw").replace("+%}", "%}") + self.pick(["{{ x }}", " {% if %} ", "\n{# c #}\n", "  "]) + \
                self.tag("endraw")
        if kind == "comment":
            return "{#" + self.sign() + self.pick([" c ", "\n", " {{ x }} ", ""]) + self.pick(["", "-", "+"]) + "#}"
        if kind == "jump" and self.loops:
            return self.tag(f"if {self.boolean(2)}") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")
        if kind == "print":
            return self.tag(f"print {self.value(1)}, {self.value(1)}")
        if kind == "generation":
            return self.tag("generation") + self.body(depth) + self.tag("endgeneration")
        return self.out(self.value(3))

    def loop(self, head, depth):
        self.loops += 1
        out = self.tag(head) + self.body(depth) + self.out(self.pick(["i", "x", "n", "loop.index", "loop.last"]))
        self.loops -= 1
        if self.chance(0.25):
            out += self.tag("else") + self.body(depth)
        return out + self.tag("endfor")

    def call(self):
        args = self.pick(["", "1", "1, 2", "'q'", "b=3", "1, k=4", "1, 2, 3", "a=1", "*[1, 2]", "**{'a': 5}", "x",
                          "1, *['z'], b=2", "n, n=5"])
        return f"{self.pick(self.macros)}({args})"

    def template(self):
        if self.chance(0.55):
            return self.out(self.pick([self.value, self.string, self.number, self.list, self.dict, self.boolean])(
                self.pick([1, 2, 2, 3, 3, 4])))
        return self.body(self.pick([2, 3, 4]))
