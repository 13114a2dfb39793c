#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/random.h"

namespace hdpsim {

/// The most tokens of a document; a larger number in a trace counts as damage.
inline constexpr std::int64_t longest_length = std::int64_t{1} << 40;

/// The distribution of document lengths, as its inverse cumulative distribution, so that one uniform number makes one
/// length. Pure: same argument, same answer; safe to share between threads.
class LengthDistribution {
 public:
  LengthDistribution() = default;
  LengthDistribution(const LengthDistribution&) = delete;
  LengthDistribution& operator=(const LengthDistribution&) = delete;
  virtual ~LengthDistribution() = default;

  /// The length in tokens, from 1 to longest_length, that a share `u` of the documents does not exceed. `u` in [0, 1];
  /// never falls as `u` rises.
  [[nodiscard]] virtual std::int64_t quantile(double u) const = 0;

  [[nodiscard]] std::int64_t draw(RandomStream& random) const { return quantile(random.uniform()); }
};

using LengthDistributionPtr = std::shared_ptr<const LengthDistribution>;

/// ln(tokens) is normal with mean `mu` and deviation `sigma`, conditioned on [min, max], rounded to whole tokens.
struct Lognormal {
  double mu = 0;
  double sigma = 1;
  std::int64_t min = 1;
  std::int64_t max = longest_length;
};

/// A lognormal body in [min, tail_from] and a Pareto tail in [tail_from, max]: P(length > s) falls as s^-alpha there.
struct LognormalPareto {
  double mu = 0;
  double sigma = 1;
  std::int64_t tail_from = 0;
  double alpha = 2;
  std::int64_t min = 1;
  std::int64_t max = longest_length;
  /// Share of the documents in the tail; if empty, the share that the lognormal has above tail_from.
  std::optional<double> tail_share = {};
};

/// `weight` (of any scale) of the documents have lengths in [lower, upper], log-uniform there.
struct LengthBin {
  std::int64_t lower = 1;
  std::int64_t upper = 1;
  double weight = 0;
};

/// A share `quantile` of the documents is at most `length` long.
struct QuantilePoint {
  double quantile = 0;
  std::int64_t length = 1;
};

/// The documents of one class hold `token_share` (of any scale) of all tokens. The edge is its largest or its smallest
/// length, as the mixture says.
struct TokenShareClass {
  std::int64_t edge = 0;
  double token_share = 0;
};

enum class ClassEdges { upper, lower };

/// Classes by the share of *tokens* that they hold; lengths are log-uniform inside a class. Publications print such
/// shares without saying which edge of a class the label is, hence the parameter.
struct TokenShareMixture {
  std::vector<TokenShareClass> classes;  ///< Ascending edges.
  ClassEdges edges = ClassEdges::lower;  ///< `lower`: the last class ends at twice its edge.
  std::int64_t lowest = 256;             ///< The shortest length of the lowest class, under both conventions.
};

// Every factory throws InputError with all problems of its parameters, by their names.
[[nodiscard]] LengthDistributionPtr make_distribution(const Lognormal& parameters);
[[nodiscard]] LengthDistributionPtr make_distribution(const LognormalPareto& parameters);
/// Requires bins that ascend and do not overlap.
[[nodiscard]] LengthDistributionPtr make_distribution(const std::vector<LengthBin>& bins);
/// Requires quantiles that ascend from 0 to 1 and lengths that do not fall; log-linear between the points.
[[nodiscard]] LengthDistributionPtr make_distribution(const std::vector<QuantilePoint>& table);
/// Draws a class in proportion to its token share over its mean length, which reproduces the token shares.
[[nodiscard]] LengthDistributionPtr make_distribution(const TokenShareMixture& mixture);

}  // namespace hdpsim
