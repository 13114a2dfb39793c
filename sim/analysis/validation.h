#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// One published figure beside the prediction of it.
struct ValidationRow {
  std::string set;
  std::string case_name;
  std::string quantity;  ///< "step_time", "speedup hdp-balance", ...
  std::string unit;      ///< "s", "tokens/s", "GB", "x".
  double published = 0;  ///< Positive.
  std::optional<double> predicted;
  std::string not_predicted{};  ///< Why there is no prediction.
  std::string source;
  bool fitted = false;  ///< A constant of the set was taken from it: its error is no part of the set's.
  std::string job{};    ///< Cases with the same words here are plans of one job, which can be ranked; may be empty.

  /// predicted / published - 1, of a row that is predicted.
  [[nodiscard]] double error() const;
};

/// How well one set was predicted, over the rows that are and that no constant of the set was taken from.
struct ValidationSummary {
  std::string set;
  std::int64_t rows = 0;
  std::int64_t predicted = 0;   ///< Rows whose errors count.
  std::int64_t fitted = 0;      ///< Rows that are predicted and whose errors do not count.
  double median_abs_error = 0;  ///< Of the absolute relative errors, as are the next two; 0 without a predicted row.
  double worst_abs_error = 0;
  double mean_abs_error = 0;
  double median_error = 0;                 ///< With its sign.
  std::optional<double> ranking;           ///< ranking_tau() of its jobs; nothing if no two plans can be ranked.
  std::vector<std::string> not_predicted;  ///< Reasons with their counts: "12 x pipelines cannot be ...".
};

/// One plan of a job (the group), for kendall_tau().
struct RankedPair {
  std::string group;
  double published = 0;
  double predicted = 0;
};
/// Kendall's rank correlation of two lists of the same length, over the pairs that belong to the same group: concordant
/// less discordant over all of them (tau-a); pairs that are equal in either list count as neither. 1: every pair of
/// plans of a job is in the published order. Nothing without a pair.
[[nodiscard]] std::optional<double> kendall_tau(const std::vector<RankedPair>& values);

/// One summary a set, in the order in which the sets first occur.
[[nodiscard]] std::vector<ValidationSummary> summarize(const std::vector<ValidationRow>& rows);

}  // namespace hdpsim
