#include "sim/trust/student.h"

#include <cmath>
#include <numbers>

#include "sim/base/check.h"

namespace hdpsim {

double student_probability(double t, int freedom) {
  HDPSIM_CHECK(freedom >= 1, "Student's distribution with {} degrees of freedom", freedom);
  const double angle = std::atan(t / std::sqrt(freedom));
  const double cosine = std::cos(angle);
  double term = freedom % 2 == 1 ? cosine : 1.0;
  double sum = freedom == 1 ? 0.0 : term;
  for (int i = freedom % 2 == 1 ? 3 : 2; i <= freedom - 2; i += 2) {
    term *= cosine * cosine * (i - 1) / i;
    sum += term;
  }
  const double within = freedom % 2 == 1 ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum)
                                         : std::sin(angle) * sum;  // P(|T| <= t), with the sign of t
  return 0.5 * (1 + within);
}

double student_quantile(double p, int freedom) {
  HDPSIM_CHECK(p > 0 && p < 1, "the quantile {} of a distribution", p);
  if (p < 0.5) return -student_quantile(1 - p, freedom);
  double low = 0;
  double high = 1;
  while (student_probability(high, freedom) < p) high *= 2;
  for (int halving = 0; halving < 200 && high - low > 1e-12 * high; ++halving) {
    const double middle = (low + high) / 2;
    (student_probability(middle, freedom) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace hdpsim
