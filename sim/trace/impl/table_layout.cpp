#include "sim/trace/impl/table_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/base/text.h"
#include "sim/document/limits.h"
#include "sim/trace/impl/columns.h"
#include "sim/trace/impl/csv_records.h"

namespace hdpsim {
namespace {

using Meaning = ColumnMeaning;

// What says how many documents a row counts, the surest first.
constexpr std::array weights = {Meaning::count,      Meaning::number,      Meaning::share,    Meaning::cumulative,
                                Meaning::likelihood, Meaning::token_share, Meaning::quantile, Meaning::unclear_share};
constexpr std::array bins = {Meaning::range, Meaning::lower, Meaning::upper, Meaning::length};

constexpr const char* documents_help =
    "if every row is a document, name the column of the lengths (--column, or column "
    "in data.lengths)";

/// What the values of a column are like.
struct Figures {
  bool are_numbers = true;
  bool rise = true;          ///< Each is above the one before it.
  bool fall_nowhere = true;  ///< Each is at least the one before it.
  bool count_rows = true;    ///< They are 0, 1, 2 ... or 1, 2, 3 ...
  std::int64_t rows = 0;
  double first = 0;
  double last = 0;
  double sum = 0;

  void add(const Parsed<double>& value) {
    if (!value.value) are_numbers = false;
    const double number = value.value.value_or(0);
    if (rows == 0) {
      first = number;
      count_rows = number == 0 || number == 1;
    } else {
      rise = rise && number > last;
      fall_nowhere = fall_nowhere && number >= last;
      count_rows = count_rows && number == last + 1;
    }
    ++rows;
    last = number;
    sum += number;
  }

  [[nodiscard]] static bool is_whole(double value, double tolerance) {
    return std::abs(value - 1) <= tolerance || std::abs(value - 100) <= 100 * tolerance;
  }
  /// The values add up to all documents.
  [[nodiscard]] bool sum_to_all() const { return are_numbers && rows > 0 && is_whole(sum, 0.02); }
  /// They rise until all documents are among them.
  [[nodiscard]] bool rise_to_all() const {
    return are_numbers && rise && rows > 1 && is_whole(last, 1e-6) && sum > last;
  }
};

class TableFinder {
 public:
  explicit TableFinder(const std::filesystem::path& path) : problems_(path.string()), records_(path, problems_) {
    for (const std::string& name : records_.columns()) meanings_.push_back(meaning_of_column(name));
  }

  [[nodiscard]] std::optional<TableLayout> find() {
    if (records_.has("edge") && records_.has("token_share")) return mixture();
    if (has_any(bins) && has_any(weights)) {
      read_figures([] { return true; });
      settle_doubts();
      if (has_any(weights)) return layout();
    } else if (meanings_.size() == 2) {
      refuse_unnamed();
    }
    return std::nullopt;
  }

  /// Refuses a file that is no table of the format which it should have.
  [[noreturn]] void refuse(TraceFormat format) {
    const std::string_view wanted = format == TraceFormat::histogram   ? "length (or upper, or range) and count"
                                    : format == TraceFormat::quantiles ? "quantile and length"
                                                                       : "edge and token_share";
    fail(fmt::format("these columns state no distribution of the format '{}'", name_of(format)),
         fmt::format("name them {}; the columns are: {}", wanted, joined(records_.columns(), ", ")));
  }

 private:
  template <class Meanings>
  [[nodiscard]] bool has_any(const Meanings& wanted) const {
    return std::any_of(wanted.begin(), wanted.end(), [&](Meaning meaning) { return count_of(meaning) > 0; });
  }
  [[nodiscard]] std::ptrdiff_t count_of(Meaning meaning) const {
    return std::count(meanings_.begin(), meanings_.end(), meaning);
  }
  [[nodiscard]] std::optional<std::size_t> first_of(Meaning meaning) const {
    const auto found = std::find(meanings_.begin(), meanings_.end(), meaning);
    if (found == meanings_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - meanings_.begin());
  }
  [[noreturn]] void fail(std::string message, std::string help) {
    problems_.fail(records_.header(), std::move(message), std::move(help));
  }

  // `goes_on` is asked after each row, so that a long file of documents is not read to its end.
  template <class GoesOn>
  void read_figures(GoesOn goes_on) {
    figures_.assign(meanings_.size(), {});
    for (std::int64_t row = 0; row < most_table_rows && records_.next(); ++row) {
      for (std::size_t i = 0; i < figures_.size(); ++i) figures_[i].add(parse_share(records_.value(i)));
      if (!goes_on()) return;
    }
  }

  [[nodiscard]] bool lengths_fall_nowhere() const {
    return std::any_of(meanings_.begin(), meanings_.end(), [&, i = std::size_t{0}](Meaning meaning) mutable {
      const Figures& figures = figures_[i++];
      return (meaning == Meaning::length || meaning == Meaning::upper) && figures.are_numbers && figures.fall_nowhere;
    });
  }

  // Gives columns whose names have two meanings the one that their values have.
  void settle_doubts() {
    const bool ascends = lengths_fall_nowhere();
    for (std::size_t i = 0; i < meanings_.size(); ++i) {
      const Figures& figures = figures_[i];
      Meaning& meaning = meanings_[i];
      const bool rises_to_all = ascends && figures.rise_to_all();
      if (meaning == Meaning::number)
        meaning = figures.count_rows && figures.rows > 1 ? Meaning::other : Meaning::count;
      if (meaning != Meaning::share && meaning != Meaning::likelihood) continue;
      if (rises_to_all) {
        meaning = figures.first == 0 ? Meaning::quantile : Meaning::cumulative;
      } else if (meaning == Meaning::likelihood && figures.sum_to_all()) {
        meaning = Meaning::share;
      } else if (meaning == Meaning::likelihood) {
        // Quantiles of which the shortest or the longest length is missing, or something about each document.
        const bool percentiles = records_.columns()[i] == "p" && ascends && figures.rise && figures.last <= 100;
        meaning = percentiles ? Meaning::quantile : Meaning::other;
      }
    }
  }

  [[nodiscard]] TableLayout layout() {
    if (records_.has("step")) {
      fail("a table of lengths has no steps", "write a row for each document of a step: step,length");
    }
    for (const Meaning meaning : weights) {
      if (count_of(meaning) == 0) continue;
      require_one(meaning);
      return layout_of(meaning, *first_of(meaning));
    }
    return {};
  }

  void require_one(Meaning meaning) {
    if (count_of(meaning) < 2) return;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < meanings_.size(); ++i) {
      if (meanings_[i] == meaning) names.push_back(records_.columns()[i]);
    }
    fail(fmt::format("several columns of this table say the same: {}", joined(names, ", ")),
         fmt::format("leave all but one of them out; {}", documents_help));
  }

  [[nodiscard]] TableLayout layout_of(Meaning meaning, std::size_t weight) {
    const std::string& name = records_.columns()[weight];
    if (meaning == Meaning::unclear_share || meaning == Meaning::token_share) {
      fail(fmt::format("'{}' does not say how many documents have a length", name),
           "write columns length and count, or edge and token_share for the tokens of classes (traces/README.md)");
    }
    if (meaning == Meaning::quantile) {
      if (count_of(Meaning::length) == 0 && count_of(Meaning::upper) == 1)
        meanings_[*first_of(Meaning::upper)] = Meaning::length;
      if (count_of(Meaning::length) == 0) refuse(TraceFormat::quantiles);
      require_one(Meaning::length);
      return {.format = TraceFormat::quantiles, .length = *first_of(Meaning::length), .weight = weight};
    }
    TableLayout found = bins_of_rows();
    found.weight = weight;
    found.is_cumulative = meaning == Meaning::cumulative;
    // Documents that are at most as long as a length are those of a bin that ends there.
    if (found.is_cumulative && found.lengths == TableLayout::Lengths::single)
      found.lengths = TableLayout::Lengths::uppers;
    return found;
  }

  [[nodiscard]] TableLayout bins_of_rows() {
    using Lengths = TableLayout::Lengths;
    for (const Meaning meaning : bins) {
      if (count_of(meaning) == 0) continue;
      require_one(meaning);
      if (meaning != Meaning::lower) break;
    }
    if (const auto range = first_of(Meaning::range)) {
      const Figures& figures = figures_[*range];
      if (!figures.are_numbers || figures.rows == 0) return {.lengths = Lengths::ranges, .length = *range};
      fail(fmt::format("'{}' holds single numbers: are they the upper ends of bins, or the lengths themselves?",
                       records_.columns()[*range]),
           "name the column upper or length, or write ranges such as 2049-4096");
    }
    const auto lower = first_of(Meaning::lower);
    if (const auto upper = first_of(Meaning::upper)) {
      if (lower) return {.lengths = Lengths::ends, .lower = *lower, .length = *upper};
      return {.lengths = Lengths::uppers, .length = *upper};
    }
    if (const auto length = first_of(Meaning::length)) return {.length = *length};
    fail(fmt::format("'{}' says where bins begin, and nothing where the last one ends", records_.columns()[*lower]),
         "write the upper ends, in a column upper");
  }

  // Two columns of which only one has a known name.
  void refuse_unnamed() {
    const auto length = first_of(Meaning::length);
    const auto other = first_of(Meaning::other);
    const auto range = first_of(Meaning::range);
    if (!length || (!other && !range)) return;
    const std::string& name = records_.columns()[other ? *other : *range];
    const std::string& tokens = records_.columns()[*length];
    if (range) {
      fail(fmt::format("what does '{}' say of a {}?", tokens, name),
           fmt::format("name the documents of a bin count; {}", documents_help));
    }
    const auto may_be_quantiles = [&] {
      const Figures& figures = figures_[*other];
      return figures.are_numbers && figures.rise && figures.last <= 100 && lengths_fall_nowhere();
    };
    read_figures(may_be_quantiles);
    const Figures& figures = figures_[*other];
    constexpr std::int64_t fewest_rows = 3;
    if (!may_be_quantiles() || !figures.rise_to_all() || figures.count_rows || figures.rows < fewest_rows) return;
    fail(fmt::format("'{}' rises to {} with the lengths: is this a table of quantiles?", name, figures.last),
         fmt::format("name the columns quantile and length; {}", documents_help));
  }

  [[nodiscard]] TableLayout mixture() const {
    return {.format = TraceFormat::mixture,
            .length = records_.index_of("edge"),
            .weight = records_.index_of("token_share")};
  }

  FileProblems problems_;
  CsvRecords records_;
  std::vector<Meaning> meanings_;
  std::vector<Figures> figures_;
};

}  // namespace

std::optional<TableLayout> find_table(const std::filesystem::path& path) {
  return TableFinder(path).find();
}

TableLayout table_of(const std::filesystem::path& path, TraceFormat format) {
  const std::optional<TableLayout> found = find_table(path);
  if (!found || found->format != format) TableFinder(path).refuse(format);
  return *found;
}

bool is_table_by_name(const std::vector<std::string>& columns) {
  const auto says = [&](std::initializer_list<Meaning> wanted) {
    return std::any_of(columns.begin(), columns.end(), [&](const std::string& name) {
      return std::find(wanted.begin(), wanted.end(), meaning_of_column(name)) != wanted.end();
    });
  };
  return says({Meaning::range, Meaning::upper, Meaning::lower, Meaning::length}) &&
         says({Meaning::count, Meaning::share, Meaning::cumulative, Meaning::token_share, Meaning::quantile,
               Meaning::unclear_share});
}

}  // namespace hdpsim
