// strftime_now: with the C locale's names, whatever locale the process has set.
// Source: Python 3, datetime.strftime.
#include <clocale>
#include <ctime>

#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"

namespace minfer::chat::jinja {

Value strftime_value(Interp& in, const Value& format) {
  refuse_undefined(format);
  if (!format.is_string()) raise_error("strftime() argument 1 must be str, not {}", type_name(format));
  const Text& text = format.as_text();
  const std::string_view f = text.view();
  Text out;
  for (size_t at = 0; at < f.size();) {
    in.step();
    const size_t percent = std::min(f.find('%', at), f.size());
    out.append_slice(text, at, percent - at);
    if (percent == f.size()) break;
    // One directive: % [flag] [E or O] letter. Others stay as they are, as the C library leaves them.
    size_t end = percent + 1;
    if (end < f.size() && std::string_view("-_0^#").find(f[end]) != f.npos) ++end;
    if (end < f.size() && (f[end] == 'E' || f[end] == 'O')) ++end;
    const char letter = end < f.size() ? f[end] : '\0';
    const std::string directive(f.substr(percent, end + 1 - percent));
    at = std::min(end + 1, f.size());
    if (letter == 'f') {
      out.append("000000", true);
    } else if (letter == 'z' || letter == 'Z') {
      // a time without zone prints none
    } else if (std::string_view("aAbBcCdDeFgGhHIjklmMnprRsStTuUVwWxXyY%").find(letter) != std::string_view::npos) {
      char buffer[128];  // the longest, %c, takes 24 bytes in the C locale
      const std::tm& now = in.now();
      static const locale_t kCLocale = newlocale(LC_ALL_MASK, "C", nullptr);
      const size_t n = strftime_l(buffer, sizeof buffer, directive.c_str(), &now, kCLocale);
      out.append(std::string_view(buffer, n), true);
    } else {
      out.append_slice(text, percent, at - percent);
    }
  }
  return in.text(std::move(out));
}

}  // namespace minfer::chat::jinja
