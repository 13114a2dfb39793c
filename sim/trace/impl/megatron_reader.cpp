#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/document/input_file.h"
#include "sim/trace/impl/file_source.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

// Layout from megatron/core/datasets/indexed_dataset.py: magic (9 bytes), version u64, token type u8, sequence count
// u64, document index count u64; then int32 sizes, int64 pointers and int64 document indices (and int8 modes for
// multimodal data).
constexpr std::string_view megatron_magic("MMIDIDX\0\0", 9);
constexpr std::int64_t header_bytes = 34;
constexpr std::int64_t size_bytes = 4;
constexpr std::int64_t pointer_bytes = 8;
constexpr std::int64_t index_bytes = 8;
constexpr int last_token_type = 8;  // uint8, int8, int16, int32, int64, float64, float32, uint16

constexpr const char* which_file_help = "name the .idx file that Megatron-LM's preprocess_data.py writes";

/// Signed numbers of one width, one after the other, read in blocks.
class Numbers {
 public:
  Numbers(const std::filesystem::path& path, std::int64_t offset, std::size_t width) : file_(path), width_(width) {
    file_.seek(offset);
  }

  /// The next number. InputError at the end of the file.
  std::int64_t next() {
    if (at_ == block_.size()) refill();
    const std::uint64_t bits = little_endian(std::span(block_).subspan(at_, width_));
    at_ += width_;
    const int unused = 64 - 8 * static_cast<int>(width_);
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }

 private:
  void refill() {
    block_.resize(std::size_t{1} << 16);
    block_.resize(file_.read(block_) / width_ * width_);
    at_ = 0;
    if (block_.empty()) throw InputError(Position{file_.name(), 0, 0}, "the file became shorter while it was read");
  }

  InputFile file_;
  std::size_t width_;
  std::vector<unsigned char> block_;
  std::size_t at_ = 0;
};

struct Counts {
  std::int64_t sequences = 0;
  std::int64_t indices = 0;  ///< One more than documents.
};

class MegatronSource : public FileSource {
 public:
  explicit MegatronSource(const std::filesystem::path& path)
      : FileSource(path.string()),
        counts_(read_header(path)),
        sizes_(path, header_bytes, size_bytes),
        ends_(path, header_bytes + counts_.sequences * (size_bytes + pointer_bytes), index_bytes) {
    if (counts_.indices == 0) return;
    ++index_;
    const std::int64_t first = ends_.next();
    if (first != 0) problems().add(fmt::format("the first document begins at sequence {}, not 0", first));
  }

 private:
  Counts read_header(const std::filesystem::path& path) {
    InputFile file(path);
    std::array<unsigned char, header_bytes> bytes{};
    const std::size_t got = file.read(bytes);
    if (got == 0) problems().fail("the file is empty", which_file_help);
    const auto same = [](char a, unsigned char b) { return static_cast<unsigned char>(a) == b; };
    if (!std::equal(megatron_magic.begin(),
                    megatron_magic.begin() + static_cast<std::ptrdiff_t>(std::min(got, megatron_magic.size())),
                    bytes.begin(), same)) {
      problems().fail("the file does not begin as a Megatron-LM index does", which_file_help);
    }
    if (got < bytes.size()) {
      problems().fail(fmt::format("the file is truncated: its header has {} of {} bytes", got, header_bytes),
                      "copy it again");
    }
    const std::uint64_t version = little_endian(std::span(bytes).subspan(9, 8));
    const int token_type = bytes[17];
    if (version != 1) problems().add(fmt::format("the index has version {}, not 1", version));
    if (token_type < 1 || token_type > last_token_type) {
      problems().add(fmt::format("the index names the unknown token type {}", token_type));
    }
    problems().throw_if_any();
    return checked_counts(little_endian(std::span(bytes).subspan(18, 8)),
                          little_endian(std::span(bytes).subspan(26, 8)), file.size());
  }

  Counts checked_counts(std::uint64_t sequences, std::uint64_t indices, std::int64_t file_size) {
    // This limit also keeps the products below from overflowing.
    const auto room = static_cast<std::uint64_t>(file_size);
    const std::uint64_t per_sequence = size_bytes + pointer_bytes;
    const bool fits = sequences <= room / per_sequence && indices <= room / index_bytes;
    const std::uint64_t needed = fits ? header_bytes + sequences * per_sequence + indices * index_bytes : 0;
    if (!fits || needed > room) {
      problems().fail(
          fmt::format("the file is truncated: it has {} bytes, too few for {} sequences and {} document indices",
                      file_size, sequences, indices),
          "copy it again");
    }
    if (needed != room && needed + sequences != room) {  // one mode byte per sequence
      problems().fail(fmt::format("{} bytes follow the document indices", room - needed));
    }
    return {static_cast<std::int64_t>(sequences), static_cast<std::int64_t>(indices)};
  }

  std::optional<Length> read() override {
    while (index_ < counts_.indices) {
      const std::int64_t document = index_ - 1;
      const std::int64_t end = ends_.next();
      ++index_;
      if (end < sequence_ || end > counts_.sequences) {
        problems().fail(fmt::format("document {} ends at sequence {}, not within {} to {}", document, end, sequence_,
                                    counts_.sequences));
      }
      const Parsed<std::int64_t> length = document_length(end);
      if (length.value) return Length{*length.value, {}};
      problems().add(fmt::format("document {}: {}", document, length.error), length.help);
    }
    if (sequence_ < counts_.sequences) {
      problems().fail(fmt::format("{} sequences belong to no document", counts_.sequences - sequence_));
    }
    return std::nullopt;
  }

  Parsed<std::int64_t> document_length(std::int64_t end) {
    std::int64_t tokens = 0;
    for (; sequence_ < end; ++sequence_) {
      const std::int64_t size = sizes_.next();
      if (size < 0) problems().add(fmt::format("sequence {} has the size {}", sequence_, size));
      tokens += std::max<std::int64_t>(size, 0);
    }
    return checked_length(tokens);
  }

  Counts counts_;
  Numbers sizes_;
  Numbers ends_;
  std::int64_t index_ = 0;     // document indices read
  std::int64_t sequence_ = 0;  // sequence sizes read
};

}  // namespace

std::unique_ptr<LengthSource> open_megatron(const std::filesystem::path& path) {
  return std::make_unique<MegatronSource>(path);
}

}  // namespace hdpsim
