#include "sim/plan/step_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/division.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

// What a sequence adds to the seconds of all ranks of a ring, apart from what the ring pays once and as if all
// exchanges hid behind attention: RingPass::seconds() times the ranks, with a block of area / ranks^2.
struct RingWork {
  double whole = 0;     ///< Seconds with any number of ranks,
  double per_rank = 0;  ///< for each rank of the ring,
  double divided = 0;   ///< and those that are divided by the ranks.
  [[nodiscard]] double at(std::int64_t ranks) const {
    return whole + per_rank * static_cast<double>(ranks) + divided / static_cast<double>(ranks);
  }
};

RingWork ring_work(std::int64_t tokens, const RingPasses& ring) {
  const double area = causal_pairs(tokens);
  const auto count = static_cast<double>(tokens);
  RingWork work{.whole = ring.per_token * count};
  for (const RingPass& pass : {ring.forward, ring.backward}) {
    const double unlike_area = pass.own.per_area + pass.last_step.per_area - 2 * pass.step.per_area;
    const double unlike_token = pass.own.per_token + pass.last_step.per_token - 2 * pass.step.per_token;
    work.whole += pass.step.per_area * area + (unlike_token + pass.traded.per_token) * count;
    work.per_rank += pass.step.per_token * count;
    work.divided += unlike_area * area - pass.traded.per_token * count;
  }
  return work;
}

// The same on the number of ranks from `narrowest` to `ranks` on which it is least.
double least_in_rings(std::int64_t tokens, std::int64_t narrowest, std::int64_t ranks, const RingPasses& passes) {
  const RingWork ring = ring_work(tokens, passes);
  const double best = std::min(ring.at(narrowest), ring.at(ranks));
  if (ring.divided <= 0 || ring.per_rank <= 0) return best;  // the least is at an end
  const double turn = std::sqrt(ring.divided / ring.per_rank);
  const auto below = static_cast<std::int64_t>(
      std::clamp(std::floor(turn), static_cast<double>(narrowest), static_cast<double>(ranks)));
  return std::min({best, ring.at(below), ring.at(std::min(below + 1, ranks))});
}

// The least seconds of all ranks together that a sequence takes on at least `least` of `ranks` ranks.
double least_work(std::int64_t tokens, std::int64_t least, std::int64_t ranks, const WorkModel& work) {
  double best = std::numeric_limits<double>::infinity();
  if (least == 1) best = work.compute_seconds(causal_pairs(tokens), tokens);
  const std::int64_t narrowest = std::max<std::int64_t>(2, least);
  if (narrowest > ranks) return best;
  best = std::min(best, least_in_rings(tokens, narrowest, ranks, work.passes));
  for (const WorkModel& other : work.others) {
    best = std::min(best, least_in_rings(tokens, narrowest, ranks, other.passes));
  }
  return best;
}

double fixed_seconds(const RingPasses& passes) {
  double fixed = passes.per_micro_batch;
  for (const RingPass& pass : {passes.forward, passes.backward}) fixed += pass.own.fixed + pass.last_step.fixed;
  return fixed;
}

// The least that one rank pays once for a micro-batch.
double fixed_seconds(const WorkModel& work, const BoundedPool& pool) {
  double least = work.per_micro_batch;
  if (pool.ranks == 1) return least;
  least = std::min(least, fixed_seconds(work.passes));
  for (const WorkModel& other : work.others) least = std::min(least, fixed_seconds(other.passes));
  return least;
}

// The fewest ranks that hold a sequence: all, where not even they do.
std::int64_t fewest_ranks(std::int64_t tokens, const BoundedPool& pool) {
  return std::min(divided(tokens, pool.capacity), pool.ranks);
}

double alone(std::int64_t tokens, const BoundedPool& pool, const WorkModel& work) {
  const double area = causal_pairs(tokens);
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t degree = fewest_ranks(tokens, pool); degree <= pool.ranks; ++degree) {
    best = std::min({best, work.seconds(area, tokens, degree, false), work.seconds(area, tokens, degree, true)});
  }
  return best;
}

}  // namespace

double StepBounds::step() const {
  return std::max({area, memory, capacity, longest + fill});
}

const char* StepBounds::reason() const {
  if (longest + fill >= std::max(memory, capacity)) return "longest";
  if (capacity > memory) return "capacity";
  return memory > area ? "memory" : "area";
}

StepBounds step_bounds(const Batch& batch, const BoundedPool& pool, const WorkModel& estimate) {
  const WorkModel work = estimate.lower_bound();
  StepBounds bounds;
  if (batch.sequences.empty()) return bounds;
  std::int64_t longest = 0;
  for (const Sequence& sequence : batch.sequences) {
    const std::int64_t least = fewest_ranks(sequence.tokens, pool);
    const double anywhere = least_work(sequence.tokens, 1, pool.ranks, work);
    bounds.area += anywhere;
    bounds.memory += least == 1 ? anywhere : least_work(sequence.tokens, least, pool.ranks, work);
    longest = std::max(longest, sequence.tokens);
  }
  const auto ranks = static_cast<double>(pool.ranks);
  bounds.area /= ranks;
  bounds.memory /= ranks;
  const std::int64_t rank_passes = divided(batch.tokens(), pool.capacity);
  const std::int64_t whole_rounds = divided(rank_passes, pool.ranks);
  const auto rounds = static_cast<double>(whole_rounds);
  bounds.capacity = std::max(bounds.memory + static_cast<double>(rank_passes) / ranks * fixed_seconds(work, pool),
                             rounds * work.least);
  bounds.longest = alone(longest, pool, work);
  bounds.fill = static_cast<double>(pool.stages - 1) * bounds.longest;
  return bounds;
}

StepBounds bounds_that_hold(const StepBounds& bounds, const Plan& plan) {
  const auto has_own = [](const MicroBatch& micro_batch) { return exchange_of(micro_batch.cut).has_value(); };
  const bool shares_otherwise = std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), has_own);
  return has_chunks_in_order(plan) || shares_otherwise ? StepBounds{.area = bounds.area} : bounds;
}

}  // namespace hdpsim
