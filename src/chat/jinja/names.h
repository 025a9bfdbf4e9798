// Which names a body hides. Jinja decides when it compiles where a name lives: one that a body sets, and that neither
// this body before nor a body around it reads or sets, is its own from the start. Bodies inside it that run before the
// assignment find it undefined, even when the template was given a variable of that name.
// Source: Jinja2's idtracking.py, whose rules these are.
#pragma once

#include "chat/jinja/ast.h"

namespace minfer::chat::jinja {

// Fills `hidden` of the template's body and of every body with names of its own inside it.
void hide_names(Body& root);

}  // namespace minfer::chat::jinja
