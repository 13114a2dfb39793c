#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/run/advice.h"
#include "sim/study/study.h"

namespace hdpsim {

/// How fast the plans of a point are where a step has so many tokens.
struct TokensRow {
  std::int64_t tokens_per_step = 0;
  std::vector<std::optional<double>> tokens_per_s;  ///< By plan; empty: refused, or it does not fit.
};

/// The plans of a point at a quarter, 4 and 16 times the tokens of its steps, each simulated with few steps, and
/// between them what `runs` say of its own. Numbers that the study cannot have, or that take long to simulate, are left
/// out. Empty where its own is the only one, where there is only one plan, and if it was stopped.
[[nodiscard]] std::vector<TokensRow> tokens_curve(const Study& study, const std::vector<Run>& runs, std::size_t point,
                                                  const AdviceOptions& options);

}  // namespace hdpsim
