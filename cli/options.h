// Options of a command: their values are checked as they are parsed, and the environment stands in for some.
// Of an option that is given more than once the last counts, unless it collects a list.
// Errors:  a value that is empty, no decimal number or out of range ends parsing: exit code 2, the option and the range
//          named. A bad value in the environment is the same error, with the variable's name.
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common.h"

namespace CLI {
class Option;
}

namespace minfer::cli {

struct Range {
  int64_t lo, hi;
};
// Far beyond what any machine could hold, and sums of a few stay inside int32.
inline constexpr Range kPositive = {1, 1 << 30}, kNotNegative = {0, 1 << 30};
inline constexpr Range kThreads = {1, 1024};  // as ThreadPool::create() has it

// A decimal number: "010" is ten, "0x10", " 1", "+1" and "" are none.
Result<int64_t> parse_integer(const std::string& text, Range range);
// A decimal number that is neither infinite nor too small or large for an f32.
Result<float> parse_real(const std::string& text);

// `target` keeps its value when the option is not given; with `show_default` the help shows it.
CLI::Option* add_integer(CLI::App& app, const std::string& names, int& target, Range range, const std::string& help,
                         bool show_default = false);
CLI::Option* add_real(CLI::App& app, const std::string& names, float& target, const std::string& help,
                      bool show_default = true);
CLI::Option* add_seed(CLI::App& app, const std::string& names, std::optional<uint64_t>& target,
                      const std::string& help);
CLI::Option* add_isa(CLI::App& app, std::string& target, const std::string& help);  // --isa
// A text that may not be empty.
CLI::Option* add_text(CLI::App& app, const std::string& names, std::string& target, const std::string& help);
// One that may.
CLI::Option* add_any_text(CLI::App& app, const std::string& names, std::string& target, const std::string& help);
// May be repeated; each occurrence takes one value, none may be empty.
CLI::Option* add_texts(CLI::App& app, const std::string& names, std::vector<std::string>& target,
                       const std::string& help);
// --special [on|off], "on" where nothing is said.
CLI::Option* add_special(CLI::App& app, bool& target, const std::string& help);
// The model, a required positional argument unless said otherwise.
CLI::Option* add_model(CLI::App& app, std::string& target, const std::string& help = "", bool required = true);

// What the command does once its arguments are parsed: Ctrl-C is caught only if `polls_interrupt` (otherwise it ends
// the process at once), the environment is read for the options of this command that were not given, `body` is run and
// its error reported.
void on_run(CLI::App& app, const Exit& exit, std::function<Result<int>()> body, bool polls_interrupt = false);

// What CLI11 would misread, put so that it does not: "--special" becomes "--special=on" and "--special on" becomes
// "--special=on", so that no text after it is taken for its value; "--name=" gets an empty value instead of the next
// word. `words`: the command, then its arguments.
void prepare_words(const CLI::App& command, std::vector<std::string>& words);

// Ids separated by white space or one comma each. Errors name `what`, the item and what was found: an empty item, no
// number, an id of n_vocab or more.
Result<std::vector<int32_t>> parse_ids(std::string_view text, int64_t n_vocab, const std::string& what);

}  // namespace minfer::cli
