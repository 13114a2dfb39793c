#include "sim/relayout/min_max_split.h"

#include <algorithm>
#include <cmath>

namespace hdpsim {
namespace {

// cost x items may be a little more than the quotient says.
constexpr double rounding = 1e-9;

// Items that one of a part takes without more than `cost`.
std::int64_t items_within(double cost, const SplitPart& part, std::int64_t total) {
  const double items = std::floor(cost / part.cost * (1 + rounding));
  const auto most = std::min(part.most, total);
  return items >= static_cast<double>(most) ? most : static_cast<std::int64_t>(items);
}

// `cost` is at least that of the items that parts have to take.
bool all_are_dealt(double cost, std::int64_t total, std::span<const SplitPart> parts) {
  std::int64_t left = total;
  for (const SplitPart& part : parts) {
    const std::int64_t each = items_within(cost, part, total);
    if (each > 0 && part.times > left / each) return true;
    left -= each * part.times;
  }
  return left <= 0;
}

double cost_of_least(std::span<const SplitPart> parts) {
  double most = 0;
  for (const SplitPart& part : parts) most = std::max(most, part.cost * static_cast<double>(part.least));
  return most;
}

bool can_be_dealt(std::int64_t total, std::span<const SplitPart> parts) {
  double least = 0;
  double most = 0;
  for (const SplitPart& part : parts) {
    if (part.least > part.most) return false;
    least += static_cast<double>(part.least) * static_cast<double>(part.times);
    most += static_cast<double>(std::min(part.most, total)) * static_cast<double>(part.times);
  }
  return least <= static_cast<double>(total) && static_cast<double>(total) <= most;
}

}  // namespace

std::optional<double> least_maximum(std::int64_t total, std::span<const SplitPart> parts) {
  if (!can_be_dealt(total, parts)) return std::nullopt;
  const double floor = cost_of_least(parts);
  if (all_are_dealt(floor, total, parts)) return floor;
  double best = std::numeric_limits<double>::infinity();
  for (const SplitPart& part : parts) {  // the maximum is that of some part
    std::int64_t below = 0;              // too few
    std::int64_t enough = std::min(part.most, total) + 1;
    while (below + 1 < enough) {
      const std::int64_t middle = below + (enough - below) / 2;
      const double cost = part.cost * static_cast<double>(middle);
      (cost >= floor && all_are_dealt(cost, total, parts) ? enough : below) = middle;
    }
    if (enough <= std::min(part.most, total)) best = std::min(best, part.cost * static_cast<double>(enough));
  }
  return best;
}

std::optional<std::vector<std::int64_t>> min_max_split(std::int64_t total, std::span<const SplitPart> parts) {
  const std::optional<double> maximum = least_maximum(total, parts);
  if (!maximum) return std::nullopt;
  std::vector<std::int64_t> items;
  std::vector<const SplitPart*> whose;
  std::int64_t surplus = -total;
  for (const SplitPart& part : parts) {
    const std::int64_t each = items_within(*maximum, part, total);
    items.insert(items.end(), static_cast<std::size_t>(part.times), each);
    whose.insert(whose.end(), static_cast<std::size_t>(part.times), &part);
    surplus += each * part.times;
  }
  const auto cost = [&](std::size_t i) {
    return items[i] > whose[i]->least ? whose[i]->cost * static_cast<double>(items[i]) : -1;
  };
  for (; surplus > 0; --surplus) {
    std::size_t largest = 0;
    for (std::size_t i = 1; i < items.size(); ++i) {
      if (cost(i) > cost(largest)) largest = i;
    }
    --items[largest];
  }
  return items;
}

}  // namespace hdpsim
