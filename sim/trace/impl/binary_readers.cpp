#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <span>

#include "sim/document/input_file.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

/// Numbers of one width, one after the other, read in blocks.
class Numbers {
 public:
  /// `width` in bytes. A file that ends within the numbers is reported to `problems`.
  Numbers(const std::filesystem::path& path, std::int64_t offset, std::size_t width, FileProblems& problems)
      : file_(path), width_(width), problems_(problems) {
    file_.seek(offset);
  }

  /// The bits of the next number.
  std::uint64_t next() {
    if (at_ == block_.size()) refill();
    const std::uint64_t bits = little_endian(std::span(block_).subspan(at_, width_));
    at_ += width_;
    return bits;
  }
  /// The next number where they are signed.
  std::int64_t next_signed() {
    const int unused = 64 - 8 * static_cast<int>(width_);  // shifted up and back to extend the sign
    return static_cast<std::int64_t>(next() << unused) >> unused;
  }

 private:
  void refill() {
    block_.resize(std::size_t{1} << 18);
    block_.resize(file_.read(block_) / width_ * width_);
    at_ = 0;
    if (block_.empty()) problems_.fail("the file became shorter while it was read");
  }

  InputFile file_;
  std::size_t width_;
  FileProblems& problems_;
  std::vector<unsigned char> block_;
  std::size_t at_ = 0;
};

// Whether as many bytes of a file as there are begin with this.
bool begin_with(std::span<const unsigned char> bytes, std::string_view magic) {
  return std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), magic.size())),
                    magic.begin(), [](unsigned char a, char b) { return a == static_cast<unsigned char>(b); });
}

// ---- NumPy

// The format: numpy.lib.format, versions 1.0 (16-bit header length), 2.0 and 3.0 (32-bit header length).
constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::uint64_t longest_header = 1 << 16;  // NumPy itself reads 10,000 bytes

constexpr const char* save_help = "save a 1-D integer array: numpy.save(path, lengths.astype('<i8'))";

struct Element {
  std::size_t size = 0;  // bytes
  bool is_signed = false;
};

struct Header {
  std::string descr;
  std::string shape;
  bool fortran = false;
  std::int64_t data_at = 0;
};

// The text after `'key':` in the dictionary that the header is, up to the end of the value.
std::string value_of(std::string_view dictionary, std::string_view key) {
  const std::size_t name = dictionary.find(fmt::format("'{}'", key));
  if (name == std::string_view::npos) return {};
  const std::size_t colon = dictionary.find(':', name);
  if (colon == std::string_view::npos) return {};
  const std::size_t begin = dictionary.find_first_not_of(' ', colon + 1);
  if (begin == std::string_view::npos) return {};
  const char open = dictionary[begin];
  std::size_t end = dictionary.find_first_of(",}", begin);
  if (open == '(') end = dictionary.find(')', begin) + 1;
  if (open == '\'') end = dictionary.find('\'', begin + 1) + 1;
  if (open == '[') end = dictionary.find(']', begin) + 1;
  return std::string(dictionary.substr(begin, end == 0 || end == std::string_view::npos ? end : end - begin));
}

// "(12,)" -> 12; empty for any other number of dimensions.
std::optional<std::int64_t> single_dimension(std::string_view shape) {
  std::int64_t count = 0;
  if (shape.size() < 3 || shape.front() != '(') return std::nullopt;
  const auto [end, error] = std::from_chars(shape.data() + 1, shape.data() + shape.size(), count);
  const std::string_view rest(end, static_cast<std::size_t>(shape.data() + shape.size() - end));
  if (error != std::errc{} || count < 0 || (rest != ",)" && rest != ", )")) return std::nullopt;
  return count;
}

class NpySource : public FileSource {
 public:
  explicit NpySource(const std::filesystem::path& path) : FileSource(path.string()), file_(path) {
    const Header header = read_header();
    element_ = checked_element(header);
    const auto count = single_dimension(header.shape);
    if (!count) problems().add(fmt::format("the array has the shape {}, not one dimension", header.shape), save_help);
    if (header.fortran) problems().add("the array is in Fortran order", save_help);
    problems().throw_if_any();
    count_ = *count;
    check_size(header.data_at);
    numbers_.emplace(path, header.data_at, element_.size, problems());
  }

 private:
  [[noreturn]] void truncated_header() {
    problems().fail("the file is truncated inside its header", "write or copy it again");
  }

  Header read_header() {
    std::array<unsigned char, 12> start{};
    if (file_.size() == 0) problems().fail("the file is empty", save_help);
    const std::size_t got = file_.read(std::span(start).first(8));
    if (!begin_with(std::span(start).first(got), npy_magic)) {
      problems().fail("the file does not begin as a .npy file does", save_help);
    }
    if (got < 8) truncated_header();
    const int version = start[6];
    if (version < 1 || version > 3) {
      problems().fail(fmt::format("the .npy format version {}.{} is unknown", version, start[7]), save_help);
    }
    const std::size_t width = version == 1 ? 2 : 4;
    const auto length_bytes = std::span(start).subspan(8, width);
    if (file_.read(length_bytes) < width) truncated_header();
    const std::uint64_t length = little_endian(length_bytes);
    if (static_cast<std::int64_t>(8 + width + length) > file_.size()) truncated_header();
    if (length > longest_header) problems().fail(fmt::format("the header has {} bytes", length), save_help);
    std::string dictionary(length, ' ');
    if (file_.read({reinterpret_cast<unsigned char*>(dictionary.data()), dictionary.size()}) < length)
      truncated_header();
    return {.descr = value_of(dictionary, "descr"),
            .shape = value_of(dictionary, "shape"),
            .fortran = value_of(dictionary, "fortran_order") == "True",
            .data_at = static_cast<std::int64_t>(8 + width + length)};
  }

  // Accepts '<i8' and the like. Any other type is reported by name.
  Element checked_element(const Header& header) {
    const std::string& descr = header.descr;
    if (descr.size() != 5) {
      problems().add(fmt::format("the elements are {}, not integers", descr), save_help);
      return {};
    }
    const char order = descr[1];
    const char kind = descr[2];
    const auto size = static_cast<std::size_t>(descr[3] - '0');
    const bool integer = (kind == 'i' || kind == 'u') && size <= 8 && std::has_single_bit(size);
    if (!integer) {
      problems().add(
          fmt::format("the elements are {} ({}), not integers", descr, kind == 'f' ? "floats" : "no numbers"),
          save_help);
    } else if (order == '>') {
      problems().add(fmt::format("the elements are {} (big-endian)", descr), save_help);
    }
    return {size, kind == 'i'};
  }

  void check_size(std::int64_t data_at) {
    const std::int64_t data = file_.size() - data_at;
    const auto size = static_cast<std::int64_t>(element_.size);
    if (data / size < count_) {
      problems().fail(fmt::format("the file is truncated: it holds {} of {} lengths", data / size, count_),
                      "write or copy it again");
    }
    if (data != count_ * size) {
      problems().fail(fmt::format("{} bytes follow the {} lengths", data - count_ * size, count_),
                      "a trace is one array a file");
    }
  }

  std::optional<Length> read() override {
    while (index_ < count_) {
      ++index_;
      const Parsed<std::int64_t> length = next_length();
      if (length.value) return Length{*length.value, {}};
      problems().add(fmt::format("element {}: {}", index_ - 1, length.error), length.help);
    }
    return std::nullopt;
  }

  Parsed<std::int64_t> next_length() {
    if (element_.is_signed) return checked_length(numbers_->next_signed());
    const std::uint64_t bits = numbers_->next();
    return bits > INT64_MAX ? parse_length(fmt::format("{}", bits)) : checked_length(static_cast<std::int64_t>(bits));
  }

  InputFile file_;
  Element element_;
  std::optional<Numbers> numbers_;
  std::int64_t count_ = 0;
  std::int64_t index_ = 0;
};

// ---- Megatron-LM

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

struct Counts {
  std::int64_t sequences = 0;
  std::int64_t indices = 0;  ///< One more than documents.
};

class MegatronSource : public FileSource {
 public:
  explicit MegatronSource(const std::filesystem::path& path)
      : FileSource(path.string()),
        counts_(read_header(path)),
        sizes_(path, header_bytes, size_bytes, problems()),
        ends_(path, header_bytes + counts_.sequences * (size_bytes + pointer_bytes), index_bytes, problems()) {
    if (counts_.indices == 0) return;
    ++index_;
    const std::int64_t first = ends_.next_signed();
    if (first != 0) problems().add(fmt::format("the first document begins at sequence {}, not 0", first));
  }

 private:
  Counts read_header(const std::filesystem::path& path) {
    InputFile file(path);
    std::array<unsigned char, header_bytes> bytes{};
    const std::size_t got = file.read(bytes);
    if (got == 0) problems().fail("the file is empty", which_file_help);
    if (!begin_with(std::span(bytes).first(got), megatron_magic)) {
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
      const std::int64_t end = ends_.next_signed();
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
      const std::int64_t size = sizes_.next_signed();
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

std::unique_ptr<LengthSource> open_npy(const std::filesystem::path& path) {
  return std::make_unique<NpySource>(path);
}

std::unique_ptr<LengthSource> open_megatron(const std::filesystem::path& path) {
  return std::make_unique<MegatronSource>(path);
}

}  // namespace hdpsim
