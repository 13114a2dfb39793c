#pragma once

#include <string>
#include <vector>

#include "sim/compare/comparison_figures.h"
#include "sim/document/json.h"

namespace hdpsim {

// Comparisons of one or several plans as text. Times are seconds; errors are relative to what was measured.

/// Kendall's tau of the plans' step times, predicted against measured; empty for fewer than two plans.
[[nodiscard]] std::optional<double> ranking_agreement(const std::vector<Comparison>& plans);

/// For a person at a terminal: the step times, then for each plan the families that are predicted worst, the
/// activities, and the ranks (the worst predicted of them if there are many).
[[nodiscard]] std::string comparison_table(const std::vector<Comparison>& plans);
/// The figures of a plan, with those of some of its workers, for the JSON and the page.
[[nodiscard]] Json plan_json(const Comparison& plan, const std::vector<ComparedWorker>& workers);
/// The comparisons as JSON, schema `hdpsim.comparison/1`. For one plan:
///   {"schema", "plan", "steps": [0], "runs": 4, "step_time_s": {"predicted", "measured", "noise_floor"},
///    "core_share": 1, "on_core_s": {"predicted", "measured"},
///    "families": [{"family", "instructions", "predicted_s", "measured_s"}],
///    "activities": [{"activity", "predicted_s", "measured_s"}],
///    "ranks": [{"rank", "busy_s": {"predicted", "measured"}, "exchange_s": {...}, "hidden_s": {...}}]}
/// For several plans: {"schema", "kendall_tau", "plans": [one such object without the schema, ...]}. Unknown values are
/// null.
[[nodiscard]] std::string comparison_json(const std::vector<Comparison>& plans);
/// The same as one HTML page that opens without a network: tables, and bars of predicted over measured figures. Every
/// text of a file is escaped.
[[nodiscard]] std::string comparison_page(const std::string& title, const std::vector<Comparison>& plans);
/// One row per plan and family: all of them, the largest difference first.
[[nodiscard]] std::string families_csv(const std::vector<Comparison>& plans);
/// One row per plan and rank.
[[nodiscard]] std::string compared_ranks_csv(const std::vector<Comparison>& plans);

/// The comparison of one or several plans as one self-contained HTML page: tables, and bars of predicted over measured
/// figures. No scripts; prints on paper. Every text of a file is escaped.
[[nodiscard]] std::string comparison_page(const std::string& title, const std::vector<Comparison>& plans);

}  // namespace hdpsim
