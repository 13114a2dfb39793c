#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "sim/document/input_file.h"
#include "sim/trace/impl/file_source.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

// The format: numpy.lib.format, versions 1.0 (16-bit header length), 2.0 and 3.0 (32-bit header length).
constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t block_elements = 1 << 16;
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
    file_.seek(header.data_at);
  }

 private:
  [[noreturn]] void truncated_header() {
    problems().fail("the file is truncated inside its header", "write or copy it again");
  }

  Header read_header() {
    std::array<unsigned char, 12> start{};
    if (file_.size() == 0) problems().fail("the file is empty", save_help);
    const std::size_t got = file_.read(std::span(start).first(8));
    if (!std::equal(npy_magic.begin(), npy_magic.begin() + static_cast<std::ptrdiff_t>(std::min(got, npy_magic.size())),
                    start.begin(), [](char a, unsigned char b) { return static_cast<unsigned char>(a) == b; })) {
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
    if (file_.read({reinterpret_cast<unsigned char*>(dictionary.data()), length}) < length) truncated_header();
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
      if (at_ == block_.size()) refill();
      const std::uint64_t bits = little_endian(std::span(block_).subspan(at_, element_.size));
      at_ += element_.size;
      ++index_;
      const Parsed<std::int64_t> length = checked(bits);
      if (length.value) return Length{*length.value, {}};
      problems().add(fmt::format("element {}: {}", index_ - 1, length.error), length.help);
    }
    return std::nullopt;
  }

  void refill() {
    block_.resize(block_elements * element_.size);
    const std::size_t got = file_.read(block_);
    block_.resize(got / element_.size * element_.size);
    at_ = 0;
    if (block_.empty()) problems().fail("the file became shorter while it was read");
  }

  [[nodiscard]] Parsed<std::int64_t> checked(std::uint64_t bits) const {
    if (!element_.is_signed) {
      return bits > INT64_MAX ? parse_length(fmt::format("{}", bits)) : checked_length(static_cast<std::int64_t>(bits));
    }
    const int unused = 64 - 8 * static_cast<int>(element_.size);  // shifted up and back to extend the sign
    return checked_length(static_cast<std::int64_t>(bits << unused) >> unused);
  }

  InputFile file_;
  Element element_;
  std::int64_t count_ = 0;
  std::int64_t index_ = 0;
  std::vector<unsigned char> block_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<LengthSource> open_npy(const std::filesystem::path& path) {
  return std::make_unique<NpySource>(path);
}

}  // namespace hdpsim
