// The GGUF parser: a cursor that cannot leave its bytes, and the grammar over it.
#include "gguf/parse.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/checked.h"

namespace minfer::gguf {
namespace {

// The least that one of them takes in a file; a count above (bytes left / this) is a lie.
constexpr uint64_t kEntryBytesMin = 8 + 1 + 4 + 1;           // key length, one letter, value type, a one-byte value
constexpr uint64_t kTensorBytesMin = 8 + 1 + 4 + 8 + 4 + 8;  // name length, one letter, n_dims, a dim, type, offset
constexpr uint64_t kStringBytesMin = 8;                      // its length
constexpr uint64_t kArrayBytesMin = 4 + 8;                   // element type and count

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  uint64_t position() const { return pos_; }
  uint64_t left() const { return bytes_.size() - pos_; }

  // What the following reads belong to, for errors: ("key ", "general.name").
  void set_subject(std::string_view kind, std::string_view name) { kind_ = kind, name_ = name; }
  void clear_subject() { set_subject({}, {}); }

  template <typename... Args>
  Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    std::string where = fmt::format("[gguf] {}: ", source_);
    if (!kind_.empty()) where += fmt::format("{} {}: ", kind_, printable(name_));
    return Error{code, where + fmt::format(format, std::forward<Args>(args)...)};
  }
  template <typename... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kCorrupt, format, std::forward<Args>(args)...);
  }

  // Fails unless n more bytes are there.
  Status need(uint64_t n, std::string_view what) const {
    if (n <= left()) return {};
    return corrupt("{} at byte {} takes {} bytes, but only {} are left in the file", what, pos_, n, left());
  }

  template <typename T>
  Result<T> read(std::string_view what) {
    MINFER_TRY(need(sizeof(T), what));
    T v;
    std::memcpy(&v, bytes_.data() + pos_, sizeof v);
    pos_ += sizeof v;
    return v;
  }

  Result<std::span<const std::byte>> take(uint64_t n, std::string_view what) {
    MINFER_TRY(need(n, what));
    const auto out = bytes_.subspan(pos_, n);
    pos_ += n;
    return out;
  }

  // A length and that many bytes, at most `bytes_max`.
  Result<std::string_view> read_string(std::string_view what, uint64_t bytes_max) {
    const uint64_t n = MINFER_TRY(read<uint64_t>(what));
    if (n > bytes_max) return corrupt("{} has {} bytes, expected at most {}", what, n, bytes_max);
    const auto s = MINFER_TRY(take(n, what));
    return std::string_view(reinterpret_cast<const char*>(s.data()), s.size());
  }

  // A count of things that take at least `bytes_min` each.
  Result<uint64_t> read_count(std::string_view what, uint64_t bytes_min) {
    const uint64_t n = MINFER_TRY(read<uint64_t>(what));
    MINFER_TRY(check_count(n, what, bytes_min));
    return n;
  }
  Status check_count(uint64_t n, std::string_view what, uint64_t bytes_min) const {
    if (n <= left() / bytes_min) return {};
    return corrupt("found {} {}, expected at most {}: {} bytes are left and each takes {} or more", n, what,
                   left() / bytes_min, left(), bytes_min);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& source_;
  uint64_t pos_ = 0;
  std::string_view kind_, name_;
};

Result<ValueType> read_value_type(Cursor& in, std::string_view what) {
  const uint32_t id = MINFER_TRY(in.read<uint32_t>(what));
  if (id >= kValueTypeCount) return in.corrupt("{} is {}, expected 0 to {}", what, id, kValueTypeCount - 1);
  return static_cast<ValueType>(id);
}

Status check_bools(const Cursor& in, std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) {
    if (b > std::byte{1}) return in.corrupt("BOOL value is {}, expected 0 or 1", static_cast<unsigned>(b));
  }
  return {};
}

// Steps over the elements of an array, checking them. `depth`: arrays around this one.
Status skip_elements(Cursor& in, ValueType type, uint64_t count, int depth);

Status skip_array(Cursor& in, ValueType* type, uint64_t* count, int depth) {
  if (depth >= kArrayDepthMax) return in.corrupt("arrays lie more than {} deep in each other", kArrayDepthMax);
  *type = MINFER_TRY(read_value_type(in, "array element type"));
  *count = MINFER_TRY(in.read<uint64_t>("array count"));
  return skip_elements(in, *type, *count, depth);
}

Status skip_elements(Cursor& in, ValueType type, uint64_t count, int depth) {
  switch (type) {
    case ValueType::kString:
      MINFER_TRY(in.check_count(count, "array elements (STRING)", kStringBytesMin));
      for (uint64_t i = 0; i < count; ++i) {
        MINFER_TRY(in.read_string("array element (STRING)", std::numeric_limits<uint64_t>::max()));
      }
      return {};
    case ValueType::kArray:
      MINFER_TRY(in.check_count(count, "array elements (ARRAY)", kArrayBytesMin));
      for (uint64_t i = 0; i < count; ++i) {
        ValueType inner_type;
        uint64_t inner_count = 0;
        MINFER_TRY(skip_array(in, &inner_type, &inner_count, depth + 1));
      }
      return {};
    default: {
      const uint64_t step = value_type_bytes(type);
      MINFER_TRY(in.check_count(count, "array elements", step));
      const auto bytes = MINFER_TRY(in.take(count * step, "array"));  // no overflow: count <= left / step
      if (type == ValueType::kBool) return check_bools(in, bytes);
      return {};
    }
  }
}

Result<Value> read_value(Cursor& in, std::span<const std::byte> all) {
  Value v;
  v.type = MINFER_TRY(read_value_type(in, "value type"));
  if (v.type == ValueType::kString) {
    const std::string_view s = MINFER_TRY(in.read_string("STRING value", std::numeric_limits<uint64_t>::max()));
    v.bytes = std::as_bytes(std::span(s.data(), s.size()));
  } else if (v.type == ValueType::kArray) {
    const uint64_t head = in.position();
    MINFER_TRY(skip_array(in, &v.element_type, &v.count, 0));
    const uint64_t begin = head + kArrayBytesMin;
    v.bytes = all.subspan(begin, in.position() - begin);
  } else {
    v.bytes = MINFER_TRY(in.take(value_type_bytes(v.type), "value"));
    if (v.type == ValueType::kBool) MINFER_TRY(check_bools(in, v.bytes));
  }
  return v;
}

Status read_metadata(Cursor& in, std::span<const std::byte> all, uint64_t count, Metadata* out) {
  for (uint64_t i = 0; i < count; ++i) {
    in.clear_subject();
    const std::string what = fmt::format("name of key {} of {}", i + 1, count);
    const std::string_view key = MINFER_TRY(in.read_string(what, kKeyBytesMax));
    if (key.empty()) return in.corrupt("{} is empty", what);
    in.set_subject("key", key);
    const Value v = MINFER_TRY(read_value(in, all));
    if (!out->add(key, v)) return in.corrupt("the key appears twice");
  }
  in.clear_subject();
  return {};
}

// Reads the dimensions, turned around, and the size they give with the type that follows them.
Status read_shape(Cursor& in, TensorInfo* t) {
  const uint32_t n_dims = MINFER_TRY(in.read<uint32_t>("n_dims"));
  if (n_dims < 1 || n_dims > Shape::kMaxRank)
    return in.corrupt("n_dims is {}, expected 1 to {}", n_dims, Shape::kMaxRank);
  t->shape.rank = static_cast<int>(n_dims);
  for (uint32_t d = 0; d < n_dims; ++d) {
    const uint64_t n = MINFER_TRY(in.read<uint64_t>("dimension"));
    if (n == 0 || n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return in.corrupt("dimension {} is {}, expected 1 to {}", d, n, std::numeric_limits<int64_t>::max());
    }
    t->shape.dims[n_dims - 1 - d] = static_cast<int64_t>(n);
  }
  const Result<DType> dtype = dtype_from_ggml(MINFER_TRY(in.read<uint32_t>("tensor type")));
  if (!dtype.ok()) return in.fail(dtype.error().code, "{}", dtype.error().message);
  t->dtype = *dtype;

  const DTypeInfo& info = dtype_info(t->dtype);
  const int64_t row = t->shape.last();
  if (row % info.block_size != 0) {
    return in.corrupt("rows have {} values, expected a multiple of {} (block size of {})", row, info.block_size,
                      ggml_type_name(dtype_to_ggml(t->dtype)));
  }
  std::optional<int64_t> values = row;
  for (int d = 0; d + 1 < t->shape.rank && values; ++d) values = checked_mul(*values, t->shape[d]);
  std::optional<int64_t> bytes;
  if (values) bytes = checked_mul<int64_t>(*values / info.block_size, info.block_bytes);
  if (!bytes) return in.corrupt("shape {} overflows: more than 2^63 - 1 bytes", t->shape.str());
  t->bytes = static_cast<uint64_t>(*bytes);
  return {};
}

// Turns the offset in the data section into one in the file and checks that the data lies there.
Status place(const Cursor& in, uint64_t data_begin, uint64_t file_bytes, uint64_t alignment, TensorInfo* t) {
  if (t->offset % alignment != 0) {
    return in.corrupt("offset {} is not aligned, expected a multiple of {}", t->offset, alignment);
  }
  const auto begin = checked_add(data_begin, t->offset);
  const auto end = begin ? checked_add(*begin, t->bytes) : std::nullopt;
  if (!end || *end > file_bytes) {
    return in.corrupt("offset {} + {} bytes exceeds the file ({} bytes, tensor data from byte {})", t->offset, t->bytes,
                      file_bytes, data_begin);
  }
  t->offset = *begin;
  return {};
}

Status check_overlap(Cursor& in, const Parsed& p) {
  std::vector<size_t> order(p.tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p.tensors[a].offset < p.tensors[b].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& a = p.tensors[order[i - 1]];
    const TensorInfo& b = p.tensors[order[i]];
    if (a.offset + a.bytes <= b.offset) continue;
    in.set_subject("tensor", p.names[order[i]]);
    return in.corrupt("its data (from byte {} of the file) overlaps that of tensor {} (bytes {} to {})", b.offset,
                      printable(a.name), a.offset, a.offset + a.bytes);
  }
  return {};
}

Result<uint32_t> read_version(Cursor& in) {
  const uint32_t magic = MINFER_TRY(in.read<uint32_t>("magic"));
  if (magic != kMagic) {
    char text[4];
    std::memcpy(text, &magic, sizeof text);
    return in.corrupt("not a GGUF file: magic is {}, expected 'GGUF'", printable({text, sizeof text}));
  }
  const uint32_t version = MINFER_TRY(in.read<uint32_t>("version"));
  if (version >= kVersionMin && version <= kVersionMax) return version;
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= kVersionMax) {
    return in.fail(ErrorCode::kUnsupported,
                   "the file is byte-swapped (big endian, version {}): convert it to little endian", swapped);
  }
  return in.fail(ErrorCode::kUnsupported, "version is {}{}, expected {} or {}", version,
                 version == 1 ? " (with 32-bit counts)" : "", kVersionMin, kVersionMax);
}

}  // namespace

bool alignment_ok(uint64_t alignment) { return std::has_single_bit(alignment) && alignment >= kAlignmentMin; }

Result<Parsed> parse(std::span<const std::byte> bytes, const std::string& source, int part) {
  Cursor in(bytes, source);
  Parsed p;
  p.metadata = Metadata(source);
  p.version = MINFER_TRY(read_version(in));
  const uint64_t n_tensors = MINFER_TRY(in.read<uint64_t>("tensor count"));
  const uint64_t n_keys = MINFER_TRY(in.read<uint64_t>("key count"));
  MINFER_TRY(in.check_count(n_tensors, "tensors", kTensorBytesMin));
  MINFER_TRY(in.check_count(n_keys, "keys", kEntryBytesMin));
  MINFER_TRY(read_metadata(in, bytes, n_keys, &p.metadata));
  MINFER_TRY(in.check_count(n_tensors, "tensors", kTensorBytesMin));

  p.alignment = MINFER_TRY(p.metadata.get_or<uint32_t>("general.alignment", kAlignmentDefault));
  if (!alignment_ok(p.alignment)) {
    return in.corrupt("key 'general.alignment': found {}, expected a power of two of at least {}", p.alignment,
                      kAlignmentMin);
  }

  p.tensors.reserve(n_tensors);
  p.names.reserve(n_tensors);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    in.clear_subject();
    const std::string what = fmt::format("name of tensor {} of {}", i + 1, n_tensors);
    const std::string_view name = MINFER_TRY(in.read_string(what, kTensorNameBytesMax));
    if (name.empty()) return in.corrupt("{} is empty", what);
    in.set_subject("tensor", name);
    TensorInfo t;
    t.name = name;
    t.part = part;
    MINFER_TRY(read_shape(in, &t));
    t.offset = MINFER_TRY(in.read<uint64_t>("offset"));
    p.tensors.push_back(std::move(t));
    p.names.push_back(name);
  }
  in.clear_subject();
  if (n_tensors == 0) return p;  // such a file may end without the padding

  const auto data_begin = checked_align_up(in.position(), p.alignment);
  if (!data_begin || *data_begin > bytes.size()) {
    return in.corrupt("the file ends at byte {}, before its tensor data (aligned to {}, after byte {})", bytes.size(),
                      p.alignment, in.position());
  }
  for (size_t i = 0; i < p.tensors.size(); ++i) {
    in.set_subject("tensor", p.names[i]);
    MINFER_TRY(place(in, *data_begin, bytes.size(), p.alignment, &p.tensors[i]));
  }
  MINFER_TRY(check_overlap(in, p));
  return p;
}

}  // namespace minfer::gguf
