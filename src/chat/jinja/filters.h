// The two tables of filters, searched together by find_filter.
#pragma once

#include <span>

#include "chat/jinja/builtins.h"

namespace minfer::chat::jinja {

Value striptags(Interp& in, const Value& v, const Args& a);
Value urlize(Interp& in, const Value& v, const Args& a);
Value wordwrap(Interp& in, const Value& v, const Args& a);
Value pprint(Interp& in, const Value& v, const Args& a);

std::span<const Named<FilterFn>> text_filters();
std::span<const Named<FilterFn>> sequence_filters();

}  // namespace minfer::chat::jinja
