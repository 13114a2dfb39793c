#include "sim/trace/trace.h"

#include <fmt/format.h>

#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/input_files.h"
#include "sim/base/text.h"
#include "sim/document/compression.h"
#include "sim/trace/length_tally.h"

namespace hdpsim {
namespace {

/// Writes lengths in one format.
class Writer {
 public:
  explicit Writer(AtomicFile& file) : file_(file) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  virtual ~Writer() = default;

  virtual void add(const Length& length) = 0;
  /// Completes the file after the last length; `count` is their number.
  virtual void finish(std::int64_t count) = 0;

 protected:
  AtomicFile& file() { return file_; }

 private:
  AtomicFile& file_;
};

/// The texts around the numbers of a text format: those of its header, and of a row without and with a step.
struct TextFormat {
  std::string_view header;
  std::string_view stepped_header;
  std::string_view before_length;
  std::string_view before_step;
  std::string_view between;  ///< A step and its length.
  std::string_view end;
  bool has_steps = true;  ///< Steps have a place in it.
};
constexpr TextFormat lines_format{"", "", "", "", "", "\n", false};
constexpr TextFormat csv_format{"length\n", "step,length\n", "", "", ",", "\n"};
constexpr TextFormat jsonl_format{"", "", "{\"length\": ", "{\"step\": ", ", \"length\": ", "}\n"};

/// Writes a row of text per length; the first length decides whether there are steps.
class TextWriter : public Writer {
 public:
  TextWriter(AtomicFile& target, const TextFormat& format) : Writer(target), format_(format) {}

  void add(const Length& length) override {
    if (!with_steps_) {
      with_steps_ = length.step.has_value();
      text_ += *with_steps_ ? format_.stepped_header : format_.header;
    }
    if (*with_steps_ && !length.step) throw InputError("some lengths have a step and some have none");
    const bool writes_step = *with_steps_ && format_.has_steps;
    if (writes_step) append(text_, "{}{}", format_.before_step, *length.step);
    append(text_, "{}{}{}", writes_step ? format_.between : format_.before_length, length.tokens, format_.end);
    if (text_.size() >= std::size_t{1} << 16) flush();
  }
  void finish(std::int64_t /*count*/) override { flush(); }

 private:
  void flush() {
    file().write(text_);
    text_.clear();
  }

  const TextFormat& format_;
  std::string text_;
  std::optional<bool> with_steps_;
};

/// Version 1.0, '<i8'. The header contains the count and is therefore rewritten at the end.
class NpyWriter : public Writer {
 public:
  explicit NpyWriter(AtomicFile& target) : Writer(target) { file().write(header(0)); }

  void add(const Length& length) override {
    auto bits = static_cast<std::uint64_t>(length.tokens);
    for (int byte = 0; byte < 8; ++byte, bits >>= 8) bytes_ += static_cast<char>(bits & 0xff);
    if (bytes_.size() >= std::size_t{1} << 16) flush();
  }
  void finish(std::int64_t count) override {
    flush();
    file().seek(0);
    file().write(header(count));
  }

 private:
  static std::string header(std::int64_t count) {
    constexpr std::size_t size = 128;  // any multiple of 64 that has room for 2^63
    std::string dictionary = fmt::format("{{'descr': '<i8', 'fortran_order': False, 'shape': ({},), }}", count);
    dictionary.resize(size - 10 - 1, ' ');
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(size - 10) + '\0' + dictionary + '\n';
  }
  void flush() {
    file().write(bytes_);
    bytes_.clear();
  }

  std::string bytes_;
};

std::string quantiles_text(const std::vector<QuantilePoint>& table) {
  std::string text = "quantile,length\n";
  for (const QuantilePoint& point : table) text += fmt::format("{},{}\n", point.quantile, point.length);
  return text;
}

/// Four bins of equal width per octave, which the buckets of the tally fill exactly; single lengths below 8.
std::string histogram_text(const LengthTally& tally) {
  const auto upper_of = [](std::int64_t length) {
    const auto n = static_cast<std::uint64_t>(length) - 1;
    if (n < 8) return length;
    const int shift = static_cast<int>(std::bit_width(n)) - 3;
    return static_cast<std::int64_t>(((n >> shift) + 1) << shift);
  };
  const auto lower_of = [](std::int64_t upper) {
    const auto n = static_cast<std::uint64_t>(upper) - 1;
    if (n < 8) return upper;
    const int shift = static_cast<int>(std::bit_width(n)) - 3;
    return static_cast<std::int64_t>((n >> shift) << shift) + 1;
  };
  std::string text = "range,count\n";
  std::int64_t upper = 0;
  std::int64_t count = 0;
  const auto end_bin = [&] {
    if (count > 0) text += fmt::format("\"[{}, {}]\",{}\n", lower_of(upper), upper, count);
    count = 0;
  };
  for (const LengthTally::Bucket& bucket : tally.buckets()) {
    if (upper_of(bucket.upper) != upper) end_bin();
    upper = upper_of(bucket.upper);
    count += bucket.count;
  }
  end_bin();
  return text;
}

/// Writes formats that need all lengths first.
class SummaryWriter : public Writer {
 public:
  using Render = std::string (*)(const LengthTally&, int points);
  SummaryWriter(AtomicFile& file, Render render, int points) : Writer(file), render_(render), points_(points) {}

  void add(const Length& length) override { tally_.add(length.tokens); }
  void finish(std::int64_t /*count*/) override { file().write(render_(tally_, points_)); }

 private:
  LengthTally tally_;
  Render render_;
  int points_;
};

TraceFormat format_to_write(const std::filesystem::path& path, const WriteOptions& options) {
  const auto format = options.format ? options.format : format_of_extension(path);
  constexpr const char* help = "lines, csv, jsonl, npy, histogram and quantiles can be written";
  if (compression_of(path) != nullptr) {
    throw InputError(Position{path.string(), 0, 0}, "nothing is written compressed", "compress it afterwards: gzip");
  }
  if (!format) throw InputError(Position{path.string(), 0, 0}, "the extension does not name a known format", help);
  if (*format == TraceFormat::megatron || *format == TraceFormat::mixture || *format == TraceFormat::edges) {
    throw InputError(Position{path.string(), 0, 0}, fmt::format("the format {} cannot be written", name_of(*format)),
                     help);
  }
  return *format;
}

std::unique_ptr<Writer> make_writer(TraceFormat format, AtomicFile& file, int points) {
  switch (format) {
    case TraceFormat::lines:
      return std::make_unique<TextWriter>(file, lines_format);
    case TraceFormat::csv:
      return std::make_unique<TextWriter>(file, csv_format);
    case TraceFormat::jsonl:
      return std::make_unique<TextWriter>(file, jsonl_format);
    case TraceFormat::npy:
      return std::make_unique<NpyWriter>(file);
    case TraceFormat::histogram:
      return std::make_unique<SummaryWriter>(
          file, [](const LengthTally& tally, int) { return histogram_text(tally); }, points);
    default:
      return std::make_unique<SummaryWriter>(
          file, [](const LengthTally& tally, int n) { return quantiles_text(quantile_table(tally, n)); }, points);
  }
}

void check_points(int points) {
  if (points < 16 || points > 1'000'000) {
    throw InputError(fmt::format("a quantile table of {} points", points), "take from 16 to 1000000 points");
  }
}

bool is_distribution(const std::filesystem::path& path, const TraceOptions& options) {
  return holds_distribution(detect_format(path, options));
}

bool makes_quantiles(const WriteOptions& write) {
  return write.format == TraceFormat::quantiles;
}

}  // namespace

std::int64_t write_trace(LengthSource& source, const std::filesystem::path& path, const WriteOptions& options) {
  const TraceFormat format = format_to_write(path, options);
  check_points(options.points);
  remove_left_overs(path);
  AtomicFile file(path);
  const auto writer = make_writer(format, file, options.points);
  std::int64_t count = 0;
  for (; const auto length = source.next(); ++count) writer->add(*length);
  if (count == 0) throw InputError("there are no lengths to write");
  writer->finish(count);
  file.commit();
  return count;
}

void write_quantiles(const LengthDistribution& distribution, const std::filesystem::path& path, int points) {
  check_points(points);
  remove_left_overs(path);
  AtomicFile file(path);
  file.write(quantiles_text(quantile_table(distribution, points)));
  file.commit();
}

std::unique_ptr<LengthSource> open_lengths(const std::filesystem::path& path, const TraceOptions& options,
                                           const DrawOptions& draw) {
  if (!is_distribution(path, options)) return open_trace(path, options);
  return make_drawn_lengths(read_distribution(path, options), draw.seed, draw.count);
}

std::int64_t convert(const std::filesystem::path& from, const TraceOptions& options, const std::filesystem::path& to,
                     const WriteOptions& write, const DrawOptions& draw) {
  InputFiles inputs;
  InputFiles::record(from);
  inputs.require_none_at(to);
  if (makes_quantiles(write) && is_distribution(from, options)) {
    write_quantiles(*read_distribution(from, options), to, write.points);
    return 0;
  }
  return write_trace(*open_lengths(from, options, draw), to, write);
}

}  // namespace hdpsim
