#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/document/json.h"
#include "sim/trace/length_distribution.h"
#include "sim/trace/length_source.h"
#include "sim/trace/length_tally.h"

namespace hdpsim {

/// How well a fitted distribution matches the lengths that it was fitted to.
struct Goodness {
  /// Kolmogorov-Smirnov: the largest difference of the cumulative distributions over all lengths.
  double ks_distance = 0;
  /// The largest difference of the share of tokens above 4Ki, 8Ki ... 2Mi.
  double token_share_error = 0;
};

/// Both families fitted to one set of lengths, on the buckets of a tally.
struct LengthFit {
  struct Body {
    Lognormal parameters;  ///< Maximum-likelihood estimates.
    Goodness goodness;
  };
  struct Tailed {
    /// The threshold is the best one of a scan; the body is fitted by maximum likelihood below it, alpha above it by
    /// Hill's estimator for a truncated tail (Aban, Meerschaert and Panorska, 2006).
    LognormalPareto parameters;
    Goodness goodness;
  };

  Body lognormal;
  std::optional<Tailed> lognormal_pareto;  ///< Empty if no threshold leaves a tail that can be fitted.
  /// Whether the tail justifies its parameters: it lowers the sum of the goodness figures by at least a tenth.
  bool tail_is_better = false;
};

/// Fits both families. InputError if there are fewer than 100 lengths or all are equal.
[[nodiscard]] LengthFit fit(const LengthTally& tally);
[[nodiscard]] LengthFit fit(LengthSource& source);
/// The distribution of the better family.
[[nodiscard]] LengthDistributionPtr make_distribution(const LengthFit& fit);

[[nodiscard]] std::string text_of(const LengthFit& fit);
[[nodiscard]] std::string csv_of(const LengthFit& fit);
/// The fit as JSON, schema `hdpsim.length-fit/1`.
[[nodiscard]] Json json_of(const LengthFit& fit);

}  // namespace hdpsim
