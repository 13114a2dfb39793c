#pragma once

#include <array>

namespace hdpsim {

/// Seconds as a linear function of area and tokens. No coefficient is negative.
struct Curve {
  double per_area = 0;
  double per_token = 0;
  double fixed = 0;
};

/// What a probe took.
struct ProbeSample {
  double tokens = 0;
  double area = 0;
  double seconds = 0;
};
using ProbeSamples = std::array<ProbeSample, 3>;

/// The curve through all samples. Where this has a negative coefficient, it is the curve through the second and the
/// third sample without a constant or without tokens, or else the one through the third sample with area alone.
[[nodiscard]] Curve curve_through(const ProbeSamples& samples);
/// The line through two samples, with neither a negative slope nor a negative constant. Area does not count.
[[nodiscard]] Curve line_through(const ProbeSample& first, const ProbeSample& second);

}  // namespace hdpsim
