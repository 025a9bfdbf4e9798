// ChatSession: turns, branches, what happens when the context is full, and the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "engine/testing/plain_decode.h"
#include "minfer/session.h"

namespace minfer {
namespace {

using testing::difference;
using testing::open_golden;
using testing::PlainDecoder;

std::unique_ptr<Engine> engine_of(const std::string& cache_type = "f32", const std::string& family = "llama") {
  EngineOptions o;
  o.n_threads = 1, o.ctx = 128, o.max_running = 2;
  o.cache_type_k = o.cache_type_v = cache_type;
  auto e = Engine::create(open_golden(family), o);
  if (!e.ok()) ADD_FAILURE() << e.error().message;
  return e.ok() ? std::move(e).value() : nullptr;
}

std::vector<int32_t> some_ids(int32_t n, int32_t salt) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back(3 + (i * 7 + salt * 13) % 50);
  return ids;
}

Request turn(int32_t n, int32_t salt, int32_t max_tokens = 8) {
  Request r;
  r.prompt = some_ids(n, salt);
  r.max_tokens = max_tokens;
  r.ignore_eos = true;
  r.sampling.seed = static_cast<uint64_t>(salt);
  return r;
}

Choice plain(Request r, std::vector<int32_t> before) {
  static const auto model = open_golden("llama");
  static PlainDecoder decoder(*model, DType::kF32, DType::kF32, 128);
  before.insert(before.end(), r.prompt.begin(), r.prompt.end());
  r.prompt = before;
  return decoder.answer(r).choices[0];
}

TEST(ChatSession, TurnsAndBranches) {
  const auto engine = engine_of();
  ChatSession s(*engine, some_ids(40, 1));
  std::vector<int32_t> before = s.ids();
  const auto first = s.reply(turn(10, 2));
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(difference(first->response.choices[0], plain(turn(10, 2), before)), "");
  EXPECT_EQ(s.ids().size(), 58u);
  EXPECT_EQ(s.n_turns(), 1);
  before = s.ids();
  ChatSession branch = s;
  const auto second = s.reply(turn(5, 3)), other = branch.reply(turn(6, 4));
  ASSERT_TRUE(second.ok() && other.ok());
  EXPECT_EQ(second->response.cached_tokens, 57);  // the last id drawn is computed now
  EXPECT_EQ(other->response.cached_tokens, 32);   // the rows after whole pages went to the first that came
  EXPECT_EQ(difference(second->response.choices[0], plain(turn(5, 3), before)), "");
  EXPECT_EQ(difference(other->response.choices[0], plain(turn(6, 4), before)), "");
  s.undo();
  EXPECT_EQ(s.ids(), before);
  Request bad = turn(5, 3);
  bad.prompt[0] = 999;
  EXPECT_FALSE(s.reply(bad).ok());
  EXPECT_EQ(s.ids(), before);
  bad = turn(5, 3);
  bad.n = 2;
  EXPECT_FALSE(s.reply(bad).ok());
  s.undo();
  s.undo();
  EXPECT_EQ(s.n_turns(), 0);
  EXPECT_EQ(s.ids(), some_ids(40, 1));
}

TEST(ChatSession, AFullContext) {
  const auto engine = engine_of();
  const auto talk = [&](Overflow overflow, int32_t* dropped) {
    ChatSession s(*engine, some_ids(10, 1), {.overflow = overflow});
    for (int32_t i = 0; i < 3; ++i) EXPECT_TRUE(s.reply(turn(22, i)).ok());  // 10 + 3 * 30 = 100
    const auto before = s.ids();
    const auto last = s.reply(turn(30, 7));  // 137 positions
    if (!last.ok()) {
      EXPECT_EQ(last.error().code, ErrorCode::kOutOfRange);
      EXPECT_THAT(last.error().message, ::testing::HasSubstr("100 ids of the conversation, 30 new ones and 8"));
      EXPECT_EQ(s.ids(), before);
      return s;
    }
    *dropped = last->ids_dropped;
    std::vector<int32_t> kept(before.begin(), before.begin() + 10);
    kept.insert(kept.end(), before.begin() + 10 + *dropped, before.end());
    EXPECT_EQ(difference(last->response.choices[0], plain(turn(30, 7), kept)), "");
    return s;
  };
  int32_t dropped = 0;
  EXPECT_EQ(talk(Overflow::kError, &dropped).n_turns(), 3);
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(talk(Overflow::kTruncateOldestTurns, &dropped).n_turns(), 3);
  EXPECT_EQ(dropped, 30);
  EXPECT_EQ(talk(Overflow::kShift, &dropped).n_turns(), 4);
  EXPECT_EQ(dropped, 9);
  for (Overflow overflow : {Overflow::kTruncateOldestTurns, Overflow::kShift}) {
    ChatSession s(*engine, some_ids(10, 1), {.overflow = overflow});
    EXPECT_TRUE(s.reply(turn(22, 1)).ok());
    EXPECT_FALSE(s.reply(turn(119, 2)).ok());  // not even alone
    EXPECT_EQ(s.ids().size(), 40u);
    EXPECT_TRUE(s.reply(turn(111, 2)).ok());
    EXPECT_EQ(s.ids().size(), 129u);  // the last id has no position yet
  }
}

TEST(ChatSession, IsCutBackToATurn) {
  const auto engine = engine_of();
  ChatSession s(*engine, some_ids(4, 1));
  std::vector<std::vector<int32_t>> whole = {s.ids()};
  for (int32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(s.reply(turn(5 + i, i)).ok());
    const auto last = s.turn(i);
    EXPECT_EQ(std::vector<int32_t>(last.begin(), last.end()),
              std::vector<int32_t>(s.ids().begin() + static_cast<std::ptrdiff_t>(whole.back().size()), s.ids().end()));
    whole.push_back(s.ids());
  }
  for (int32_t n = 3; n >= 0; --n) {
    s.cut(n);
    EXPECT_EQ(s.n_turns(), n);
    EXPECT_EQ(s.ids(), whole[static_cast<size_t>(n)]);
  }
  s.undo();
  EXPECT_EQ(s.ids(), whole[0]);
}

// A template that writes earlier turns differently: what both begin with stays, and the answer is that of all the ids.
TEST(ChatSession, ARenderingThatChangedIsReadFromWhereItDiffers) {
  const auto engine = engine_of();
  ChatSession s(*engine, {});
  for (int32_t i = 0; i < 2; ++i) ASSERT_TRUE(s.reply(turn(32, i)).ok());  // 80 ids
  const ChatSession before = s;
  std::vector<int32_t> ids = s.ids();
  ids.erase(ids.begin() + 66, ids.begin() + 70);
  Request next = turn(6, 3);
  ids.insert(ids.end(), next.prompt.begin(), next.prompt.end());
  const int32_t kept = s.keep_prefix_of(ids);
  EXPECT_GE(kept, 66);
  EXPECT_LT(kept, 70);
  EXPECT_EQ(s.n_turns(), 2);
  next.prompt.assign(ids.begin() + kept, ids.end());
  const auto got = s.reply(next);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(got->response.prompt_tokens, static_cast<int64_t>(ids.size()));
  EXPECT_EQ(got->response.cached_tokens, 64);
  next.prompt = ids;
  EXPECT_EQ(difference(got->response.choices[0], plain(next, {})), "");
  // The same ids again: all but the last are kept, so that there is something to answer.
  s = before;
  ids = before.ids();
  EXPECT_EQ(s.keep_prefix_of(ids), 79);
  EXPECT_EQ(s.keep_prefix_of(std::span(ids).first(40)), 39);
  EXPECT_EQ(s.n_turns(), 1);
  ids[0] += 1;
  EXPECT_EQ(s.keep_prefix_of(ids), 0);
  EXPECT_EQ(s.n_turns(), 0);
  EXPECT_EQ(s.keep_prefix_of({}), 0);
}

class ChatSessionFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("minfer_session_" + std::to_string(std::random_device()())))
                .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(ChatSessionFile, GoesOnInAnotherEngine) {
  std::vector<int32_t> ids;
  Response want;
  {
    const auto engine = engine_of();
    ChatSession s(*engine, some_ids(20, 1));
    ASSERT_TRUE(s.reply(turn(60, 2)).ok());
    ids = s.ids();
    const Status saved = s.save(path_);
    ASSERT_TRUE(saved.ok()) << saved.error().message;
    want = s.reply(turn(5, 3))->response;
  }
  const auto engine = engine_of();
  ChatSession s(*engine, {});
  const Status loaded = s.load(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(s.ids(), ids);
  EXPECT_EQ(s.n_turns(), 1);
  const auto got = s.reply(turn(5, 3));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->response.cached_tokens, 64);
  EXPECT_EQ(difference(got->response.choices[0], want.choices[0]), "");
  EXPECT_TRUE(engine->check_idle(true).ok());
  // Onto what is there already, and twice.
  EXPECT_TRUE(s.load(path_).ok());
  EXPECT_TRUE(s.load(path_).ok());
  EXPECT_TRUE(engine->check_idle().ok());
  for (const auto& [cache_type, family] : {std::pair("f16", "llama"), std::pair("f32", "qwen3")}) {
    const auto other = engine_of(cache_type, family);
    ChatSession t(*other, {});
    const Status refused = t.load(path_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported) << refused.error().message;
  }
}

TEST_F(ChatSessionFile, DamageIsRefused) {
  const auto engine = engine_of();
  ChatSession s(*engine, some_ids(20, 1));
  ASSERT_TRUE(s.reply(turn(20, 2)).ok());
  ASSERT_TRUE(s.save(path_).ok());
  std::ifstream f(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(f)), {});
  std::vector<std::string> damaged = {"x", whole.substr(0, 7), whole.substr(0, 100), whole.substr(0, whole.size() - 1),
                                      whole + "x"};
  for (size_t at = 0; at < whole.size(); at += at < 600 ? 7 : 997) {
    std::string d = whole;
    d[at] = static_cast<char>(d[at] ^ 1);
    damaged.push_back(d);
  }
  const auto ids = s.ids();
  for (const std::string& d : damaged) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << d;
    const Status refused = s.load(path_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt) << refused.error().message;
    EXPECT_EQ(s.ids(), ids);
  }
  std::filesystem::remove(path_);
  EXPECT_FALSE(s.load(path_).ok());
  EXPECT_FALSE(s.save("/no/such/folder/session").ok());
  EXPECT_FALSE(s.save("").ok());
}

TEST(ChatSession, RoomForAnAnswerOfUnknownLength) {
  const auto engine = engine_of();  // a context of 128
  ChatSession usual(*engine, some_ids(3, 1));
  EXPECT_TRUE(usual.reply(turn(10, 2, -1)).ok());
  ChatSession odd(*engine, {}, {.room = -1});
  EXPECT_FALSE(odd.reply(turn(10, 2, -1)).ok());
}

}  // namespace
}  // namespace minfer
