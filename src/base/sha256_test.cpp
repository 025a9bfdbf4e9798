#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace minfer {
namespace {

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

// FIPS 180-4, the examples of its appendix.
TEST(Sha256, PublishedVectors) {
  Sha256 h;
  EXPECT_EQ(to_hex(h.finish()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(h.update(bytes_of("abc")).finish()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (int i = 0; i < 1000; ++i) h.update(bytes_of(std::string(1000, 'a')));
  EXPECT_EQ(to_hex(h.finish()), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace minfer
