# Writes src/chat/jinja/special_casing.inc: python3 tools/make_case_table.py > src/chat/jinja/special_casing.inc
import unicodedata
print("// Code points whose upper or title case is more than one character; the rest follow the one-to-one mapping.")
print("// Layout: {code point, upper, title}. Written by tools/make_case_table.py from Python's unicodedata %s." % unicodedata.unidata_version)
for c in range(0x110000):
    if 0xd800<=c<0xe000: continue
    ch=chr(c)
    if len(ch.upper())>1 or len(ch.title())>1:
        esc=lambda s:'"'+''.join('\\x%02x'%b for b in s.encode())+'"'
        print("{0x%04X, %s, %s},"%(c,esc(ch.upper()),esc(ch.title())))
