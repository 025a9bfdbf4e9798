// The readers of calls. Each begins after its marker and ends when the section is over or went wrong; what it did not
// turn into calls is content (Machine::end_section).
#pragma once

#include <string>
#include <string_view>

#include "chat/answer/json_scan.h"
#include "chat/answer/machine.h"

namespace minfer::chat::answer {

using Read = Task<bool>;  // false: the text is not of this form

// -- common readers (readers.cpp); all take into the section
Read read_space(Machine& m);
Read read_literal(Machine& m, std::string_view literal);
// Nothing is taken when the next byte is another one.
Read read_optional(Machine& m, std::string_view literal);
// The literal that is complete first goes to `which`.
Read read_one_of(Machine& m, std::string_view a, std::string_view b, int& which);
// Text until `end`, which is taken and not part of `out`; false at the end of the text.
Read read_until(Machine& m, std::string_view end, std::string& out);
// The same for names: no white space or punctuation but _ - . : / inside, kMaxNameBytes at most.
Read read_name(Machine& m, std::string_view end, std::string& out);
// Letters of a name until something else.
Read read_word(Machine& m, std::string& out);
// One JSON value. `out`: its bytes; arguments = true: they go to the call's arguments as well.
Read read_json(Machine& m, std::string& out, bool arguments = false);
// JSON arguments of a call that begins here: an object, a string that holds one, or null.
Read read_call_arguments(Machine& m, std::string name, std::string id);

inline constexpr size_t kMaxNameBytes = 256;  // OpenAI takes 64
bool is_name(std::string_view name);

// The text of a JSON string literal. Requires: it is one that JsonScan took.
bool decode_json_string(std::string_view literal, std::string& out);

// -- one per Body
Read body_json(Machine& m, const CallSyntax& s, bool bare);
Read body_json_by_key(Machine& m, const CallSyntax& s);
Read body_named(Machine& m, const CallSyntax& s);
Read body_deepseek(Machine& m, const CallSyntax& s);
Read body_tagged(Machine& m, const CallSyntax& s);
Read body_glm(Machine& m, const CallSyntax& s);
Read body_mcp(Machine& m, const CallSyntax& s);
Read body_gemma(Machine& m, const CallSyntax& s);
Read body_python(Machine& m, const CallSyntax& s, bool bare);
Read body_recipient(Machine& m, const CallSyntax& s);
Read body_harmony(Machine& m, const CallSyntax& s, std::string_view marker);

// -- the whole answer (text.cpp)
Read read_answer(Machine& m);

}  // namespace minfer::chat::answer
