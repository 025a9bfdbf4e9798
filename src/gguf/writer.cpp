// The GGUF writer: a head in one piece, then tensor data through a buffer, then a rename.
#include "gguf/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "gguf/encode_bytes.h"
#include "gguf/parse.h"

namespace minfer::gguf {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;  // one write call per MiB: the calls' cost vanishes beside the copy

std::string system_message(int code) { return std::generic_category().message(code); }

}  // namespace

uint64_t TensorSpec::bytes() const {
  return static_cast<uint64_t>(shape.rows()) * static_cast<uint64_t>(dtype_row_bytes(dtype, shape.last()));
}

struct Writer::State {
  std::string path;               // as asked for; "<memory>" in memory
  std::string temp_path;          // what is written until finish(); empty in memory
  int fd = -1;                    // -1 in memory
  std::vector<std::byte> buffer;  // what is not yet written; everything, in memory
  std::vector<TensorSpec> tensors;
  uint64_t alignment = kAlignmentDefault;
  size_t next = 0;            // tensor that write() goes to
  uint64_t next_written = 0;  // bytes of it so far
  bool failed = false;        // a write failed: the file is worth nothing
  bool finished = false;

  ~State() {
    if (fd >= 0) ::close(fd);
    if (!temp_path.empty() && !finished) ::unlink(temp_path.c_str());
  }

  template <typename... Args>
  Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return Error{code, fmt::format("[gguf] writing {}: ", path) + fmt::format(format, std::forward<Args>(args)...)};
  }

  Status write_out(const std::byte* p, size_t n) {
    while (n > 0) {
      const ssize_t done = ::write(fd, p, n);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        failed = true;
        return fail(ErrorCode::kIo, "{}", done < 0 ? system_message(errno) : "the system took no bytes");
      }
      p += done;
      n -= static_cast<size_t>(done);
    }
    return {};
  }

  Status flush() {
    if (fd < 0) return {};
    MINFER_TRY(write_out(buffer.data(), buffer.size()));
    buffer.clear();
    return {};
  }

  Status append(std::span<const std::byte> piece) {
    if (fd >= 0 && buffer.size() + piece.size() > kBufferBytes) {
      MINFER_TRY(flush());
      if (piece.size() >= kBufferBytes) return write_out(piece.data(), piece.size());
    }
    buffer.insert(buffer.end(), piece.begin(), piece.end());
    return {};
  }

  Status pad(uint64_t n) {
    static constexpr std::byte kZeros[4096] = {};
    while (n > 0) {
      const uint64_t piece = std::min<uint64_t>(n, sizeof kZeros);
      MINFER_TRY(append({kZeros, piece}));
      n -= piece;
    }
    return {};
  }

  Status check_tensor(const TensorSpec& t) const {
    if (t.name.empty() || t.name.size() > kTensorNameBytesMax) {
      return fail(ErrorCode::kInvalidArgument, "tensor {}: its name has {} bytes, expected 1 to {}", printable(t.name),
                  t.name.size(), kTensorNameBytesMax);
    }
    if (t.shape.rank < 1 || t.shape.rank > Shape::kMaxRank) {
      return fail(ErrorCode::kInvalidArgument, "tensor {}: {} dimensions, expected 1 to {}", printable(t.name),
                  t.shape.rank, Shape::kMaxRank);
    }
    std::optional<int64_t> values = 1;
    for (int d = 0; d < t.shape.rank; ++d) {
      if (t.shape[d] < 1) {
        return fail(ErrorCode::kInvalidArgument, "tensor {}: shape {}, expected no dimension below 1",
                    printable(t.name), t.shape.str());
      }
      if (values) values = checked_mul(*values, t.shape[d]);
    }
    const DTypeInfo& info = dtype_info(t.dtype);
    if (t.shape.last() % info.block_size != 0) {
      return fail(ErrorCode::kInvalidArgument, "tensor {}: rows of {} values, expected a multiple of {} ({})",
                  printable(t.name), t.shape.last(), info.block_size, info.name);
    }
    if (!values || !checked_mul<int64_t>(*values / info.block_size, info.block_bytes)) {
      return fail(ErrorCode::kInvalidArgument, "tensor {}: shape {} overflows", printable(t.name), t.shape.str());
    }
    return {};
  }
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::create(const std::string& path, const MetadataBuilder& metadata,
                              std::vector<TensorSpec> tensors) {
  static std::atomic<uint64_t> n_created = 0;
  auto state = std::make_unique<State>();
  state->path = path;
  state->tensors = std::move(tensors);
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    return state->fail(ErrorCode::kInvalidArgument, "it is there and no regular file");
  }
  const std::string temp = fmt::format("{}.tmp-{}-{}", path, ::getpid(), n_created.fetch_add(1));
  state->fd = ::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (state->fd < 0) return state->fail(ErrorCode::kIo, "cannot create '{}': {}", temp, system_message(errno));
  state->temp_path = temp;
  return start(std::move(state), metadata);
}

Result<Writer> Writer::create_in_memory(const MetadataBuilder& metadata, std::vector<TensorSpec> tensors) {
  auto state = std::make_unique<State>();
  state->path = "<memory>";
  state->tensors = std::move(tensors);
  return start(std::move(state), metadata);
}

// Checks everything, then writes header, metadata, tensor infos and the padding before the data.
Result<Writer> Writer::start(std::unique_ptr<State> state, const MetadataBuilder& metadata) {
  State& s = *state;
  std::vector<std::byte> head;
  put(head, kMagic);
  put(head, kVersionMax);
  put<uint64_t>(head, s.tensors.size());
  put<uint64_t>(head, metadata.size());
  for (const MetadataBuilder::Entry& e : metadata.entries_) {
    if (e.key.empty() || e.key.size() > kKeyBytesMax) {
      return s.fail(ErrorCode::kInvalidArgument, "key {}: it has {} bytes, expected 1 to {}", printable(e.key),
                    e.key.size(), kKeyBytesMax);
    }
    put_string(head, e.key);
    put_bytes(head, e.encoded.data(), e.encoded.size());
    if (e.key == "general.alignment") {
      // Read by the reader's own rules, so that both agree on where data lies.
      Metadata one(s.path);
      ValueType type;
      std::memcpy(&type, e.encoded.data(), sizeof type);
      Value v;
      v.type = type;
      v.bytes = std::span(e.encoded).subspan(sizeof type);
      one.add(e.key, v);
      s.alignment = MINFER_TRY(one.get<uint32_t>(e.key));
      if (!alignment_ok(s.alignment)) {
        return s.fail(ErrorCode::kInvalidArgument, "general.alignment is {}, expected a power of two of at least {}",
                      s.alignment, kAlignmentMin);
      }
    }
  }
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const TensorSpec& t : s.tensors) {
    MINFER_TRY(s.check_tensor(t));
    if (!names.insert(t.name).second) {
      return s.fail(ErrorCode::kInvalidArgument, "tensor {} is given twice", printable(t.name));
    }
    put_string(head, t.name);
    put(head, static_cast<uint32_t>(t.shape.rank));
    for (int d = t.shape.rank - 1; d >= 0; --d) put<uint64_t>(head, static_cast<uint64_t>(t.shape[d]));
    put(head, dtype_to_ggml(t.dtype));
    put(head, offset);
    const auto end = checked_add(offset, t.bytes());
    const auto aligned = end ? checked_align_up(*end, s.alignment) : std::nullopt;
    if (!aligned || *aligned > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return s.fail(ErrorCode::kInvalidArgument, "the tensors' sizes overflow at tensor {}", printable(t.name));
    }
    offset = *aligned;
  }
  MINFER_TRY(s.append(head));
  if (!s.tensors.empty()) MINFER_TRY(s.pad(*checked_align_up(head.size(), s.alignment) - head.size()));
  return Writer(std::move(state));
}

const TensorSpec* Writer::current() const {
  return state_->next < state_->tensors.size() ? &state_->tensors[state_->next] : nullptr;
}

Status Writer::write(std::span<const std::byte> piece) {
  State& s = *state_;
  if (s.failed || s.finished) return s.fail(ErrorCode::kInvalidArgument, "write() after a failure or after finish()");
  if (piece.empty()) return {};
  const TensorSpec* t = current();
  if (t == nullptr) return s.fail(ErrorCode::kInvalidArgument, "{} bytes after the last tensor", piece.size());
  const uint64_t bytes = t->bytes();
  if (piece.size() > bytes - s.next_written) {
    return s.fail(ErrorCode::kInvalidArgument, "tensor {}: {} bytes after the first {} exceed its {}",
                  printable(t->name), piece.size(), s.next_written, bytes);
  }
  MINFER_TRY(s.append(piece));
  s.next_written += piece.size();
  if (s.next_written == bytes) {
    MINFER_TRY(s.pad(*checked_align_up(bytes, s.alignment) - bytes));
    ++s.next;
    s.next_written = 0;
  }
  return {};
}

Status Writer::finish() {
  State& s = *state_;
  if (s.failed || s.finished) return s.fail(ErrorCode::kInvalidArgument, "finish() after a failure or twice");
  if (const TensorSpec* t = current()) {
    return s.fail(ErrorCode::kInvalidArgument, "tensor {} has {} of {} bytes", printable(t->name), s.next_written,
                  t->bytes());
  }
  if (s.fd >= 0) {
    MINFER_TRY(s.flush());
    if (::fsync(s.fd) != 0) return s.failed = true, s.fail(ErrorCode::kIo, "{}", system_message(errno));
    if (::close(std::exchange(s.fd, -1)) != 0)
      return s.failed = true, s.fail(ErrorCode::kIo, "{}", system_message(errno));
    if (::rename(s.temp_path.c_str(), s.path.c_str()) != 0) {
      const int code = errno;
      s.failed = true;
      return s.fail(ErrorCode::kIo, "cannot rename '{}' to it: {}", s.temp_path, system_message(code));
    }
  }
  s.finished = true;
  return {};
}

std::vector<std::byte> Writer::take_bytes() {
  MINFER_CHECK(state_->finished && state_->temp_path.empty());
  return std::move(state_->buffer);
}

Result<std::vector<std::byte>> encode(const MetadataBuilder& metadata, std::vector<TensorSpec> tensors,
                                      std::span<const std::span<const std::byte>> data) {
  if (tensors.size() != data.size()) {
    return make_error(ErrorCode::kInvalidArgument, "[gguf] encode: {} tensors but data for {}", tensors.size(),
                      data.size());
  }
  Writer w = MINFER_TRY(Writer::create_in_memory(metadata, std::move(tensors)));
  for (const auto& bytes : data) {
    const TensorSpec* t = w.current();
    if (bytes.size() != t->bytes()) {
      return make_error(ErrorCode::kInvalidArgument, "[gguf] encode: tensor {}: {} bytes of data, expected {}",
                        printable(t->name), bytes.size(), t->bytes());
    }
    MINFER_TRY(w.write(bytes));
  }
  MINFER_TRY(w.finish());
  return w.take_bytes();
}

}  // namespace minfer::gguf
