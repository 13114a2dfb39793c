#include "calib/measure/impl/nccl_tests_ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "calib/fit/impl/link_profile.h"

namespace hdpsim::calib {
namespace {

constexpr double rounding = 0.005;  // of what is printed in hundredths
constexpr std::int64_t most_ranks = 65536;

}  // namespace

void BandwidthRatio::add(double algorithm, double bus) {
  if (!(algorithm > rounding && bus > rounding)) return;  // too slow a row to tell anything
  least_ = std::max(least_, (bus - rounding) / (algorithm + rounding));
  most_ = std::min(most_, (bus + rounding) / (algorithm - rounding));
}

bool BandwidthRatio::holds(MessageKind kind, std::int64_t ranks) const {
  const double factor = bus_factor(kind, ranks);
  return least_ <= factor && factor <= most_;
}

std::string BandwidthRatio::ranks_text(MessageKind kind) const {
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::int64_t ranks = 2; ranks <= most_ranks; ++ranks) {
    if (!holds(kind, ranks)) continue;
    if (first == 0) first = ranks;
    last = ranks;
  }
  if (first == 0) return {};
  return first == last ? fmt::format("{} ranks", first) : fmt::format("{} to {} ranks", first, last);
}

}  // namespace hdpsim::calib
