#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hdpsim {

/// One plan of a job (the group).
struct RankedPair {
  std::string group;
  double published = 0;
  double predicted = 0;
};

/// Kendall's rank correlation of published and predicted values, over the pairs that belong to the same group: 1 if
/// they order every pair alike, -1 if none. Tau-b (Kendall, Biometrika 33, 1945), which takes ties into account:
///     (C - D) / sqrt(n1 n2)
/// for C pairs that both order alike, D pairs that they order differently, n1 pairs that the one does not tie and n2
/// that the other does not. Empty if one of them ties all. O(n^2) in a group: for plans, not for ranks.
[[nodiscard]] std::optional<double> kendall_tau(const std::vector<RankedPair>& values);

/// The same of two rankings of one group. The vectors are equally long (checked).
[[nodiscard]] std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace hdpsim
