#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hdpsim {

/// Kendall's rank correlation of two rankings of the same things: 1 if they order every pair alike, -1 if none. Tau-b
/// (Kendall, Biometrika 33, 1945), which takes ties into account: (C - D) / sqrt((n0 - n1) (n0 - n2)) for C pairs that
/// both order alike, D pairs that they order differently, n0 pairs in all, n1 and n2 of them tied in the one and in the
/// other. Empty if one of them ties all. The vectors are equally long (checked). O(n^2): for plans, not for ranks.
[[nodiscard]] std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

/// One plan of a job (the group).
struct RankedPair {
  std::string group;
  double published = 0;
  double predicted = 0;
};

/// Kendall's rank correlation of predicted and published values, over the pairs that belong to the same group:
/// concordant minus discordant over all pairs (tau-a); pairs that are equal in either list count as neither. 1: every
/// pair of plans of a job is in the published order. Empty without a pair.
[[nodiscard]] std::optional<double> kendall_tau(const std::vector<RankedPair>& values);

}  // namespace hdpsim
