// Chat templates by name, for models that carry none: what --template NAME means. Chosen by the user, never guessed.
// Errors:  an unknown name lists the known ones.
// Threads: constants.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"

namespace minfer::chat {

struct NamedTemplate {
  std::string_view name;
  std::string_view source;
};

std::span<const NamedTemplate> named_templates();
Result<std::string_view> named_template(std::string_view name);

}  // namespace minfer::chat
