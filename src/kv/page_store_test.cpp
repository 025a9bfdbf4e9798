// Pages in files: what is kept, what is refused.
#include "kv/page_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace minfer {
namespace {
namespace fs = std::filesystem;

class PageStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("minfer_page_store_" + std::to_string(std::random_device()()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  PageStoreOptions options(const std::string& identity = "model a, numerics 1") const {
    return {dir_.string(), identity, 4, 1000, 1 << 20};
  }
  static std::vector<std::byte> payload(int salt) {
    std::vector<std::byte> p(1000);
    for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(salt));
    return p;
  }
  std::vector<fs::path> page_files() const {
    std::vector<fs::path> files;
    for (const auto& e : fs::recursive_directory_iterator(dir_)) {
      if (e.path().extension() == ".kv") files.push_back(e.path());
    }
    return files;
  }
  // One page into `out`. False: it is not there.
  static Result<bool> load(PageStore& s, const PageStore::Key& before, const std::vector<int32_t>& ids,
                           std::vector<std::byte>& out) {
    const auto pool = ThreadPool::create(2);
    const auto loaded = s.load(before, ids, **pool, [&](int32_t i, std::span<const std::byte> payload) {
      EXPECT_EQ(i, 0);
      out.assign(payload.begin(), payload.end());
    });
    if (loaded.n_damaged > 0) return make_error(ErrorCode::kCorrupt, "damaged");
    return loaded.n == 1;
  }
  fs::path dir_;
};

const std::vector<int32_t> kIds = {1, 2, 3, 4}, kMore = {5, 6, 7, 8};

TEST_F(PageStoreTest, WhatIsSavedIsThereAfterARestart) {
  std::vector<std::byte> out(1000);
  {
    auto s = PageStore::open(options());
    ASSERT_TRUE(s.ok()) << s.error().message;
    ASSERT_TRUE(s->save(s->root(), kIds, payload(1)).ok());
    ASSERT_TRUE(s->save(s->key_of(s->root(), kIds), kMore, payload(2)).ok());
    ASSERT_TRUE(s->save(s->root(), kIds, payload(1)).ok());  // once is enough
    EXPECT_EQ(s->n_pages(), 2);
  }
  auto s = PageStore::open(options());
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->n_pages(), 2);
  EXPECT_TRUE(*load(*s, s->root(), kIds, out));
  EXPECT_EQ(out, payload(1));
  EXPECT_TRUE(*load(*s, s->key_of(s->root(), kIds), kMore, out));
  EXPECT_EQ(out, payload(2));
  EXPECT_FALSE(*load(*s, s->root(), kMore, out));  // the same ids after others are another page
  auto other = PageStore::open(options("model a, numerics 2"));
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->n_pages(), 0);
  EXPECT_FALSE(*load(*other, other->root(), kIds, out));
}

TEST_F(PageStoreTest, ADamagedPageIsRefusedAndGone) {
  std::vector<std::byte> out(1000);
  std::string whole;
  {
    auto s = PageStore::open(options());
    ASSERT_TRUE(s->save(s->root(), kIds, payload(1)).ok());
    std::ifstream f(page_files().at(0), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(f), {});
  }
  const fs::path file = page_files().at(0);
  std::vector<std::string> damaged = {"", whole.substr(0, 20), whole.substr(0, whole.size() - 1), whole + "x"};
  for (size_t at = 0; at < whole.size(); at += at < 200 ? 1 : 37) {  // every byte of the head
    std::string d = whole;
    d[at] = static_cast<char>(d[at] ^ 0x10);
    damaged.push_back(d);
  }
  for (const std::string& d : damaged) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << d;
    auto s = PageStore::open(options());
    ASSERT_TRUE(s.ok());
    const auto loaded = load(*s, s->root(), kIds, out);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt) << loaded.error().message;
    EXPECT_EQ(s->n_pages(), 0);
    EXPECT_FALSE(fs::exists(file));
  }
  // A page under another's name.
  std::ofstream(file.parent_path() / (std::string(64, '0') + ".kv"), std::ios::binary) << whole;
  auto s = PageStore::open(options());
  EXPECT_EQ(s->n_pages(), 1);
  EXPECT_FALSE(*load(*s, s->root(), kIds, out));
}

TEST_F(PageStoreTest, EveryDamagedPageOfAPrefixGoesAtOnce) {
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  auto s = PageStore::open(options());
  PageStore::Key before = s->root();
  for (int32_t i = 0; i < 4; ++i) {
    const auto page = std::span(ids).subspan(static_cast<size_t>(i) * 4, 4);
    ASSERT_TRUE(s->save(before, page, payload(i)).ok());
    before = s->key_of(before, page);
    if (i == 1 || i == 3) {  // the second and the last
      std::fstream f(s->folder() + "/" + to_hex(before) + ".kv", std::ios::in | std::ios::out | std::ios::binary);
      f.seekp(500);
      f.put('!');
    }
  }
  const auto pool = ThreadPool::create(2);
  const auto loaded = s->load(s->root(), ids, **pool, [](int32_t, std::span<const std::byte>) {});
  EXPECT_EQ(loaded.n, 1);
  EXPECT_EQ(loaded.n_damaged, 2);
  EXPECT_EQ(s->n_pages(), 2);
  EXPECT_EQ(page_files().size(), 2u);
}

TEST_F(PageStoreTest, TheLeastRecentlyUsedGoesWhenItIsFull) {
  PageStoreOptions o = options();
  std::vector<std::byte> out(1000);
  o.max_bytes = 2500;  // two pages
  auto s = PageStore::open(o);
  ASSERT_TRUE(s->save(s->root(), {{1, 1, 1, 1}}, payload(1)).ok());
  ASSERT_TRUE(s->save(s->root(), {{2, 2, 2, 2}}, payload(2)).ok());
  ASSERT_TRUE(*load(*s, s->root(), {{1, 1, 1, 1}}, out));
  ASSERT_TRUE(s->save(s->root(), {{3, 3, 3, 3}}, payload(3)).ok());
  EXPECT_EQ(s->n_pages(), 2);
  EXPECT_LE(s->bytes(), 2500);
  EXPECT_EQ(page_files().size(), 2u);
  EXPECT_FALSE(*load(*s, s->root(), {{2, 2, 2, 2}}, out));
  EXPECT_TRUE(*load(*s, s->root(), {{1, 1, 1, 1}}, out));
  o.max_bytes = 100;
  auto tiny = PageStore::open(o);
  EXPECT_TRUE(tiny->save(tiny->root(), {{4, 4, 4, 4}}, payload(4)).ok());
  EXPECT_FALSE(tiny->has(tiny->key_of(tiny->root(), {{4, 4, 4, 4}})));
}

TEST_F(PageStoreTest, FoldersThatDoNotWork) {
  std::ofstream(dir_ / "file") << "x";
  PageStoreOptions o = options();
  o.dir = (dir_ / "file").string();
  EXPECT_FALSE(PageStore::open(o).ok());
  auto s = PageStore::open(options());
  ASSERT_TRUE(s.ok());
  // What the folder says of itself is written anew when it is damaged.
  std::ofstream(s->folder() + "/identity.txt", std::ios::trunc) << "something else";
  ASSERT_TRUE(PageStore::open(options()).ok());
  std::ifstream about(s->folder() + "/identity.txt");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(about), {}), options().identity);
  // A file that vanishes is not there; what is no page is left alone.
  std::ofstream(s->folder() + "/notes.txt") << "x";
  ASSERT_TRUE(s->save(s->root(), kIds, payload(1)).ok());
  fs::remove(page_files().at(0));
  std::vector<std::byte> out(1000);
  EXPECT_FALSE(*load(*s, s->root(), kIds, out));
}

}  // namespace
}  // namespace minfer
