// Opening of GGUF files: mapping, parsing, gathering of split parts.
#include "gguf/reader.h"

#include <cstring>
#include <optional>

#include "base/mmap.h"
#include "gguf/parse.h"
#include "tensor/buffer.h"

namespace minfer::gguf {
namespace {

constexpr std::string_view kSplitNo = "split.no";
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";

std::string split_suffix(uint32_t part, uint32_t count) { return fmt::format("-{:05}-of-{:05}.gguf", part + 1, count); }

}  // namespace

struct File::Part {
  std::string path;
  MappedFile map;                    // a file on disk, or
  Buffer owned;                      // a copy in memory, or neither: bytes of the caller
  std::span<const std::byte> bytes;  // stays valid when the Part moves
  Parsed parsed;                     // its tensors move into File::tensors_
};

File::File() = default;
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

std::string split_path(std::string_view prefix, uint32_t part, uint32_t count) {
  return std::string(prefix) + split_suffix(part, count);
}

std::string_view split_prefix(std::string_view path, uint32_t part, uint32_t count) {
  const std::string suffix = split_suffix(part, count);
  if (path.size() <= suffix.size() || !path.ends_with(suffix)) return {};
  return path.substr(0, path.size() - suffix.size());
}

Result<File::Part> File::read_part(Part part, int index) {
  part.parsed = MINFER_TRY(parse(part.bytes, part.path, index));
  return part;
}

// Takes in a parsed part: its tensors join the list, under names not yet taken.
Status File::adopt(Part part) {
  for (size_t i = 0; i < part.parsed.tensors.size(); ++i) {
    TensorInfo& t = part.parsed.tensors[i];
    const auto [it, fresh] = index_.emplace(part.parsed.names[i], tensors_.size());
    if (!fresh) {
      const auto other = static_cast<size_t>(tensors_[it->second].part);
      return make_error(ErrorCode::kCorrupt, "[gguf] {}: tensor {} appears twice{}", part.path, printable(t.name),
                        other == parts_.size() ? std::string() : fmt::format(", also in {}", parts_[other].path));
    }
    tensors_.push_back(std::move(t));
  }
  part.parsed.tensors = {};
  part.parsed.names = {};
  parts_.push_back(std::move(part));
  return {};
}

Result<File> File::open(const std::string& path) {
  const auto map_part = [](const std::string& p) -> Result<Part> {
    Part part;
    part.path = p;
    part.map = MINFER_TRY(MappedFile::open(p));
    part.bytes = part.map.bytes();
    return part;
  };
  File file;
  MINFER_TRY(file.adopt(MINFER_TRY(read_part(MINFER_TRY(map_part(path)), 0))));

  const uint32_t count = MINFER_TRY(file.split_count());
  if (count == 1) return file;
  const uint32_t no = MINFER_TRY(file.metadata().get<uint16_t>(kSplitNo));
  if (no >= count) {
    return make_error(ErrorCode::kCorrupt, "[gguf] {}: key 'split.no': found {}, expected less than split.count ({})",
                      path, no, count);
  }
  const std::string prefix(split_prefix(path, no, count));
  if (prefix.empty()) {
    return make_error(ErrorCode::kCorrupt,
                      "[gguf] {}: part {} of {} of a split model, expected a name that ends in '{}' so that the other "
                      "parts can be found",
                      path, no + 1, count, split_suffix(no, count));
  }
  if (no != 0) {
    return make_error(ErrorCode::kInvalidArgument, "[gguf] {}: part {} of {} of a split model, expected the first: {}",
                      path, no + 1, count, split_path(prefix, 0, count));
  }
  for (uint32_t i = 1; i < count; ++i) {
    const std::string what = fmt::format("[gguf] {}: part {} of {}", path, i + 1, count);
    Part part = MINFER_TRY_CTX(map_part(split_path(prefix, i, count)), what);
    part = MINFER_TRY(read_part(std::move(part), static_cast<int>(i)));
    const uint32_t part_no = MINFER_TRY(part.parsed.metadata.get<uint16_t>(kSplitNo));
    const uint32_t part_count = MINFER_TRY(part.parsed.metadata.get<uint16_t>(kSplitCount));
    if (part_no != i || part_count != count) {
      return make_error(ErrorCode::kCorrupt,
                        "[gguf] {}: found split.no {} and split.count {}, expected {} and {} as its name says",
                        part.path, part_no, part_count, i, count);
    }
    MINFER_TRY(file.adopt(std::move(part)));
  }
  const uint64_t n_tensors = file.tensors_.size();
  const uint64_t expected = MINFER_TRY(file.metadata().get_or<uint64_t>(kSplitTensors, n_tensors));
  if (n_tensors != expected) {
    return make_error(ErrorCode::kCorrupt, "[gguf] {}: the {} parts hold {} tensors, expected {} (split.tensors.count)",
                      path, count, n_tensors, expected);
  }
  return file;
}

Result<uint32_t> File::split_count() const {
  const uint32_t count = MINFER_TRY(metadata().get_or<uint16_t>(kSplitCount, 1));
  if (count != 0) return count;
  return make_error(ErrorCode::kCorrupt, "[gguf] {}: key 'split.count': found 0, expected at least 1", path());
}

Result<File> File::open_memory(std::span<const std::byte> bytes, std::string name) {
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % kAlignmentDefault == 0;
  return open_bytes(bytes, std::move(name), !aligned);
}

Result<File> File::from_bytes(const std::vector<std::byte>& bytes, std::string name) {
  return open_bytes(bytes, std::move(name), true);
}

Result<File> File::open_bytes(std::span<const std::byte> bytes, std::string name, bool copy) {
  Part part;
  part.path = std::move(name);
  part.bytes = bytes;
  if (copy && !bytes.empty()) {
    part.owned = MINFER_TRY(Buffer::allocate(bytes.size()));
    std::memcpy(part.owned.data(), bytes.data(), bytes.size());
    part.bytes = {part.owned.data(), bytes.size()};
  }
  File file;
  MINFER_TRY(file.adopt(MINFER_TRY(read_part(std::move(part), 0))));
  const uint32_t count = MINFER_TRY(file.split_count());
  if (count == 1) return file;
  return make_error(ErrorCode::kUnsupported,
                    "[gguf] {}: one of {} parts of a split model, which must be opened by path", file.path(), count);
}

const std::string& File::path() const { return parts_.front().path; }
size_t File::n_parts() const { return parts_.size(); }
const std::string& File::part_path(size_t part) const { return parts_[part].path; }
uint32_t File::version() const { return parts_.front().parsed.version; }
uint64_t File::alignment() const { return parts_.front().parsed.alignment; }
const Metadata& File::metadata() const { return parts_.front().parsed.metadata; }
const std::vector<TensorInfo>& File::tensors() const { return tensors_; }

uint64_t File::total_bytes() const {
  uint64_t n = 0;
  for (const Part& p : parts_) n += p.bytes.size();
  return n;
}

const TensorInfo* File::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

Result<const TensorInfo*> File::require(std::string_view name) const {
  const TensorInfo* t = find(name);
  if (t != nullptr) return t;
  return make_error(ErrorCode::kNotFound, "[gguf] {}: tensor {} is missing", path(), printable(name));
}

const std::byte* File::data(const TensorInfo& t) const {
  return parts_[static_cast<size_t>(t.part)].bytes.data() + t.offset;
}

void File::will_need(const TensorInfo& t) const {
  if (parts_[static_cast<size_t>(t.part)].map.data() != nullptr) advise_will_need(bytes(t));
}

void File::drop_pages(const TensorInfo& t) const {
  if (parts_[static_cast<size_t>(t.part)].map.data() != nullptr) advise_drop(bytes(t));
}

}  // namespace minfer::gguf
