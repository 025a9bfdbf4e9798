// See pre_steps.h.
#include "tokenizer/pre_steps.h"

#include "base/error.h"

namespace minfer {
namespace {

bool begins_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// Appends `piece` as a Metaspace step spells it and cuts it before each mark.
void rewrite_spaces(const PreStep& step, std::string_view piece, bool first, std::string& out,
                    std::vector<Piece>& pieces) {
  const size_t begin = out.size();
  const bool prefix = step.prefix == PreStep::Prefix::kAlways || (step.prefix == PreStep::Prefix::kFirst && first);
  if (prefix && !begins_with(piece, " ") && !begins_with(piece, step.mark)) out += step.mark;
  for (const char c : piece) {
    if (c == ' ')
      out += step.mark;
    else
      out += c;
  }
  size_t last = begin;
  if (step.cut) {
    for (size_t at = out.find(step.mark, begin + 1); at != std::string::npos; at = out.find(step.mark, at + 1)) {
      pieces.push_back({static_cast<uint32_t>(last), static_cast<uint32_t>(at)});
      last = at;
    }
  }
  pieces.push_back({static_cast<uint32_t>(last), static_cast<uint32_t>(out.size())});
}

Status rewrite(const PreStep& step, std::string_view text, bool at_start, std::vector<Piece>& pieces,
               std::vector<Piece>& scratch, std::string& out) {
  scratch.swap(pieces);
  pieces.clear();
  out.clear();
  for (const Piece p : scratch) {
    const std::string_view piece = text.substr(p.begin, p.end - p.begin);
    if (piece.empty()) continue;
    // Room for the longest that it can become.
    if (out.size() + (piece.size() + 1) * (step.mark.size() + 1) >= uint64_t{1} << 32) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[tokenizer] text: more than 4 GiB with its spaces written as '{}'", step.mark);
    }
    if (step.kind == PreStep::Kind::kMetaspace) {
      rewrite_spaces(step, piece, at_start && p.begin == 0, out, pieces);
      continue;
    }
    const size_t begin = out.size();
    if (!begins_with(piece, " ")) out += ' ';
    out += piece;
    pieces.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(out.size())});
  }
  return {};
}

}  // namespace

Result<std::string_view> cut_text(const std::vector<PreStep>& steps, std::string_view text, bool at_start,
                                  Scratch& scratch) {
  auto& pieces = scratch.pieces;
  pieces.assign(1, {0, static_cast<uint32_t>(text.size())});
  std::string rewritten;
  for (const PreStep& step : steps) {
    if (step.kind == PreStep::Kind::kSplit) {
      MINFER_TRY(pretokenize(step.split, text, pieces, scratch.swap));
      continue;
    }
    MINFER_TRY(rewrite(step, text, at_start, pieces, scratch.swap, rewritten));
    scratch.text.swap(rewritten);
    text = scratch.text;
  }
  return text;
}

}  // namespace minfer
