// CLI11 options with strict values. CLI11's own conversions read "" as 0 and "010" as 8, and read the environment for
// every command.
#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/cpu_info.h"
#include "base/error.h"
#include "gguf/reader.h"

namespace minfer::cli {
namespace {

struct Variable {
  const char *option, *name;
};
constexpr Variable kVariables[] = {
    {"--threads", "MINFER_THREADS"}, {"--isa", "MINFER_ISA"},           {"--cache-type", "MINFER_CACHE_TYPE"},
    {"--trace", "MINFER_TRACE"},     {"--dump-dir", "MINFER_DUMP_DIR"},
};

std::string variable_of(const std::string& names) {
  for (const auto& v : kVariables) {
    if (names.rfind(v.option, 0) == 0 &&
        (names.size() == std::string(v.option).size() || names[std::string(v.option).size()] == ',')) {
      return fmt::format(" [{}]", v.name);
    }
  }
  return "";
}

// An option whose last value goes through `set`.
CLI::Option* add(CLI::App& app, const std::string& names, const std::string& help, const char* kind,
                 std::function<Status(const std::string&)> set, std::string shown_default = "") {
  auto option = std::make_shared<CLI::Option*>(nullptr);
  *option = app.add_option(
      names,
      [set = std::move(set), option](const CLI::results_t& values) {
        const auto status = set(values.back());
        if (!status.ok()) throw CLI::ValidationError((*option)->get_name(), status.error().message);
        return true;
      },
      help + variable_of(names));
  (*option)->type_name(kind)->type_size(1)->expected(1);
  if (names.find('-') == 0) (*option)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if (!shown_default.empty()) (*option)->default_str(std::move(shown_default));
  return *option;
}

Error bad(const std::string& text, const std::string& expected) {
  if (text.empty()) return make_error(ErrorCode::kInvalidArgument, "is empty, expected {}", expected);
  return make_error(ErrorCode::kInvalidArgument, "found {}, expected {}", gguf::printable(text, 80), expected);
}

// Sets what the environment says for options that were not given, and returns which variables did.
Result<std::vector<Variable>> apply_environment(CLI::App& app) {
  std::vector<Variable> applied;
  for (const auto& v : kVariables) {
    CLI::Option* option = app.get_option_no_throw(v.option);
    const char* value = std::getenv(v.name);
    if (option == nullptr || option->count() > 0 || value == nullptr || *value == 0) continue;
    const auto needs = option->get_needs();
    if (std::any_of(needs.begin(), needs.end(), [](const CLI::Option* o) { return o->count() == 0; })) continue;
    // The scalar definition has no instruction sets; a preference among them is no reason to refuse it.
    const CLI::Option* device = app.get_option_no_throw("--device");
    if (std::string(v.option) == "--isa" && device != nullptr && device->count() > 0 &&
        device->results().back() == "ref")
      continue;
    try {
      option->add_result(value);
      option->run_callback();
      applied.push_back(v);
    } catch (const CLI::Error& e) {
      std::string message = e.what();
      const std::string prefix = option->get_name() + ": ";
      if (message.rfind(prefix, 0) == 0) message.erase(0, prefix.size());
      return make_error(ErrorCode::kInvalidArgument, "{}: {}", v.name, message);
    }
  }
  return applied;
}

// An error about an option names the variable that stands for it.
Error name_variable(Error error, const std::vector<Variable>& applied) {
  for (const auto& v : applied) {
    const std::string prefix = std::string(v.option) + ":";
    if (error.message.rfind(prefix, 0) == 0) error.message.replace(0, prefix.size(), std::string(v.name) + ":");
  }
  return error;
}

}  // namespace

Result<int64_t> parse_integer(const std::string& text, Range range) {
  int64_t v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  const bool number = r.ptr == text.data() + text.size() && r.ec != std::errc::invalid_argument;
  if (!number || r.ec != std::errc{} || v < range.lo || v > range.hi) {
    return bad(text, fmt::format("{} to {}", range.lo, range.hi));
  }
  return v;
}

Result<float> parse_real(const std::string& text) {
  double v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec == std::errc::invalid_argument || r.ptr != text.data() + text.size()) return bad(text, "a number");
  const auto f = static_cast<float>(v);
  if (r.ec != std::errc{} || !std::isfinite(f) || (v != 0 && std::fpclassify(f) != FP_NORMAL)) {
    return bad(text, "a finite number, 0 or of magnitude 1.2e-38 to 3.4e38");
  }
  return f;
}

CLI::Option* add_integer(CLI::App& app, const std::string& names, int& target, Range range, const std::string& help,
                         bool show_default) {
  return add(
      app, names, help, "N",
      [&target, range](const std::string& text) -> Status {
        target = static_cast<int>(MINFER_TRY(parse_integer(text, range)));
        return {};
      },
      show_default ? std::to_string(target) : "");
}

CLI::Option* add_real(CLI::App& app, const std::string& names, float& target, const std::string& help,
                      bool show_default) {
  return add(
      app, names, help, "X",
      [&target](const std::string& text) -> Status {
        target = MINFER_TRY(parse_real(text));
        return {};
      },
      show_default ? fmt::format("{}", target) : "");
}

CLI::Option* add_seed(CLI::App& app, const std::string& names, std::optional<uint64_t>& target,
                      const std::string& help) {
  return add(app, names, help, "N", [&target](const std::string& text) -> Status {
    uint64_t v = 0;
    const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
    if (r.ec != std::errc{} || r.ptr != text.data() + text.size()) {
      return bad(text, fmt::format("0 to {}", std::numeric_limits<uint64_t>::max()));
    }
    target = v;
    return {};
  });
}

CLI::Option* add_isa(CLI::App& app, std::string& target, const std::string& help) {
  return add(app, "--isa", help, "TEXT", [&target](const std::string& text) -> Status {
    if (text.empty()) return make_error(ErrorCode::kInvalidArgument, "is empty");
    if (!isa_from_name(text)) return bad(text, "scalar, avx2, avxvnni, avx512 or neon");
    target = text;
    return {};
  });
}

CLI::Option* add_text(CLI::App& app, const std::string& names, std::string& target, const std::string& help) {
  return add(
      app, names, help, "TEXT",
      [&target](const std::string& text) -> Status {
        if (text.empty()) return make_error(ErrorCode::kInvalidArgument, "is empty");
        target = text;
        return {};
      },
      target);
}

CLI::Option* add_any_text(CLI::App& app, const std::string& names, std::string& target, const std::string& help) {
  return add(app, names, help, "TEXT", [&target](const std::string& text) -> Status {
    target = text;
    return {};
  });
}

CLI::Option* add_texts(CLI::App& app, const std::string& names, std::vector<std::string>& target,
                       const std::string& help) {
  return app.add_option(names, target, help)
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->check([](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); });
}

CLI::Option* add_special(CLI::App& app, bool& target, const std::string& help) {
  return add(app, "--special", help, "[on|off]", [&target](const std::string& text) -> Status {
    if (text != "on" && text != "off") return bad(text, "on or off");
    target = text == "on";
    return {};
  });
}

CLI::Option* add_model(CLI::App& app, std::string& target, const std::string& help, bool required) {
  return add_text(app, "model", target, help.empty() ? "a GGUF file or the name of a cached model" : help)
      ->required(required);
}

void on_run(CLI::App& app, const Exit& exit, std::function<Result<int>()> body, bool polls_interrupt) {
  app.callback([&app, exit, body = std::move(body), polls_interrupt] {
    if (polls_interrupt) catch_interrupts();
    const auto environment = apply_environment(app);
    if (!environment.ok()) {
      *exit = report(environment.error());
      return;
    }
    const auto r = body();
    *exit = r.ok() ? *r : report(name_variable(r.error(), *environment));
  });
}

void prepare_words(const CLI::App& command, std::vector<std::string>& words) {
  const bool has_special = command.get_option_no_throw("--special") != nullptr;
  bool value = false;  // this word is the value of the option before it
  for (size_t i = 1; i < words.size() && (value || words[i] != "--"); ++i) {
    if (value) {
      value = false;
      continue;
    }
    if (words[i] == "--special" && has_special) {
      const bool said = i + 1 < words.size() && (words[i + 1] == "on" || words[i + 1] == "off");
      words[i] += "=" + (said ? words[i + 1] : "on");
      if (said) words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      continue;
    }
    if (words[i].size() < 2 || words[i][0] != '-') continue;
    const bool empty = words[i].find('=') == words[i].size() - 1;
    if (!empty && words[i].find('=') != std::string::npos) continue;
    const std::string name = words[i].substr(0, words[i].size() - (empty ? 1 : 0));
    const CLI::Option* option = command.get_option_no_throw(name);
    value = option != nullptr && option->get_items_expected_min() > 0;
    if (value && empty) {
      words[i] = name;
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, "");
    }
  }
}

Result<std::vector<int32_t>> parse_ids(std::string_view text, int64_t n_vocab, const std::string& what) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<int32_t> ids;
  const auto bad_item = [&](std::string_view found) {
    return make_error(ErrorCode::kInvalidArgument, "{}: item {}: found {}, expected 0 to {}", what, ids.size() + 1,
                      found.empty() ? "nothing" : gguf::printable(found, 40), n_vocab - 1);
  };
  bool comma = false;  // one stands before the item that is expected
  for (size_t at = 0;;) {
    at = std::min(text.find_first_not_of(kSpace, at), text.size());
    if (at == text.size()) break;
    const size_t end = std::min(text.find_first_of(" \t\r\n,", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    int32_t id = 0;
    const auto r = std::from_chars(word.data(), word.data() + word.size(), id);
    if (word.empty() || r.ec != std::errc{} || r.ptr != word.data() + word.size() || id < 0 || id >= n_vocab) {
      return bad_item(word);
    }
    ids.push_back(id);
    at = std::min(text.find_first_not_of(kSpace, end), text.size());
    comma = at < text.size() && text[at] == ',';
    if (comma) ++at;
  }
  if (comma) return bad_item("");
  return ids;
}

}  // namespace minfer::cli
