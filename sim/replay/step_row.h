#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/step_result.h"
#include "sim/document/json.h"
#include "sim/engine/timeline.h"
#include "sim/results/figure_table.h"
#include "sim/trace/sequence.h"

namespace hdpsim {

/// Summary of the lengths of a batch.
struct BatchFigures {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t longest = 0;
  double weighted_length = 0;  ///< Sum of s^2 over sum of s: the mean length of a token's sequence.

  [[nodiscard]] double squares() const { return weighted_length * static_cast<double>(tokens); }
  friend bool operator==(const BatchFigures&, const BatchFigures&) = default;
};
[[nodiscard]] BatchFigures figures_of(const Batch& batch);

/// What tables say of two of these.
[[nodiscard]] FigureText longest_text();
[[nodiscard]] FigureText weighted_length_text();

/// All that a replay keeps of one plan in one step. Times in seconds, memory in GB (1e9). Each is the number as the
/// file states it, so that a row from the journal is the same row.
struct StepRow {
  std::int64_t step = 0;
  std::size_t plan = 0;  ///< Index into the plans of the study.
  BatchFigures batch;
  std::int64_t micro_batches = 0;
  double time_s = 0;
  std::array<double, activity_count> breakdown_s{};  ///< Mean over ranks, by Activity.
  double busy_min_s = 0;                             ///< Busy time of a rank, without waiting for others.
  double busy_mean_s = 0;
  double busy_max_s = 0;
  double device_gb = 0;  ///< At the fullest moment of the fullest device.
  double host_gb = 0;
  double device_at_most_gb = 0;  ///< The same device with the largest gaps of the allocator (with_largest_gaps()).

  friend bool operator==(const StepRow&, const StepRow&) = default;
};
[[nodiscard]] StepRow row_of(const StepResult& result, const BatchFigures& batch, std::size_t plan);
/// The figures of a row in a journal, in the order of the columns; its step and plan are its key.
void to_json(Json& json, const StepRow& row);
void from_json(const Json& json, StepRow& row);

/// Writes rows of a CSV file. `plans` are the names in the rows.
class StepTable {
 public:
  explicit StepTable(std::vector<std::string> plans) : plans_(std::move(plans)) {}

  /// The columns after step and plan.
  [[nodiscard]] static const FigureTable<StepRow>& figures();
  static void write_header(TableSink& sink);
  void write(const StepRow& row, TableSink& sink) const;

  [[nodiscard]] static std::string header() { return csv_text(write_header); }
  /// The row with its line end; numbers are the shortest that read back exactly.
  [[nodiscard]] std::string line(const StepRow& row) const;

 private:
  std::vector<std::string> plans_;
};

}  // namespace hdpsim
