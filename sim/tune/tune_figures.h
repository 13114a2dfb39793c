#pragma once

#include <cstddef>
#include <optional>

#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"
#include "sim/study/study_options.h"
#include "sim/tune/tune.h"

namespace hdpsim {

/// A candidate of a tuning at its place in the ranking.
struct RankedCandidate {
  std::size_t rank = 1;  ///< From 1.
  const TunedCandidate* candidate = nullptr;
  const std::optional<Price>* price = nullptr;
};

/// The figures of a candidate, in candidates.csv and tune.json.
[[nodiscard]] const FigureTable<RankedCandidate>& candidate_figures();

/// The figures of a tuning's results.
[[nodiscard]] FigureSection tuning_figures();

[[nodiscard]] std::string_view fate_name(TunedCandidate::Fate fate);

}  // namespace hdpsim
