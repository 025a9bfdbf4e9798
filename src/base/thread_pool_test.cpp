// The pool's hand-off, barriers, shares and errors.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace minfer {
namespace {

TEST(ThreadPool, EveryWorkerRunsAndBarriersOrderPhases) {
  for (int n : {1, 2, 3, 5}) {
    auto pool = ThreadPool::create(n);
    ASSERT_TRUE(pool.ok());
    std::vector<int> a(static_cast<size_t>(n)), b(static_cast<size_t>(n));
    for (int round = 1; round <= 200; ++round) {
      auto status = (*pool)->run([&](Worker& w) {
        a[static_cast<size_t>(w.index())] = round;
        w.barrier();
        int sum = 0;
        for (int x : a) sum += x;
        b[static_cast<size_t>(w.index())] = sum;
      });
      ASSERT_TRUE(status.ok());
      for (int x : b) ASSERT_EQ(x, round * n);
    }
  }
}

TEST(ThreadPool, SharesCoverEverythingOnce) {
  auto pool = ThreadPool::create(3);
  ASSERT_TRUE(pool.ok());
  for (int64_t n : {0, 1, 2, 15, 16, 17, 100}) {
    for (int64_t grain : {1, 16}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      ASSERT_TRUE((*pool)
                      ->run([&](Worker& w) {
                        const auto r = w.share(n, grain);
                        EXPECT_TRUE(r.begin % grain == 0 || r.begin == n);
                        for (int64_t i = r.begin; i < r.end; ++i) hits[static_cast<size_t>(i)]++;
                      })
                      .ok());
      for (auto& h : hits) EXPECT_EQ(h.load(), 1);
    }
  }
}

TEST(ThreadPool, FirstErrorIsReturnedAndTheNextRunIsClean) {
  auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.ok());
  auto status = (*pool)->run([&](Worker& w) {
    if (w.index() == 1) w.fail(make_error(ErrorCode::kOutOfRange, "slot {}", 7));
    w.barrier();
    EXPECT_TRUE(w.failed());
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "slot 7");
  EXPECT_TRUE((*pool)->run([](Worker&) {}).ok());
}

TEST(ThreadPool, AbsurdCountsAreRefused) {
  for (int n : {0, -1, 100000}) {
    auto pool = ThreadPool::create(n);
    ASSERT_FALSE(pool.ok());
    EXPECT_NE(pool.error().message.find("usable cores"), std::string::npos);
  }
}

}  // namespace
}  // namespace minfer
