#include "sim/trust/published_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "sim/base/text.h"
#include "sim/document/document.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

/// The errors of a set of which only some kinds count.
struct PartOfSet {
  double figures = 0;
  double sum = 0;
  double squares = 0;  ///< About zero, with the spreads.

  void add(const ErrorRow& row) {
    const auto count = static_cast<double>(row.figures);
    figures += count;
    sum += count * row.errors.center;
    squares += count * (row.errors.center * row.errors.center + row.errors.spread * row.errors.spread);
  }
  [[nodiscard]] SetErrors errors() const {
    const double center = sum / figures;
    return {center, std::sqrt(std::max(0.0, squares / figures - center * center))};
  }
};

std::map<std::string, PartOfSet> sets_of(const std::vector<ErrorRow>& rows, ErrorOf figure, const RunKind& kind,
                                         int depth) {
  std::map<std::string, PartOfSet> sets;
  for (const ErrorRow& row : rows) {
    if (row.of == figure && agree(row.kind, kind, depth)) sets[row.set].add(row);
  }
  return sets;
}

// As many digits as the file has, and no -0.
double rounded(double logarithm) {
  return std::round(logarithm * 1e4) / 1e4 + 0.0;
}

std::optional<ErrorRow> read_row(const Value& value, Diagnostics& diagnostics) {
  constexpr Range of_logarithms{-10, 10};
  MapReader map(value, "an error", diagnostics);
  const auto choice = [&](std::string_view key, const std::vector<std::string>& words) -> std::optional<std::size_t> {
    const Value* found = map.require(key);
    return found == nullptr ? std::nullopt : read_choice(*found, key, words, diagnostics);
  };
  const auto of = choice("of", error_of_names());
  const auto workload = choice("workload", workload_names());
  const auto stack = choice("stack", stack_names());
  const auto device = map.required<std::string>("device");
  const auto set = map.required<std::string>("set");
  const auto figures = map.required_in<std::int64_t>("figures", {1, 1e9});
  const auto center = map.required_in<double>("center", of_logarithms);
  const auto spread = map.required_in<double>("spread", {0, of_logarithms.most});
  map.finish();
  if (!of || !workload || !stack || !device || !set || !figures || !center || !spread) return std::nullopt;
  return ErrorRow{.of = static_cast<ErrorOf>(*of),
                  .kind = {static_cast<Workload>(*workload), stack_names()[*stack], *device},
                  .set = *set,
                  .figures = *figures,
                  .errors = {*center, *spread}};
}

}  // namespace

const std::vector<std::string>& error_of_names() {
  static const std::vector<std::string> names = {"step_time", "speedup", "memory"};
  return names;
}

std::string_view name_of(ErrorOf figure) {
  return error_of_names().at(static_cast<std::size_t>(figure));
}

RunKind kind_for(ErrorOf figure, RunKind kind) {
  if (figure == ErrorOf::memory && kind.workload != Workload::experts) kind.workload = Workload::dense;
  return kind;
}

std::optional<KindErrors> PublishedErrors::of(ErrorOf figure, const RunKind& kind) const {
  const RunKind asked = kind_for(figure, kind);
  ErrorBelief belief;
  std::optional<KindErrors> found;
  for (int depth = 0; depth <= deepest_kind; ++depth) {
    const std::map<std::string, PartOfSet> sets = sets_of(rows_, figure, asked, depth);
    if (sets.empty()) break;
    std::vector<SetErrors> errors;
    double figures = 0;
    for (const auto& [name, set] : sets) {
      errors.push_back(set.errors());
      figures += set.figures;
    }
    belief = (depth == 0 ? belief : belief.for_narrower()).with(errors);
    found = KindErrors{.spread = belief.of_new_set(),
                       .kind = text_of(asked, depth),
                       .is_own = depth == deepest_kind,
                       .sets = std::ssize(errors),
                       .figures = static_cast<std::int64_t>(figures)};
  }
  return found;
}

PublishedErrors PublishedErrors::without(const std::string& set) const {
  std::vector<ErrorRow> rows;
  for (const ErrorRow& row : rows_) {
    if (row.set != set) rows.push_back(row);
  }
  return PublishedErrors(std::move(rows));
}

PublishedErrors load_published_errors(const std::string& path, Diagnostics& diagnostics) {
  Diagnostics found;
  const Value file = load_document(path, found);
  std::vector<ErrorRow> rows;
  if (!file.is_null()) {
    MapReader map(file, "the file", found);
    const Value* errors = map.require("errors");
    map.finish();
    for (const Value& item : errors == nullptr ? std::vector<Value>{} : errors->items) {
      if (auto row = read_row(item, found)) rows.push_back(std::move(*row));
    }
  }
  diagnostics.append(found);
  return PublishedErrors(found.empty() ? std::move(rows) : std::vector<ErrorRow>{});
}

std::string published_errors_file(const PublishedErrors& errors) {
  std::string text =
      "# Errors of predictions, log(published / predicted), of the sets of configs/validation: a line a set and\n"
      "# kind of run. Written by scripts/dev ratchet from what hdpsim validate predicts. From them every study takes "
      "its\n"
      "# intervals (configs/validation/README.md, \"How far to trust it, by kind of run\").\n"
      "errors:\n";
  for (const ErrorRow& row : errors.rows()) {
    text += fmt::format(
        "  - {{of: {}, workload: {}, stack: {}, device: {}, set: {}, figures: {}, center: {:.4f}, spread: {:.4f}}}\n",
        name_of(row.of), name_of(row.kind.workload), row.kind.stack, row.kind.device, row.set, row.figures,
        rounded(row.errors.center), rounded(row.errors.spread));
  }
  return text;
}

std::optional<RunErrors> run_errors(const PublishedErrors& errors, const RunKind& kind) {
  const auto step_time = errors.of(ErrorOf::step_time, kind);
  if (!step_time) return std::nullopt;
  return RunErrors{.kind = kind,
                   .step_time = *step_time,
                   .speedup = errors.of(ErrorOf::speedup, kind),
                   .memory = errors.of(ErrorOf::memory, kind)};
}

}  // namespace hdpsim
