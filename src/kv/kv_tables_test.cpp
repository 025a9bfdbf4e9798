// KvTables against a naive model: sequences of ids whose rows are remembered page by page in plain memory. Whatever is
// opened, forked, shared, cut and evicted, each sequence must read back the rows it stored.
#include "kv/kv_tables.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace minfer {
namespace {

constexpr int32_t kPageSize = 4;

// Pages of plain memory: a row holds a number that stands for the ids up to it, as K and V do.
class Store {
 public:
  explicit Store(int32_t n_pages, int32_t n_seqs)
      : rows_(static_cast<size_t>(n_pages * kPageSize), -1),
        tables({n_pages, kPageSize, n_seqs, [this](int32_t from, int32_t to) {
                  for (int32_t i = 0; i < kPageSize; ++i) row(to * kPageSize + i) = row(from * kPageSize + i);
                }}) {}
  int64_t& row(int32_t slot) { return rows_[static_cast<size_t>(slot)]; }
  int64_t& row(int32_t seq, int32_t position) {
    return row(tables.pages(seq)[static_cast<size_t>(position / kPageSize)] * kPageSize + position % kPageSize);
  }

 private:
  std::vector<int64_t> rows_;

 public:
  KvTables tables;
};

int64_t row_of(std::span<const int32_t> ids, size_t position) {
  uint64_t h = 7;
  for (size_t i = 0; i <= position; ++i) h = h * 1000003 + static_cast<uint64_t>(ids[i]) + 1;
  return static_cast<int64_t>(h >> 1);
}

// Stores rows length..n-1 of `ids`.
Status feed(Store& s, int32_t seq, std::span<const int32_t> ids, int32_t n) {
  MINFER_TRY(s.tables.reserve(seq, n));
  for (int32_t p = s.tables.length(seq); p < n; ++p) s.row(seq, p) = row_of(ids, static_cast<size_t>(p));
  s.tables.set_length(seq, n);
  return {};
}

void expect_rows(Store& s, int32_t seq, std::span<const int32_t> ids) {
  for (int32_t p = 0; p < s.tables.length(seq); ++p)
    ASSERT_EQ(s.row(seq, p), row_of(ids, static_cast<size_t>(p))) << "sequence " << seq << ", position " << p;
}

std::vector<int32_t> count_up(int32_t n, int32_t from = 0) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back(from + i);
  return ids;
}

TEST(KvTables, APrefixIsSharedInWholePages) {
  Store s(16, 3);
  const auto ids = count_up(11);
  const int32_t a = *s.tables.open();
  ASSERT_TRUE(feed(s, a, ids, 11).ok());
  s.tables.remember(a, ids);
  EXPECT_EQ(s.tables.pages_cached(), 2);
  const int32_t b = *s.tables.open();
  EXPECT_EQ(s.tables.match(ids, 11), 8);
  EXPECT_EQ(s.tables.match(ids, 7), 4);
  EXPECT_EQ(s.tables.match(ids, 3), 0);
  EXPECT_EQ(s.tables.attach(b, ids, 10), 8);
  EXPECT_EQ(s.tables.pages(b)[0], s.tables.pages(a)[0]);
  EXPECT_EQ(s.tables.pages_free(), 16 - 3);
  // Another continuation does not disturb the first.
  auto other = ids;
  other[9] = 99;
  ASSERT_TRUE(feed(s, b, other, 11).ok());
  expect_rows(s, a, ids);
  expect_rows(s, b, other);
  s.tables.close(a);
  expect_rows(s, b, other);
  s.tables.close(b);
  EXPECT_EQ(s.tables.pages_free(), 14);  // the prefix stays
  EXPECT_EQ(s.tables.pages_available(), 16);
  s.tables.forget_prefixes();
  EXPECT_EQ(s.tables.pages_free(), 16);
  EXPECT_TRUE(s.tables.check_integrity().ok());
}

TEST(KvTables, ATailGoesToTheOneThatGoesOn) {
  Store s(6, 3);
  const int32_t a = *s.tables.open();
  const auto ids = count_up(11);
  ASSERT_TRUE(feed(s, a, ids, 10).ok());
  s.tables.remember(a, ids);
  s.tables.remember_tail(a, ids);
  s.tables.close(a);
  EXPECT_EQ(s.tables.pages_cached(), 3);
  EXPECT_EQ(s.tables.pages_available(), 6);
  EXPECT_TRUE(s.tables.check_integrity().ok());
  EXPECT_EQ(s.tables.match(ids, 11), 8);
  // Other ids, or too few: only whole pages.
  auto other = ids;
  other[9] = 77;
  const int32_t b = *s.tables.open(), c = *s.tables.open();
  EXPECT_EQ(s.tables.attach(b, other, 11), 8);
  EXPECT_EQ(s.tables.attach_tail(b, other, 11), 8);
  EXPECT_EQ(s.tables.attach_tail(b, ids, 9), 8);
  EXPECT_EQ(s.tables.attach_tail(b, ids, 10), 10);
  expect_rows(s, b, ids);
  EXPECT_EQ(s.tables.attach(c, ids, 11), 8);
  EXPECT_EQ(s.tables.attach_tail(c, ids, 11), 8);  // it is b's now
  EXPECT_TRUE(s.tables.check_integrity().ok());
  ASSERT_TRUE(feed(s, b, count_up(13), 13).ok());  // in the same page, without a copy
  EXPECT_EQ(s.tables.pages_free(), 2);
  expect_rows(s, b, count_up(13));
  // A fork owns the page too: then it is copied.
  s.tables.close(c);
  const int32_t d = *s.tables.fork(b);
  s.tables.remember(b, count_up(13));
  s.tables.remember_tail(b, count_up(13));
  s.tables.close(b);
  const int32_t e = *s.tables.open();
  s.tables.attach(e, count_up(14), 14);
  EXPECT_EQ(s.tables.attach_tail(e, count_up(14), 14), 13);
  ASSERT_TRUE(feed(s, e, count_up(14), 14).ok());
  ASSERT_TRUE(feed(s, d, count_up(13), 13).ok());
  expect_rows(s, d, count_up(13));
  expect_rows(s, e, count_up(14));
  EXPECT_TRUE(s.tables.check_integrity().ok());
  s.tables.close(d);
  s.tables.close(e);
  s.tables.forget_prefixes();
  EXPECT_EQ(s.tables.pages_free(), 6);
}

TEST(KvTables, EqualPagesBecomeOne) {
  Store s(16, 2);
  const auto ids = count_up(8);
  const int32_t a = *s.tables.open(), b = *s.tables.open();
  ASSERT_TRUE(feed(s, a, ids, 8).ok());
  ASSERT_TRUE(feed(s, b, ids, 8).ok());
  EXPECT_EQ(s.tables.pages_free(), 12);
  s.tables.remember(a, ids);
  s.tables.remember(b, ids);
  EXPECT_EQ(s.tables.pages_free(), 14);
  expect_rows(s, b, ids);
  EXPECT_TRUE(s.tables.check_integrity().ok());
}

TEST(KvTables, ASharedPageIsCopiedBeforeAWrite) {
  Store s(4, 2);
  const auto ids = count_up(6);
  const int32_t a = *s.tables.open();
  ASSERT_TRUE(feed(s, a, ids, 6).ok());
  s.tables.remember(a, ids);
  const int32_t b = *s.tables.fork(a);
  EXPECT_EQ(s.tables.pages_free(), 2);
  auto other = ids;
  other.push_back(50);
  ASSERT_TRUE(feed(s, b, other, 7).ok());
  EXPECT_EQ(s.tables.pages_free(), 1);
  auto mine = ids;
  mine.push_back(60);
  ASSERT_TRUE(feed(s, a, mine, 7).ok());  // its page is its own now
  EXPECT_EQ(s.tables.pages_free(), 1);
  expect_rows(s, a, mine);
  expect_rows(s, b, other);
  // Cut inside a page that the tree holds: the tree's page stays as it is.
  s.tables.truncate(a, 2);
  EXPECT_EQ(s.tables.pages_free(), 2);
  const std::vector<int32_t> cut = {0, 1, 70};
  ASSERT_TRUE(feed(s, a, cut, 3).ok());
  expect_rows(s, a, cut);
  expect_rows(s, b, other);
  EXPECT_TRUE(s.tables.check_integrity().ok()) << s.tables.check_integrity().error().message;
}

TEST(KvTables, TheLeastRecentlyUsedPrefixGoesFirst) {
  Store s(4, 2);
  const auto x = count_up(8), y = count_up(8, 100);
  for (const auto* ids : {&x, &y}) {
    const int32_t a = *s.tables.open();
    ASSERT_TRUE(feed(s, a, *ids, 8).ok());
    s.tables.remember(a, *ids);
    s.tables.close(a);
  }
  EXPECT_EQ(s.tables.pages_free(), 0);
  const int32_t a = *s.tables.open();
  EXPECT_EQ(s.tables.attach(a, x, 8), 8);  // used again: y is the older one
  s.tables.close(a);
  const int32_t b = *s.tables.open();
  ASSERT_TRUE(feed(s, b, count_up(5, 200), 5).ok());
  EXPECT_EQ(s.tables.match(x, 8), 8);
  EXPECT_EQ(s.tables.match(y, 8), 0);
  // What does not fit is refused and changes nothing of the sequence.
  const Status r = s.tables.reserve(b, 17);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(r.error().message.find("3 pages wanted for 17 positions"), std::string::npos) << r.error().message;
  EXPECT_EQ(s.tables.pages(b).size(), 2u);
  EXPECT_TRUE(s.tables.check_integrity().ok());
}

TEST(KvTables, PagesFromElsewhere) {
  Store s(3, 1);
  const auto ids = count_up(16);
  const auto first = [&](size_t n) { return std::span<const int32_t>(ids).first(n); };
  EXPECT_EQ(s.tables.adopt(first(8)), -1);  // the page before it is missing
  for (size_t n : {4, 8, 12}) {
    const int32_t page = s.tables.adopt(first(n));
    ASSERT_GE(page, 0);
    for (size_t i = 0; i < 4; ++i) s.row(page * kPageSize + static_cast<int32_t>(i)) = row_of(ids, n - 4 + i);
    EXPECT_EQ(s.tables.find(first(n)), page);
    EXPECT_EQ(s.tables.adopt(first(n)), -1);  // there already
  }
  EXPECT_EQ(s.tables.adopt(first(16)), -1);  // only its own path could go
  const int32_t a = *s.tables.open();
  EXPECT_EQ(s.tables.attach(a, ids, 16), 12);
  expect_rows(s, a, ids);
  EXPECT_TRUE(s.tables.check_integrity().ok());
  s.tables.close(a);
  EXPECT_EQ(s.tables.find(count_up(4, 1)), -1);
}

TEST(KvTables, SequencesAreCounted) {
  Store s(2, 1);
  ASSERT_TRUE(s.tables.open().ok());
  EXPECT_FALSE(s.tables.open().ok());
  EXPECT_FALSE(s.tables.fork(0).ok());
  s.tables.close(0);
  EXPECT_TRUE(s.tables.open().ok());
}

TEST(KvTables, RandomUseAgainstPlainSequences) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % static_cast<uint32_t>(n)); };
    const int32_t n_pages = 4 + below(20), n_seqs = 1 + below(5);
    Store s(n_pages, n_seqs);
    std::map<int32_t, std::vector<int32_t>> live;  // sequence -> its ids so far
    for (int step = 0; step < 400; ++step) {
      const int32_t what = below(10);
      auto it = live.begin();
      if (!live.empty()) std::advance(it, below(static_cast<int32_t>(live.size())));
      if (live.empty() || what == 0) {
        const auto seq = s.tables.open();
        ASSERT_EQ(seq.ok(), static_cast<int32_t>(live.size()) < n_seqs);
        if (!seq.ok()) continue;
        // Few different ids, so that prefixes meet.
        std::vector<int32_t> ids(static_cast<size_t>(below(24)));
        for (auto& id : ids) id = below(12) == 0 ? 1 : 0;
        int32_t n = s.tables.attach(*seq, ids, static_cast<int32_t>(ids.size()));
        if (below(3) > 0) n = s.tables.attach_tail(*seq, ids, static_cast<int32_t>(ids.size()));
        ids.resize(static_cast<size_t>(n));
        live[*seq] = ids;
      } else if (what == 1) {
        const auto seq = s.tables.fork(it->first);
        if (seq.ok()) live[*seq] = it->second;
      } else if (what == 2) {
        if (below(3) > 0) s.tables.remember_tail(it->first, it->second);
        s.tables.close(it->first);
        live.erase(it);
      } else if (what == 3) {
        const int32_t n = below(static_cast<int32_t>(it->second.size()) + 1);
        s.tables.truncate(it->first, n);
        it->second.resize(static_cast<size_t>(n));
      } else if (what <= 5) {
        s.tables.remember(it->first, it->second);
      } else {
        auto ids = it->second;
        for (int32_t n = 1 + below(7); n > 0; --n) ids.push_back(below(12) == 0 ? 1 : 0);
        const auto n = static_cast<int32_t>(ids.size());
        if (feed(s, it->first, ids, n).ok()) it->second = ids;
      }
      const Status sound = s.tables.check_integrity();
      ASSERT_TRUE(sound.ok()) << "seed " << seed << ", step " << step << ": " << sound.error().message;
      for (const auto& [seq, ids] : live) {
        ASSERT_EQ(s.tables.length(seq), static_cast<int32_t>(ids.size()));
        expect_rows(s, seq, ids);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    for (const auto& [seq, ids] : live) s.tables.close(seq);
    s.tables.forget_prefixes();
    ASSERT_EQ(s.tables.pages_free(), n_pages);
  }
}

}  // namespace
}  // namespace minfer
