#include "sim/plan/impl/hydraulis_candidates.h"

#include <algorithm>
#include <utility>

namespace hdpsim {
namespace {

PipelineDegrees alike(std::int64_t ranks, std::int64_t degree) {
  return PipelineDegrees(static_cast<std::size_t>(ranks / degree), degree);
}

// `wide` pipelines of one degree, and the other ranks in pipelines of another one.
PipelineDegrees degrees_beside(std::int64_t ranks, std::int64_t wide, std::int64_t degree, std::int64_t other) {
  PipelineDegrees degrees(static_cast<std::size_t>(wide), degree);
  degrees.insert(degrees.end(), static_cast<std::size_t>((ranks - wide * degree) / other), other);
  return degrees;
}

// Half of the ranks that are left to each degree, which is half of the one before, as long as it can be halved.
PipelineDegrees steps(std::int64_t ranks, std::int64_t degree) {
  PipelineDegrees degrees;
  for (std::int64_t left = ranks; left > 0; degree /= 2) {
    const bool is_last = degree % 2 != 0 || left == degree;
    const std::int64_t count = is_last ? left / degree : std::max<std::int64_t>(1, left / 2 / degree);
    degrees.insert(degrees.end(), static_cast<std::size_t>(count), degree);
    left -= count * degree;
  }
  return degrees;
}

}  // namespace

std::vector<PipelineDegrees> usual_strategies(std::int64_t ranks, std::int64_t holding) {
  std::vector<PipelineDegrees> all;
  const auto add = [&all](PipelineDegrees degrees) {
    if (std::find(all.begin(), all.end(), degrees) == all.end()) all.push_back(std::move(degrees));
  };
  for (std::int64_t degree = 1; ranks % degree == 0; degree *= 2) add(alike(ranks, degree));
  add(alike(ranks, holding));
  for (std::int64_t other = 1; other < holding && holding % other == 0; other *= 2) {
    add(degrees_beside(ranks, 1, holding, other));
    add(degrees_beside(ranks, std::max<std::int64_t>(1, ranks / 2 / holding), holding, other));
  }
  add(steps(ranks, holding));
  for (std::int64_t degree = 2; degree < holding && ranks % degree == 0; degree *= 2) add(steps(ranks, degree));
  return all;
}

}  // namespace hdpsim
