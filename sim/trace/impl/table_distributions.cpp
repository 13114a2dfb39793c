#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/diagnostic.h"
#include "sim/trace/length_distribution.h"

namespace hdpsim {
namespace {

// The continuous range of a bin is [lower, upper + 1), rounded down.
double ratio(const LengthBin& bin) {
  return (static_cast<double>(bin.upper) + 1) / static_cast<double>(bin.lower);
}

class Histogram : public LengthDistribution {
 public:
  explicit Histogram(std::vector<LengthBin> bins) {
    std::erase_if(bins, [](const LengthBin& bin) { return bin.weight == 0; });
    const double all = std::accumulate(bins.begin(), bins.end(), 0.0,
                                       [](double sum, const LengthBin& bin) { return sum + bin.weight; });
    double below = 0;
    for (const LengthBin& bin : bins) {
      bins_.push_back({bin.lower, bin.upper, below / all, all / bin.weight, std::log(ratio(bin))});
      below += bin.weight;
    }
  }

  [[nodiscard]] std::int64_t quantile(double u) const override {
    const auto next = std::upper_bound(bins_.begin() + 1, bins_.end(), u,
                                       [](double value, const Bin& bin) { return value < bin.below; });
    const Bin& bin = *(next - 1);
    const double inside = (u - bin.below) * bin.per_share;
    const double length = static_cast<double>(bin.lower) * std::exp(inside * bin.log_ratio);
    return std::clamp(static_cast<std::int64_t>(length), bin.lower, bin.upper);
  }

 private:
  struct Bin {
    std::int64_t lower;
    std::int64_t upper;
    double below;      // share of the documents in shorter bins
    double per_share;  // 1 / share of the documents in this bin
    double log_ratio;
  };
  std::vector<Bin> bins_;
};

void check_bins(const std::vector<LengthBin>& bins, Diagnostics& problems) {
  double all = 0;
  std::int64_t previous = 0;
  for (const LengthBin& bin : bins) {
    if (bin.lower < 1 || bin.upper < bin.lower || bin.upper > longest_length) {
      problems.error({},
                     fmt::format("the bin [{}, {}] is not a range of lengths from 1 to 2^40", bin.lower, bin.upper));
    } else if (bin.lower <= previous) {
      problems.error({}, fmt::format("the bin [{}, {}] begins at or below {}, where the bin before it ends", bin.lower,
                                     bin.upper, previous));
    }
    if (!(bin.weight >= 0) || !std::isfinite(bin.weight)) {
      problems.error({}, fmt::format("the bin [{}, {}] has the weight {}", bin.lower, bin.upper, bin.weight));
    }
    previous = bin.upper;
    all += bin.weight;
  }
  if (problems.empty() && !(all > 0)) problems.error({}, "the histogram holds no documents");
}

// Mean of floor(X) for X log-uniform in [lower, upper + 1): the mean of X, (b - a) / ln(b / a), less one half. For
// lower >= 16 the half is exact to 1e-3 tokens.
double mean_length(const LengthBin& bin) {
  return static_cast<double>(bin.upper + 1 - bin.lower) / std::log(ratio(bin)) - 0.5;
}

void check_mixture(const TokenShareMixture& mixture, Diagnostics& problems) {
  if (mixture.classes.size() < 2) problems.error({}, "a mixture needs at least two classes");
  if (mixture.lowest < 16) problems.error({}, fmt::format("lowest {} is below 16 tokens", mixture.lowest));
  std::int64_t previous = 0;
  for (const TokenShareClass& part : mixture.classes) {
    if (part.edge <= previous || part.edge > longest_length / 2) {
      problems.error({}, fmt::format("the class edge {} is not above {} and at most 2^39", part.edge, previous));
    }
    if (!(part.token_share >= 0) || !std::isfinite(part.token_share)) {
      problems.error({}, fmt::format("the class {} has the token share {}", part.edge, part.token_share));
    }
    previous = part.edge;
  }
  if (!problems.empty()) return;
  const std::size_t first = mixture.edges == ClassEdges::upper ? 0 : 1;
  if (mixture.lowest >= mixture.classes[first].edge) {
    problems.error({}, fmt::format("lowest {} is not below {}, where the lowest class ends", mixture.lowest,
                                   mixture.classes[first].edge));
  }
}

std::vector<LengthBin> bins_of(const TokenShareMixture& mixture) {
  std::vector<LengthBin> bins;
  std::int64_t lower = mixture.lowest;
  for (std::size_t i = 0; i < mixture.classes.size(); ++i) {
    std::int64_t upper = mixture.classes[i].edge;
    if (mixture.edges == ClassEdges::lower) {
      upper = i + 1 < mixture.classes.size() ? mixture.classes[i + 1].edge : 2 * upper;
    }
    LengthBin bin{lower, upper, 0};
    bin.weight = mixture.classes[i].token_share / mean_length(bin);
    bins.push_back(bin);
    lower = upper + 1;
  }
  return bins;
}

class QuantileLengths : public LengthDistribution {
 public:
  explicit QuantileLengths(const std::vector<QuantilePoint>& table)
      : shortest_(table.front().length), longest_(table.back().length) {
    for (const QuantilePoint& point : table) {
      points_.push_back({point.quantile, std::log(static_cast<double>(point.length))});
    }
  }

  [[nodiscard]] std::int64_t quantile(double u) const override {
    const auto above = std::upper_bound(points_.begin() + 1, points_.end() - 1, u,
                                        [](double value, const Point& point) { return value < point.quantile; });
    const Point& a = *(above - 1);
    const Point& b = *above;
    const double inside = b.quantile > a.quantile ? (u - a.quantile) / (b.quantile - a.quantile) : 1;
    const double length = std::exp(a.log_length + inside * (b.log_length - a.log_length));
    return std::clamp(static_cast<std::int64_t>(std::llround(length)), shortest_, longest_);
  }

 private:
  struct Point {
    double quantile;
    double log_length;
  };
  std::vector<Point> points_;
  std::int64_t shortest_;
  std::int64_t longest_;
};

void check_table(const std::vector<QuantilePoint>& table, Diagnostics& problems) {
  if (table.size() < 2 || table.front().quantile != 0 || table.back().quantile != 1) {
    problems.error({}, "a quantile table begins at quantile 0 and ends at quantile 1");
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].length < 1 || table[i].length > longest_length) {
      problems.error(
          {}, fmt::format("length {} at quantile {} is not within 1 to 2^40", table[i].length, table[i].quantile));
    }
    if (i > 0 && !(table[i].quantile >= table[i - 1].quantile)) {
      problems.error({}, fmt::format("quantile {} comes after {}", table[i].quantile, table[i - 1].quantile));
    }
    if (i > 0 && table[i].length < table[i - 1].length) {
      problems.error({}, fmt::format("length {} at quantile {} is below {} at quantile {}", table[i].length,
                                     table[i].quantile, table[i - 1].length, table[i - 1].quantile));
    }
  }
}

}  // namespace

LengthDistributionPtr make_distribution(const std::vector<LengthBin>& bins) {
  Diagnostics problems;
  check_bins(bins, problems);
  problems.throw_if_any();
  return std::make_shared<Histogram>(bins);
}

LengthDistributionPtr make_distribution(const TokenShareMixture& mixture) {
  Diagnostics problems;
  check_mixture(mixture, problems);
  problems.throw_if_any();
  return make_distribution(bins_of(mixture));
}

LengthDistributionPtr make_distribution(const std::vector<QuantilePoint>& table) {
  Diagnostics problems;
  check_table(table, problems);
  problems.throw_if_any();
  return std::make_shared<QuantileLengths>(table);
}

}  // namespace hdpsim
