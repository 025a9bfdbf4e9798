// ChatSession: a conversation on an Engine: its ids, turn by turn, and what happens when they no longer fit the
// context. K and V are the engine's prefix cache: a session costs nothing while it is silent, and a copy is a branch
// that shares all that both have. save() writes ids, turns and the K and V that are in the cache; load() on another
// engine with the same model and numerics goes on without computing them again. Threads: one at a time per session;
// many sessions on one engine at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "minfer/engine.h"

namespace minfer {

enum class Overflow : uint8_t {
  kError,                // refuse what does not fit
  kTruncateOldestTurns,  // leave whole turns out, the oldest first
  kShift,                // leave the oldest ids out, as many as it takes, wherever a turn ends
};

struct SessionOptions {
  Overflow overflow = Overflow::kError;
  // Positions that are free for an answer of unknown length (max_tokens -1) at least; 0: 256, or a quarter of the
  // context where that is less.
  int32_t room = 0;
};

class ChatSession {
 public:
  // `system`: ids that stand before all turns and are never left out. The engine outlives the session.
  ChatSession(Engine& engine, std::vector<int32_t> system, SessionOptions options = {});
  ChatSession(const ChatSession&) = default;  // a branch

  struct Reply {
    Response response;
    int32_t ids_dropped = 0;  // left out of the context before this turn, for good
  };
  // One turn: `request` as for Engine::submit(), its prompt being only what is new (n must be 1). Waits for the end;
  // request.on_event streams. After it the turn, prompt and answer, is part of the session; after an error nothing is.
  // Errors: those of submit(); kOutOfRange when it does not fit and the policy allows no more.
  Result<Reply> reply(Request request);

  // Keeps the first n_turns turns and forgets the others. Requires: 0 <= n_turns <= n_turns().
  void cut(int32_t n_turns);
  void undo() { cut(n_turns() > 0 ? n_turns() - 1 : 0); }  // forgets the last turn, if there is one
  // For conversations that are rendered anew for each turn, by templates that may write earlier turns differently
  // later on: keeps what the session and `ids`, all of the conversation to come, begin with, but for the last of `ids`,
  // and returns how many ids that is; the next reply()'s prompt is the rest of `ids`. Turns that begin past it are
  // forgotten, and system ids past it are no longer system ids.
  int32_t keep_prefix_of(std::span<const int32_t> ids);

  int32_t n_turns() const { return static_cast<int32_t>(turns_.size()); }
  // Prompt and answer of one turn. Requires: 0 <= turn < n_turns().
  std::span<const int32_t> turn(int32_t turn) const;
  const std::vector<int32_t>& ids() const { return ids_; }  // system and turns, as the model sees them next

  // Writes the session with the K and V that the cache holds of it. The file appears whole or not at all.
  // Errors: the file; kUnsupported for a model that is in no file.
  Status save(const std::string& path) const;
  // Replaces ids and turns by those of a file, and gives the engine its K and V as far as there is room. Nothing has
  // changed after an error. Errors: no such file; kCorrupt, damaged or no session; kUnsupported, of another model,
  // other numerics or other cache types.
  Status load(const std::string& path);

 private:
  Status fit(size_t n_new, int64_t n_answer, int32_t* dropped, std::vector<int32_t>* ids,
             std::vector<int32_t>* turns) const;
  Engine* engine_;
  SessionOptions options_;
  std::vector<int32_t> ids_;
  int32_t n_system_ = 0;
  std::vector<int32_t> turns_;  // where each turn begins in ids_
};

}  // namespace minfer
