#include "sim/engine/impl/probe_curves.h"

#include <algorithm>
#include <cstddef>

namespace hdpsim {
namespace {

// Solves a x + b y = r for two samples.
std::array<double, 2> solved(const std::array<double, 3>& first, const std::array<double, 3>& second) {
  const double determinant = first[0] * second[1] - second[0] * first[1];
  return {(first[2] * second[1] - second[2] * first[1]) / determinant,
          (first[0] * second[2] - second[0] * first[2]) / determinant};
}

}  // namespace

Curve curve_through(const ProbeSamples& s) {
  const auto difference = [&](std::size_t i) {
    return std::array{s[i].area - s[1].area, s[i].tokens - s[1].tokens, s[i].seconds - s[1].seconds};
  };
  const auto all = solved(difference(0), difference(2));
  const double fixed = s[1].seconds - all[0] * s[1].area - all[1] * s[1].tokens;
  if (all[0] >= 0 && all[1] >= 0 && fixed >= 0) return {all[0], all[1], fixed};
  const auto linear = solved({s[1].area, s[1].tokens, s[1].seconds}, {s[2].area, s[2].tokens, s[2].seconds});
  if (linear[0] >= 0 && linear[1] >= 0) return {linear[0], linear[1], 0};
  const auto constant = solved({s[1].area, 1, s[1].seconds}, {s[2].area, 1, s[2].seconds});
  if (constant[0] >= 0 && constant[1] >= 0) return {constant[0], 0, constant[1]};
  return {s[2].seconds / s[2].area, 0, 0};
}

Curve line_through(const ProbeSample& first, const ProbeSample& second) {
  const double slope = std::max(0.0, (second.seconds - first.seconds) / (second.tokens - first.tokens));
  const double fixed = first.seconds - slope * first.tokens;
  if (fixed >= 0) return {0, slope, fixed};
  return {0, second.seconds / second.tokens, 0};
}

}  // namespace hdpsim
