#pragma once

namespace hdpsim {

/// The probability that a variable of Student's t distribution with `freedom` degrees of freedom is at most `t`: the
/// series of Abramowitz and Stegun, 26.7.3 and 26.7.4. Requires freedom >= 1 (checked). O(freedom).
[[nodiscard]] double student_probability(double t, int freedom);

/// The value that such a variable exceeds with probability 1 - p. Requires 0 < p < 1 and freedom >= 1 (checked).
[[nodiscard]] double student_quantile(double p, int freedom);

}  // namespace hdpsim
