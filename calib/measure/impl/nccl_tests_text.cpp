#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "calib/fit/impl/link_profile.h"
#include "calib/fit/samples.h"
#include "calib/measure/impl/nccl_tests_lines.h"
#include "calib/measure/impl/nccl_tests_readers.h"

namespace hdpsim::calib {
namespace {

/// What the bandwidths of a table say of its number of ranks: bus over algorithm bandwidth is bus_factor() of the
/// collective. They are printed in hundredths of a GB/s, which leaves a range.
class BandwidthRatio {
 public:
  /// One row, in GB/s.
  void add(double algorithm, double bus);
  /// Whether a collective of so many ranks has bandwidths as these.
  [[nodiscard]] bool holds(MessageKind kind, std::int64_t ranks) const;
  /// The numbers of ranks that do, for people: "16 ranks"; empty if there are none.
  [[nodiscard]] std::string ranks_text(MessageKind kind) const;

 private:
  double least_ = 0;
  double most_ = std::numeric_limits<double>::infinity();
};

constexpr double rounding = 0.005;  // of what is printed in hundredths
constexpr std::int64_t most_ranks = 65536;

void BandwidthRatio::add(double algorithm, double bus) {
  if (!(algorithm > rounding && bus > rounding)) return;  // a row too slow to show anything
  least_ = std::max(least_, (bus - rounding) / (algorithm + rounding));
  most_ = std::min(most_, (bus + rounding) / (algorithm - rounding));
}

bool BandwidthRatio::holds(MessageKind kind, std::int64_t ranks) const {
  const double factor = bus_factor(kind, ranks);
  return least_ <= factor && factor <= most_;
}

std::string BandwidthRatio::ranks_text(MessageKind kind) const {
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::int64_t ranks = 2; ranks <= most_ranks; ++ranks) {
    if (!holds(kind, ranks)) continue;
    if (first == 0) first = ranks;
    last = ranks;
  }
  if (first == 0) return {};
  return first == last ? fmt::format("{} ranks", first) : fmt::format("{} to {} ranks", first, last);
}

constexpr std::size_t longest_row = 100'000;  // bytes; lines of a job's other output are mixed with those of nccl-tests

template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

auto position_of(const std::vector<Word>& words, std::string_view text) {
  return std::find_if(words.begin(), words.end(), [&](const Word& word) { return word.text == text; });
}

/// The columns of a table, by the words of its header line. Releases before 2.11 have the largest deviation, `error`,
/// in place of a number of results, `#wrong`.
struct Columns {
  std::vector<std::string> names;
  std::string prefix;  ///< The prefix of the header.

  [[nodiscard]] std::size_t of(std::string_view name) const {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  }
  [[nodiscard]] std::size_t time() const { return std::min(of("time"), of("cputime")); }
  [[nodiscard]] bool has(std::string_view name) const { return of(name) < names.size(); }
  [[nodiscard]] bool complete() const { return of("size") == 0 && time() < names.size(); }
  /// A time stamp at the end of a row is two words under one name.
  [[nodiscard]] bool fits(std::size_t words) const {
    return words == names.size() || (names.back() == "timestamp" && words == names.size() + 1);
  }
};

class TextReader {
 public:
  TextReader(const std::string& file, const RunUnsaid& otherwise, Diagnostics& diagnostics)
      : file_(file), otherwise_(otherwise), diagnostics_(diagnostics) {}

  std::vector<NcclTestsRun> read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      if (end > longest_row) {
        complain(1, fmt::format("the line is longer than {} characters", longest_row), "is it the right file?");
        break;
      }
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    finish_run();
    if (runs_.empty() && !complained_) {
      diagnostics_.error({file_, 0, 0}, "this is no output of nccl-tests: there is no table of times in it");
    }
    return std::move(runs_);
  }

 private:
  void read_line(std::string_view line) {
    if (const auto comment = comment_begin(line)) {
      read_comment(words_of(line, *comment), line.substr(0, *comment));
    } else if (const auto begin = prefix_like(columns_.prefix, line)) {
      const std::vector<Word> words = words_of(line, *begin);
      const bool is_row = columns_.complete() && !words.empty() && number_from<std::int64_t>(words.front().text);
      is_row ? read_row(words) : find_version(line);
    } else {
      find_version(line);
    }
  }

  void find_version(std::string_view line) {
    constexpr std::string_view before = "NCCL version ";
    const std::size_t at = line.find(before);
    if (at == std::string_view::npos) return;
    const std::vector<Word> words = words_of(line, at + before.size());
    if (!words.empty()) run_.nccl = words.front().text;
  }

  void read_comment(const std::vector<Word>& words, std::string_view prefix) {
    if (words.size() < 2) return;
    const std::string_view first = words[1].text;
    if (words.size() >= 5 && first == "Collective" && words[3].text == "starting:") {
      finish_run();
      begin_run(words[4]);
    } else if (words.size() >= 4 && first == "Rank") {
      read_rank(words);
    } else if (first == "size" && std::min(position_of(words, "time"), position_of(words, "cputime")) != words.end()) {
      read_header(words, prefix);
    } else if (first == "nThread") {
      if (run_.ranks > 0 || !run_.timings.empty()) finish_run();
      read_iterations(words);
    } else if (words.size() >= 7 && first == "Out" && words[4].text == "values") {
      read_verdict(words[6]);
    }
  }

  void read_header(const std::vector<Word>& words, std::string_view prefix) {
    columns_ = {{}, std::string(prefix)};
    for (std::size_t i = 1; i < words.size(); ++i) columns_.names.emplace_back(words[i].text);
    if (started_.line == 0) started_ = {file_, line_, words.front().column};
  }

  // `# Out of bounds values : 3 FAILED` is all that older releases say of wrong results.
  void read_verdict(const Word& wrong) {
    if (columns_.has("#wrong") || number_from<std::int64_t>(wrong.text).value_or(0) == 0) return;
    complain(wrong.column, fmt::format("'{}' results out of bounds: what failed is not measured", wrong.text));
  }

  void begin_run(const Word& program) {
    started_ = {file_, line_, program.column};
    named_ = true;
    kind_ = nccl_tests_kind(program.text);
    if (!kind_) complain(program.column, fmt::format("{} is no collective that training here uses", program.text));
  }

  /// Parses `#  Rank  0 Group  0 Pid 1584 on host device  0 [0000:0f:00] NVIDIA H100`. Rank 0 begins the list of a run.
  void read_rank(const std::vector<Word>& words) {
    if (!run_.timings.empty()) finish_run();
    if (!ranks_.emplace(words[2].text).second) {
      complain(words[2].column, fmt::format("rank {} is in this list a second time", words[2].text),
               "are these several runs at once? nccl-tests that is built with MPI=1 makes one run of all processes");
      return;
    }
    ++run_.ranks;
    if (started_.line == 0) started_ = {file_, line_, words.front().column};
    const auto on = position_of(words, "on");
    if (on != words.end() && on + 1 != words.end()) hosts_.emplace((on + 1)->text);
  }

  void read_iterations(const std::vector<Word>& words) {
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
      const bool own = words[i].text == "iters:" && words[i - 1].text != "warmup" && words[i - 1].text != "agg";
      if (own) iterations_ = number_from<std::int64_t>(words[i + 1].text).value_or(iterations_);
    }
  }

  void read_row(const std::vector<Word>& words) {
    if (!columns_.fits(words.size())) {
      complain(words.front().column,
               fmt::format("this row has {} columns, its table has {}", words.size(), columns_.names.size()),
               "was the output cut off, or did two ranks print at once?");
      return;
    }
    const Word& size = words.front();
    const Word& time = words[columns_.time()];
    const auto bytes = number_from<std::int64_t>(size.text);
    const auto microseconds = number_from<double>(time.text);
    if (bytes && *bytes == 0) return;  // a size that rounds to zero on that many ranks
    if (!bytes || *bytes < 0) {
      complain(size.column, fmt::format("'{}' is no size in bytes", size.text));
    } else if (!microseconds || !(*microseconds > 0)) {
      complain(time.column, fmt::format("'{}' is no time in microseconds", time.text));
    } else if (is_right(words)) {
      const double seconds = *microseconds * 1e-6;
      run_.timings.push_back({.bytes = *bytes, .timing = {seconds, seconds, seconds, 0, iterations_}});
      ratio_.add(bandwidth(words, "algbw"), bandwidth(words, "busbw"));
    }
  }

  bool is_right(const std::vector<Word>& words) {
    if (!columns_.has("#wrong")) return true;
    const Word& wrong = words[columns_.of("#wrong")];
    if (wrong.text == "N/A" || number_from<double>(wrong.text) == 0.0) return true;
    complain(wrong.column, fmt::format("'{}' wrong results: what failed is not measured", wrong.text));
    return false;
  }

  [[nodiscard]] double bandwidth(const std::vector<Word>& words, std::string_view name) const {
    return columns_.has(name) ? number_from<double>(words[columns_.of(name)].text).value_or(0) : 0;
  }

  void finish_run() {
    if (named_ || run_.ranks > 0 || !run_.timings.empty()) check_run();
    run_ = {};
    hosts_.clear();
    ranks_.clear();
    columns_ = {};
    ratio_ = {};
    kind_.reset();
    named_ = false;
    started_ = {};
    iterations_ = default_iterations;
  }

  void check_run() {
    if (!named_) kind_ = otherwise_.kind;
    if (!kind_ && !named_) {
      complain_at(started_, "the output does not say which collective this is",
                  "name the file after it, such as all_reduce.txt");
    }
    run_.link = hosts_.size() > 1 ? LinkKind::network : LinkKind::nvlink;
    if (kind_ && run_.ranks == 0 && !take_ranks(*kind_)) return;
    if (check_nccl_tests_run(run_, started_.line == 0 ? Position{file_, 0, 0} : started_, diagnostics_) && kind_) {
      state_kind(run_, *kind_);
      runs_.push_back(std::move(run_));
    } else {
      complained_ = true;
    }
  }

  // Where the list of devices is missing, the ranks are those that are asked about. False if that cannot be.
  bool take_ranks(MessageKind kind) {
    run_.ranks = otherwise_.ranks;
    if (run_.ranks == 0 || run_.timings.empty() || ratio_.holds(kind, run_.ranks)) return true;
    const std::string ranks = ratio_.ranks_text(kind);
    const std::string name(message_kind_name(kind));
    complain_at(started_,
                ranks.empty()
                    ? fmt::format("these are not the bandwidths of an {}", name)
                    : fmt::format("these are the bandwidths of an {} of {}, not of {}", name, ranks, run_.ranks),
                ranks.empty() ? "name the file after its collective, such as reduce_scatter.txt"
                              : "ask about as many as took part");
    return false;
  }

  void complain(int column, std::string message, std::string help = {}) {
    complain_at({file_, line_, column}, std::move(message), std::move(help));
  }
  void complain_at(const Position& position, std::string message, std::string help = {}) {
    complained_ = true;
    diagnostics_.error(position, std::move(message), std::move(help));
  }

  static constexpr std::int64_t default_iterations = 20;  // the default of nccl-tests

  const std::string& file_;
  const RunUnsaid& otherwise_;
  Diagnostics& diagnostics_;
  std::vector<NcclTestsRun> runs_;
  NcclTestsRun run_;
  std::optional<MessageKind> kind_;
  bool named_ = false;
  std::set<std::string, std::less<>> hosts_;
  std::set<std::string, std::less<>> ranks_;
  BandwidthRatio ratio_;
  Columns columns_;
  Position started_;
  std::int64_t iterations_ = default_iterations;
  int line_ = 0;
  bool complained_ = false;
};

}  // namespace

std::vector<NcclTestsRun> read_nccl_tests_text(const std::string& file, const std::string& text,
                                               const RunUnsaid& otherwise, Diagnostics& diagnostics) {
  return TextReader(file, otherwise, diagnostics).read(text);
}

}  // namespace hdpsim::calib
