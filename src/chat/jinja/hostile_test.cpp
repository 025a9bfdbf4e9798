// Templates that ask for too much: each ends in an error that says where, with little memory and time spent.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "chat/chat_template.h"

namespace minfer::chat {
namespace {

// An eighth of what a render may use by default, so that the test takes seconds.
std::string outcome(const std::string& source) {
  const auto t = ChatTemplate::parse(source);
  if (!t.ok()) return t.error().message;
  RenderOptions options;
  options.limits.steps /= 8;
  options.limits.bytes /= 8;
  const auto r = t->render({Message::make("user", "Hi")}, options);
  return r.ok() ? "renders " + std::to_string(r->text().size()) + " bytes" : r.error().message;
}

TEST(Hostile, SizesAreRefusedBeforeAnythingIsMade) {
  for (const char* expression : {
           "'a' * 10**9",
           "'a' * 10**18",
           "[0] * 10**9",
           "(0,) * 10**9",
           "range(10**12)",
           "range(10**30)",
           "9**(9**9)",
           "(10**4000) * (10**4000)",
           "2**(2**70)",
           "'{:1000000000}'.format(1)",
           "'{:>99999999999999999999}'.format('x')",
           "'{:.1000000000f}'.format(1.5)",
           "'{:0999999999,}'.format(1)",
           "'%1000000000d' % 1",
           "'%.1000000000f' % 1.5",
           "'%*d' % (10**9, 1)",
           "'a\\nb' | indent(10**9)",
           "'a' | center(10**9)",
           "'a'.ljust(10**9)",
           "'a'.rjust(10**18)",
           "'1'.zfill(10**9)",
           "'\\t'.expandtabs(10**9)",
           "[1] | batch(10**9, 'x') | list",
           "[1] | slice(10**9) | list",
           "[1] | tojson(indent=10**9)",
           "1 | round(10**9) ~ (1.5 | round(10**9, 'floor'))",
           "('a' * 10**6).replace('a', 'b' * 10**6)",
           "('a' * 10**6).replace('', 'b' * 10**6)",
           "('b' * 10**6).join('a' * 10**6)",
           "('a' * 10**6) | join('b' * 10**6)",
           "'%s' * 10**5 % (('x' * 10**5,) * 10**5)",
           "('{0}' * 10**5).format('x' * 10**5)",
           "('x\\n' * 10**6) | indent(10**6)",
           "('x ' * 10**6) | wordwrap(1, wrapstring='y' * 10**6)",
           "('\\u1f80' * 10**6).upper() * 10**3",
           "'a' | pprint * 10**9",
           "dict(a=1, **{'b': 'x' * 10**9})",
       }) {
    const std::string said = outcome("{% if true %}\n  {{ " + std::string(expression) + " }}{% endif %}");
    EXPECT_EQ(said.find("[template] line 2, column "), 0u) << expression << ": " << said;
  }
}

TEST(Hostile, WorkIsCounted) {
  for (const char* source : {
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           "{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x * 2 %}{% endfor %}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
           "{% set ns = namespace(x=3) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
           "{% set n = 7**5000 %}{% for i in range(99999) %}{{ (n + i) % (n - 1) == 0 }}{% endfor %}",
           "{% set s = 'a' * 10**6 %}{% for i in range(99999) %}{{ s.count('b') }}{% endfor %}",
           "{% set s = 'a' * 10**6 %}{% for i in range(99999) %}{{ s | length }}{{ s | upper | length }}{% endfor %}",
           "{% set s = '(' * 10**6 %}{% for i in range(99999) %}{{ s | urlize | length }}{% endfor %}",
           "{% set s = 'www.a.' * 10**5 %}{% for i in range(99999) %}{{ s | urlize | length }}{% endfor %}",
           "{% set s = 'a@' * 10**5 %}{% for i in range(99999) %}{{ s | urlize | length }}{% endfor %}",
           "{% set s = '<' * 10**6 %}{% for i in range(99999) %}{{ s | striptags | length }}{% endfor %}",
           "{% set s = '&notit;' * 10**5 %}{% for i in range(99999) %}{{ s | striptags | length }}{% endfor %}",
           "{% set s = '-' * 10**6 %}{% for i in range(99999) %}{{ s | wordwrap(9) | length }}{% endfor %}",
           "{% set s = 'a-' * 10**5 %}{% for i in range(99999) %}{{ s | wordwrap(2) | length }}{% endfor %}",
           "{% set l = range(99999) | list %}{% for i in l %}{{ l | sort | length }}{% endfor %}",
           "{% set l = range(99999) | list %}{% for i in l %}{{ l | pprint | length }}{% endfor %}",
           "{% set l = range(9999) | list %}{% for i in l %}{% if -1 in l %}{% endif %}{% endfor %}",
           "{% set l = range(9999) | list %}{% for i in l %}{{ l == l + [] }}{% endfor %}",
           "{% set l = ['x' * 9999] * 9999 %}{% for i in l %}{{ l | unique | list | length }}{% endfor %}",
           "{% macro m() %}{{ 'x' * 10**6 }}{% endmacro %}{% for i in range(99999) %}{{ m() }}{% endfor %}",
           "{% for i in range(99999) recursive %}{% if loop.depth < 99 %}{{ loop(range(99999)) }}{% endif %}{% endfor "
           "%}",
       }) {
    const std::string said = outcome(source);
    EXPECT_EQ(said.find("[template] line 1, column "), 0u) << source << ": " << said;
  }
}

TEST(Hostile, NestingIsBounded) {
  const auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  for (const std::string& source : {
           "{{ " + repeat("(", 20000) + "1" + repeat(")", 20000) + " }}",
           "{{ " + repeat("[", 20000) + repeat("]", 20000) + " }}",
           "{{ " + repeat("{1:", 20000) + "1" + repeat("}", 20000) + " }}",
           "{{ " + repeat("a[", 20000) + "1" + repeat("]", 20000) + " }}",
           "{{ " + repeat("f(", 20000) + repeat(")", 20000) + " }}",
           "{{ 1" + repeat(" ** 1", 20000) + " }}",
           "{{ 1" + repeat(" if 1 else 1", 20000) + " }}",
           "{{ x" + repeat(" is defined and x", 20000) + " }}",
           "{{ x" + repeat("[0]", 20000) + " }}",
           "{{ '" + repeat("{0:", 20000) + repeat("}", 20000) + "'.format(1) }}",
           repeat("{% if true %}", 20000) + repeat("{% endif %}", 20000),
           repeat("{% for x in y %}", 20000) + repeat("{% endfor %}", 20000),
           repeat("{% macro m() %}", 20000) + repeat("{% endmacro %}", 20000),
           repeat("{% set x %}", 20000) + repeat("{% endset %}", 20000),
           "{% set " + repeat("(", 20000) + "a" + repeat(")", 20000) + " = 1 %}",
           std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
           std::string("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"),
           std::string("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}"),
           std::string("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}"),
       }) {
    const std::string said = outcome(source);
    EXPECT_EQ(said.find("[template] line 1, column "), 0u) << source.substr(0, 60) << ": " << said;
  }
}

// All of the above in one process: what they held at once stays far below what they asked for.
TEST(Hostile, MemoryStaysSmall) {
  rusage usage{};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 3L << 20);  // KiB; a render may make 512 MiB of values
}

}  // namespace
}  // namespace minfer::chat
