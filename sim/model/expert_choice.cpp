#include "sim/model/expert_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// The probability that none of `taken` different items out of `all` is among `marked` of these.
double none_of(std::int64_t marked, std::int64_t taken, std::int64_t all) {
  double probability = 1;
  for (std::int64_t i = 0; i < taken; ++i) {
    probability *= static_cast<double>(std::max<std::int64_t>(0, all - marked - i)) / static_cast<double>(all - i);
  }
  return probability;
}

// The probability that a token has one of the experts [first, last). Goes through the groups that have some of them,
// with the probability of each number of groups chosen so far and of experts that the token may have in them.
double has_one_of(const MixtureOfExperts& moe, std::int64_t first, std::int64_t last) {
  const std::int64_t of_group = moe.experts / moe.groups;
  std::map<std::pair<std::int64_t, std::int64_t>, double> states{{{0, 0}, 1.0}};
  std::int64_t seen = 0;
  for (std::int64_t group = first / of_group; group * of_group < last; ++group, ++seen) {
    const std::int64_t here = std::min(last, (group + 1) * of_group) - std::max(first, group * of_group);
    std::map<std::pair<std::int64_t, std::int64_t>, double> next;
    for (const auto& [state, probability] : states) {
      const auto [chosen, reached] = state;
      const double take = static_cast<double>(moe.groups_per_token - chosen) / static_cast<double>(moe.groups - seen);
      if (take > 0) next[{chosen + 1, reached + here}] += probability * take;
      if (take < 1) next[state] += probability * (1 - take);
    }
    states = std::move(next);
  }
  double found = 0;
  for (const auto& [state, probability] : states) {
    found += probability * (1 - none_of(state.second, moe.experts_per_token, moe.groups_per_token * of_group));
  }
  return found;
}

}  // namespace

double mean_parts(const MixtureOfExperts& moe, std::int64_t parts) {
  HDPSIM_CHECK(parts > 0 && moe.experts % parts == 0, "{} experts in {} parts", moe.experts, parts);
  const std::int64_t each = moe.experts / parts;
  double sum = 0;
  for (std::int64_t part = 0; part < parts; ++part) sum += has_one_of(moe, part * each, (part + 1) * each);
  return sum;
}

}  // namespace hdpsim
