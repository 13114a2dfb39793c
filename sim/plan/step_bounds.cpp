#include "sim/plan/step_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hdpsim {
namespace {

// What a sequence adds to the seconds of all ranks of a group of `degree`, apart from what the group pays once.
double sequence_work(std::int64_t tokens, std::int64_t degree, const WorkModel& work) {
  const auto ranks = static_cast<double>(degree);
  const auto count = static_cast<double>(tokens);
  return work.compute_seconds(causal_pairs(tokens), tokens) +
         (ranks - 1) * (work.step_area * causal_pairs(tokens) / ranks + work.step_token * count);
}

// The least of sequence_work() over degrees from `least` on. It is convex in the degree.
double least_work(std::int64_t tokens, std::int64_t least, std::int64_t ranks, const WorkModel& work) {
  double best = std::min(sequence_work(tokens, least, work), sequence_work(tokens, ranks, work));
  if (work.step_area < 0 && work.step_token > 0) {
    const double turn =
        std::sqrt(-work.step_area * causal_pairs(tokens) / (work.step_token * static_cast<double>(tokens)));
    const double first = std::clamp(std::floor(turn), static_cast<double>(least), static_cast<double>(ranks));
    const auto degree = static_cast<std::int64_t>(first);
    best =
        std::min({best, sequence_work(tokens, degree, work), sequence_work(tokens, std::min(degree + 1, ranks), work)});
  }
  return best;
}

double alone(std::int64_t tokens, const BoundedPool& pool, const WorkModel& work) {
  const double area = causal_pairs(tokens);
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t degree = (tokens - 1) / pool.capacity + 1; degree <= pool.ranks; ++degree) {
    best = std::min({best, work.seconds(area, tokens, degree, false), work.seconds(area, tokens, degree, true)});
  }
  return best;
}

}  // namespace

double StepBounds::step() const {
  return std::max({area, memory, capacity, longest}) + fill;
}

const char* StepBounds::reason() const {
  if (longest >= capacity) return "longest";
  if (capacity > memory) return "capacity";
  return memory > area ? "memory" : "area";
}

StepBounds step_bounds(const Batch& batch, const BoundedPool& pool, const WorkModel& work) {
  StepBounds bounds;
  if (batch.sequences.empty()) return bounds;
  std::int64_t longest = 0;
  for (const Sequence& sequence : batch.sequences) {
    const std::int64_t least = (sequence.tokens - 1) / pool.capacity + 1;
    bounds.area += least_work(sequence.tokens, 1, pool.ranks, work);
    bounds.memory += least_work(sequence.tokens, least, pool.ranks, work);
    longest = std::max(longest, sequence.tokens);
  }
  const auto ranks = static_cast<double>(pool.ranks);
  bounds.area /= ranks;
  bounds.memory /= ranks;
  const std::int64_t rank_passes = (batch.tokens() - 1) / pool.capacity + 1;
  const std::int64_t whole_rounds = (rank_passes - 1) / pool.ranks + 1;
  const auto rounds = static_cast<double>(whole_rounds);
  bounds.capacity =
      std::max(bounds.memory + static_cast<double>(rank_passes) / ranks * work.per_micro_batch, rounds * work.least);
  bounds.longest = alone(longest, pool, work);
  bounds.fill = static_cast<double>(pool.stages - 1) * bounds.longest;
  return bounds;
}

}  // namespace hdpsim
