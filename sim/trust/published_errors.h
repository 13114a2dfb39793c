#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/trust/error_spread.h"
#include "sim/trust/run_kind.h"

namespace hdpsim {

/// The predicted figure that has an error.
enum class ErrorOf : std::uint8_t {
  step_time,
  speedup,  ///< The ratio of the steps of two plans of one job: most of the errors that they share cancels out.
  memory,   ///< Of a device.
};
/// "step_time", "speedup", "memory".
[[nodiscard]] const std::vector<std::string>& error_of_names();
[[nodiscard]] std::string_view name_of(ErrorOf figure);

/// The kind by which a figure's errors differ: memory depends neither on the host nor on how lengths differ, so that
/// dense models have one kind of it.
[[nodiscard]] RunKind kind_for(ErrorOf figure, RunKind kind);

/// The errors of the figures of one set that are of one kind of run.
struct ErrorRow {
  ErrorOf of = ErrorOf::step_time;
  RunKind kind;
  std::string set;
  std::int64_t figures = 0;
  SetErrors errors;
};

/// How far a figure of a run may be off, and what says so.
struct KindErrors {
  ErrorSpread spread;
  std::string kind;          ///< The narrowest kind of the run's that has published figures: text_of().
  bool is_own = true;        ///< Whether it is that of the run, down to the device.
  std::int64_t sets = 0;     ///< Of that kind.
  std::int64_t figures = 0;  ///< Of that kind.
};

/// The errors of all published figures, by set and kind.
class PublishedErrors {
 public:
  PublishedErrors() = default;
  explicit PublishedErrors(std::vector<ErrorRow> rows) : rows_(std::move(rows)) {}

  /// The errors of a kind: what its sets say, given what wider kinds say, from all runs downwards. Empty if no
  /// row has the figure. O(rows).
  [[nodiscard]] std::optional<KindErrors> of(ErrorOf figure, const RunKind& kind) const;
  /// The errors without those of a set.
  [[nodiscard]] PublishedErrors without(const std::string& set) const;
  [[nodiscard]] const std::vector<ErrorRow>& rows() const { return rows_; }

 private:
  std::vector<ErrorRow> rows_;
};

/// Reads configs/trust.yaml: `errors`, a list of maps with `of`, `workload`, `stack`, `device`, `set`, `figures`,
/// `center` and `spread`. Problems are reported; the result is then empty.
[[nodiscard]] PublishedErrors load_published_errors(const std::string& path, Diagnostics& diagnostics);
/// The file with these errors, which reads back as the same.
[[nodiscard]] std::string published_errors_file(const PublishedErrors& errors);

/// The errors that one run may have. Those of speed-ups and memory are empty where nothing was published.
struct RunErrors {
  RunKind kind;
  KindErrors step_time;
  std::optional<KindErrors> speedup{};
  std::optional<KindErrors> memory{};
};
/// Empty without published steps.
[[nodiscard]] std::optional<RunErrors> run_errors(const PublishedErrors& errors, const RunKind& kind);

}  // namespace hdpsim
