#pragma once

#include <string>
#include <vector>

#include "sim/results/figure_table.h"
#include "sim/results/format.h"
#include "sim/validate/prediction_errors.h"

namespace hdpsim {

/// The figures of a kind of run, in trust.csv.
[[nodiscard]] const FigureTable<KindTrust>& kind_trust_figures();

/// What `hdpsim validate --summary` prints: how far figures of each kind of run may be off, and how often that was so
/// for sets that did not say it; as a table, CSV or JSON, schema `hdpsim.trust/1`.
[[nodiscard]] std::string trust_formatted(const std::vector<ValidationRow>& rows, Format format);

}  // namespace hdpsim
