#include "sim/plan/impl/ring_sizing.h"

#include <algorithm>
#include <cmath>

namespace hdpsim {
namespace {

// Six decimals, so that plan files stay readable; up, so that the rank still holds its tokens.
double round_up(double ratio) {
  constexpr double decimals = 1e6;
  return std::min(1.0, std::ceil(ratio * decimals - 1e-6) / decimals);
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a - 1) / b + 1;
}

}  // namespace

double RingSizing::seconds(std::int64_t tokens, std::int64_t degree) const {
  return context_.work.seconds(causal_pairs(tokens), tokens, degree);
}

double RingSizing::work(std::int64_t tokens, std::int64_t degree) const {
  return static_cast<double>(degree) * seconds(tokens, degree);
}

std::int64_t RingSizing::plain_degree(std::int64_t tokens) const {
  return ceil_divide(tokens, context_.capacity);
}

std::int64_t RingSizing::degree_within(std::int64_t tokens, double seconds, std::int64_t most) const {
  const double left = seconds - context_.work.per_micro_batch;
  const double compute = context_.work.compute_seconds(causal_pairs(tokens), tokens);
  if (compute >= left * static_cast<double>(most)) return most;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(compute / left)));
}

std::int64_t RingSizing::widest_hidden_ring(std::int64_t tokens, std::int64_t degree) const {
  const WorkModel& work = context_.work;
  const double area = causal_pairs(tokens);
  const auto hidden = [&](std::int64_t d) {
    const auto ranks = static_cast<double>(d);
    const double transfer =
        (ranks - 1) * (work.per_ring_step + work.per_ring_token * static_cast<double>(tokens) / ranks);
    return transfer <= work.per_area * area / ranks;
  };
  std::int64_t widest = degree;
  std::int64_t exposed = std::max(degree, std::min(context_.ranks, tokens)) + 1;
  while (exposed - widest > 1) {
    const std::int64_t middle = widest + (exposed - widest) / 2;
    (hidden(middle) ? widest : exposed) = middle;
  }
  return widest;
}

double RingSizing::least_share_in_memory() const {
  const double floor = resident_share(1, context_.layers);
  const auto capacity = static_cast<double>(context_.capacity);
  const auto host = static_cast<double>(context_.host_tokens.value_or(0));
  return std::max(floor, capacity / (capacity + host));
}

// (1 - share) x copy time of all layers = forward time. Both are per rank and fall alike with D, so that D drops out.
std::int64_t RingSizing::least_degree_hidden(std::int64_t tokens) const {
  const double copy = context_.work.offload_per_token * static_cast<double>(tokens);
  if (copy <= 0) return plain_degree(tokens);
  const double share = 1 - std::min(1.0, context_.work.forward_seconds(causal_pairs(tokens), tokens) / copy);
  const auto capacity = static_cast<double>(context_.capacity);
  if (capacity >= share * static_cast<double>(tokens)) return 1;
  return ceil_divide(tokens, static_cast<std::int64_t>(std::floor(capacity / share)));
}

std::int64_t RingSizing::most_tokens_per_rank() const {
  if (rule_.mode == OffloadRule::Mode::none) return context_.capacity;
  double share = least_share_in_memory();
  if (rule_.mode == OffloadRule::Mode::fixed) share = std::max(share, resident_share(rule_.ratio, context_.layers));
  return static_cast<std::int64_t>(std::floor(static_cast<double>(context_.capacity) / share + 1e-9));
}

// The least ratio that lets a rank hold its tokens; a fixed rule's own ratio, unless host memory cannot take that much.
double RingSizing::offload_for(std::int64_t tokens_per_rank) const {
  if (rule_.mode == OffloadRule::Mode::none || context_.layers <= 2) return 0;
  const auto tokens = static_cast<double>(tokens_per_rank);
  const auto movable = tokens * (1 - resident_share(1, context_.layers));
  const double needed = std::max(0.0, tokens - static_cast<double>(context_.capacity)) / movable;
  if (rule_.mode == OffloadRule::Mode::automatic) return round_up(needed);
  return std::min(rule_.ratio, round_up(static_cast<double>(context_.host_tokens.value_or(0)) / movable));
}

RingSize RingSizing::size(std::int64_t tokens, double longest_seconds) const {
  const std::int64_t plain = plain_degree(tokens);
  if (rule_.mode == OffloadRule::Mode::none) return {plain, 0};
  const std::int64_t in_memory = ceil_divide(tokens, most_tokens_per_rank());
  std::int64_t wanted = degree_within(tokens, longest_seconds, plain);
  if (rule_.mode == OffloadRule::Mode::automatic) wanted = std::max(wanted, least_degree_hidden(tokens));
  const std::int64_t degree = std::max(in_memory, std::min({wanted, plain, context_.ranks}));
  return {degree, offload_for(ceil_divide(tokens, degree))};
}

Shares balanced_shares(const Batch& batch, const PlanningContext& context, const RingSizing& sizing) {
  const double fixed_per_token = context.work.per_micro_batch / static_cast<double>(context.capacity);
  double in_short = 0;
  double in_plain_rings = 0;
  for (const Sequence& sequence : batch.sequences) {
    if (sequence.tokens < context.capacity) {
      in_short += context.work.compute_seconds(causal_pairs(sequence.tokens), sequence.tokens);
      in_short += fixed_per_token * static_cast<double>(sequence.tokens);
    } else {
      in_plain_rings += sizing.work(sequence.tokens, sizing.plain_degree(sequence.tokens));
    }
  }
  const auto ranks = static_cast<double>(context.ranks);
  const double plain_share = (in_short + in_plain_rings) / ranks;
  double in_rings = 0;
  for (const Sequence& sequence : batch.sequences) {
    if (sequence.tokens < context.capacity) continue;
    in_rings += sizing.work(sequence.tokens, sizing.size(sequence.tokens, plain_share).degree);
  }
  const double step = (in_short + in_rings) / ranks;
  const double tokens_per_wave = ranks * static_cast<double>(context.capacity);
  return {step, step / std::max(1.0, static_cast<double>(batch.tokens()) / tokens_per_wave)};
}

}  // namespace hdpsim
