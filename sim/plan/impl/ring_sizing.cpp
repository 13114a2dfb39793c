#include "sim/plan/impl/ring_sizing.h"

#include <algorithm>
#include <cmath>

#include "sim/base/division.h"
#include "sim/plan/plan_time.h"

namespace hdpsim {
namespace {

// Six decimals keep plan files readable. Ratios are rounded up so that the rank still holds its tokens, or down so that
// copies stay hidden.
constexpr double decimals = 1e6;
double round_up(double ratio) {
  return std::min(1.0, std::ceil(ratio * decimals - 1e-6) / decimals);
}
double round_down(double ratio) {
  return std::floor(ratio * decimals + 1e-6) / decimals;
}

// May exceed 1.
double hidden_copies(const WorkModel& work, double area, std::int64_t tokens) {
  return work.forward_seconds(area, tokens) / (work.offload_per_token * static_cast<double>(tokens));
}

// The place of the least of values that fall and then rise.
template <class Value>
std::int64_t turn_of(std::int64_t first, std::int64_t last, const Value& value) {
  if (last == first || value(last) <= value(last - 1)) return last;
  while (last > first) {
    const std::int64_t middle = first + (last - first) / 2;
    (value(middle) <= value(middle + 1) ? last : first) = value(middle) <= value(middle + 1) ? middle : middle + 1;
  }
  return first;
}

}  // namespace

double RingSizing::seconds(double area, std::int64_t tokens, const RingSize& size, bool near) const {
  return context_.work.seconds(area, tokens, size.degree, near) + offload_seconds(area, tokens, size);
}

double RingSizing::offload_seconds(double area, std::int64_t tokens, const RingSize& size) const {
  const auto ranks = static_cast<double>(size.degree);
  return hdpsim::offload_seconds(context_.work, area / ranks, static_cast<double>(tokens) / ranks, context_.layers,
                                 size.offload, size.token_wise);
}

double RingSizing::compute(std::int64_t tokens, const RingSize& size) const {
  const WorkModel& work = context_.work;
  const double linear = work.per_token * static_cast<double>(tokens) / static_cast<double>(size.degree);
  const double seconds = work.per_micro_batch + linear + work.attention(causal_pairs(tokens), tokens, size.degree);
  return std::max(work.least, seconds) + offload_seconds(causal_pairs(tokens), tokens, size);
}

double RingSizing::work(std::int64_t tokens, const RingSize& size) const {
  return static_cast<double>(size.degree) * compute(tokens, size);
}

std::int64_t RingSizing::plain_degree(std::int64_t tokens) const {
  return divided(tokens, context_.capacity);
}

std::int64_t RingSizing::narrowest_within(std::int64_t tokens, const RingSize& size, double seconds,
                                          std::int64_t most) const {
  const std::int64_t per_node = context_.work.ranks_per_node;
  const auto time = [&](std::int64_t degree) {
    return this->seconds(tokens, {degree, size.offload, size.token_wise}, degree <= per_node);
  };
  std::int64_t fastest = size.degree;
  double least = time(fastest);
  if (least <= seconds) return fastest;
  for (const auto& [first, last] :
       {std::pair{size.degree, std::min(most, per_node)}, std::pair{std::max(size.degree, per_node + 1), most}}) {
    if (first > last) continue;
    std::int64_t within = turn_of(first, last, time);
    if (time(within) < least) {
      fastest = within;
      least = time(within);
    }
    if (least > seconds) continue;
    std::int64_t longer = first - 1;
    while (within - longer > 1) {
      const std::int64_t middle = longer + (within - longer) / 2;
      (time(middle) > seconds ? longer : within) = middle;
    }
    return within;
  }
  return fastest;
}

// r, the share that stays, follows from r T <= C - u (T - C).
double RingSizing::tokens_held(double least_share) const {
  const double unmovable = context_.offload_room ? context_.offload_room->unmovable : 0;
  return (1 + unmovable) * static_cast<double>(context_.capacity) / (least_share + unmovable) - rounding();
}

// T - (C - u (T - C)) = (1 + u) (T - C) of T tokens leave. Of a stated ratio its share of all tokens leaves; with
// token-wise offload, at least the share that is never recomputed goes to the host.
double RingSizing::tokens_the_host_holds() const {
  const auto host = static_cast<double>(context_.host_tokens.value_or(0));
  const double unmovable = context_.offload_room ? context_.offload_room->unmovable : 0;
  if (rule_.mode == OffloadRule::Mode::automatic)
    return static_cast<double>(context_.capacity) + host / (1 + unmovable);
  const double copied = rule_.mode == OffloadRule::Mode::fixed ? rule_.ratio : context_.work.copied_whole;
  return host / ((1 - resident_share(1, context_.layers)) * copied);
}

double RingSizing::rounding() const {
  return context_.offload_room ? static_cast<double>(context_.offload_room->rounding) : 0;
}

// (1 - share) x copy time of all layers = forward time. Both are per rank and proportional to 1 / D, so that D cancels.
std::int64_t RingSizing::least_degree_hidden(std::int64_t tokens) const {
  const double copy = context_.work.offload_per_token * static_cast<double>(tokens);
  if (copy <= 0) return plain_degree(tokens);
  const double share = 1 - std::min(1.0, context_.work.forward_seconds(causal_pairs(tokens), tokens) / copy);
  const double held = tokens_held(share);
  if (held >= static_cast<double>(tokens)) return 1;
  return divided(tokens, std::max(context_.capacity, static_cast<std::int64_t>(std::floor(held))));
}

std::int64_t RingSizing::most_tokens_per_rank() const {
  if (rule_.mode == OffloadRule::Mode::none) return context_.capacity;
  const double ratio = rule_.mode == OffloadRule::Mode::fixed ? rule_.ratio : 1;
  double most = std::min(tokens_held(resident_share(ratio, context_.layers)), tokens_the_host_holds());
  if (context_.offload_room) most = std::min(most, static_cast<double>(context_.offload_room->most_tokens));
  return std::max(context_.capacity, static_cast<std::int64_t>(std::floor(most + 1e-9)));
}

// The least ratio with which a rank holds its tokens; for a fixed rule its ratio.
double RingSizing::offload_for(std::int64_t tokens_per_rank) const {
  if (rule_.mode == OffloadRule::Mode::none || context_.layers <= resident_layers) return 0;
  if (rule_.mode == OffloadRule::Mode::fixed) return rule_.ratio;
  const auto tokens = static_cast<double>(tokens_per_rank);
  const auto movable = tokens * (1 - resident_share(1, context_.layers));
  const double unmovable = context_.offload_room ? context_.offload_room->unmovable : 0;
  const double beyond = std::max(0.0, tokens - static_cast<double>(context_.capacity));
  const double needed = beyond > 0 ? (1 + unmovable) * (beyond + rounding()) / movable : 0;
  return round_up(needed);
}

RingSize RingSizing::size(std::int64_t tokens, double longest_seconds) const {
  const std::int64_t plain = plain_degree(tokens);
  if (rule_.mode == OffloadRule::Mode::none) return {plain};
  const std::int64_t in_memory = divided(tokens, most_tokens_per_rank());
  const std::int64_t most = std::max(in_memory, std::min(plain, context_.ranks));
  if (rule_.mode == OffloadRule::Mode::token_wise && !pays(tokens)) return on(most, tokens);
  std::int64_t shorter = in_memory;
  if (rule_.mode == OffloadRule::Mode::automatic)
    shorter = std::max(shorter, std::min(most, least_degree_hidden(tokens)));
  std::int64_t within = most;
  while (within > shorter) {
    const std::int64_t middle = shorter + (within - shorter) / 2;
    if (compute(tokens, on(middle, tokens)) <= longest_seconds) {
      within = middle;
    } else {
      shorter = middle + 1;
    }
  }
  return on(within, tokens);
}

RingSize RingSizing::size_of(std::int64_t tokens, std::int64_t tokens_per_rank) const {
  const std::int64_t in_memory = divided(tokens, most_tokens_per_rank());
  return on(std::max(in_memory, std::min(divided(tokens, tokens_per_rank), context_.ranks)), tokens);
}

RingSize RingSizing::on(std::int64_t degree, std::int64_t tokens) const {
  if (rule_.mode != OffloadRule::Mode::token_wise) return {degree, offload_for(divided(tokens, degree))};
  if (degree >= plain_degree(tokens)) return {degree};
  return {degree, round_down(std::max(0.0, split_of(tokens, degree))), true};
}

// The share of the leaving activations whose copies a forward pass hides; both are proportional to 1 / D. May exceed 1.
double RingSizing::hidden_share(std::int64_t tokens) const {
  return hidden_copies(context_.work, causal_pairs(tokens), tokens);
}

// Negative if not even the activations that always go to the host are hidden, or held.
double RingSizing::split_of(std::int64_t tokens, std::int64_t degree) const {
  const double leaving = static_cast<double>(divided(tokens, degree)) * (1 - resident_share(1, context_.layers));
  const double held = static_cast<double>(context_.host_tokens.value_or(0)) / leaving;
  const double whole = context_.work.copied_whole;
  const double others = 1 - whole;
  if (others <= 0) return 1;
  return std::min(1.0, (std::min(hidden_share(tokens), held) - whole) / others);
}

// False if a forward pass does not even hide the copies of the activations that always go to the host.
bool RingSizing::pays(std::int64_t tokens) const {
  return context_.layers > resident_layers && hidden_share(tokens) >= context_.work.copied_whole;
}

double hidden_offload(const WorkModel& work, double area, std::int64_t tokens) {
  return round_down(std::min(1.0, hidden_copies(work, area, tokens)));
}

std::vector<std::int64_t> offloaded_tokens(const PlanningContext& context, const OffloadRule& rule) {
  using Mode = OffloadRule::Mode;
  std::vector<std::int64_t> counts;
  if (rule.mode != Mode::automatic && rule.mode != Mode::token_wise) return counts;
  const std::int64_t most = std::min(context.context, RingSizing(context, rule).most_tokens_per_rank());
  for (std::int64_t count = 2 * context.capacity; count < most; count *= 2) counts.push_back(count);
  if (most > context.capacity) counts.push_back(most);
  return counts;
}

double seconds_in_full_micro_batch(std::int64_t tokens, const PlanningContext& context) {
  const double share = static_cast<double>(tokens) / static_cast<double>(context.capacity);
  return context.work.compute_seconds(causal_pairs(tokens), tokens) + context.work.per_micro_batch * share;
}

Bounds bounds_with(const Batch& batch, const PlanningContext& context, const OffloadRule& rule,
                   std::int64_t tokens_per_rank) {
  const RingSizing sizing(context, rule);
  Bounds bounds;
  for (const Sequence& sequence : batch.sequences) {
    if (sequence.tokens < context.capacity) {
      bounds.share += seconds_in_full_micro_batch(sequence.tokens, context);
      continue;
    }
    const RingSize size = sizing.size_of(sequence.tokens, tokens_per_rank);
    const double work = sizing.work(sequence.tokens, size);
    bounds.share += work;
    bounds.longest = std::max(bounds.longest, work / static_cast<double>(size.degree));
  }
  bounds.share /= static_cast<double>(context.ranks);
  return bounds;
}

Shares balanced_shares(const Batch& batch, const PlanningContext& context, const RingSizing& sizing) {
  double in_short = 0;
  double in_plain_rings = 0;
  for (const Sequence& sequence : batch.sequences) {
    if (sequence.tokens < context.capacity) {
      in_short += seconds_in_full_micro_batch(sequence.tokens, context);
    } else {
      in_plain_rings += sizing.work(sequence.tokens, {sizing.plain_degree(sequence.tokens)});
    }
  }
  const auto ranks = static_cast<double>(context.ranks);
  const double plain_share = (in_short + in_plain_rings) / ranks;
  double in_rings = 0;
  for (const Sequence& sequence : batch.sequences) {
    if (sequence.tokens < context.capacity) continue;
    in_rings += sizing.work(sequence.tokens, sizing.size(sequence.tokens, plain_share));
  }
  const double step = (in_short + in_rings) / ranks;
  const double tokens_per_wave = ranks * static_cast<double>(context.capacity);
  return {step, step / std::max(1.0, static_cast<double>(batch.tokens()) / tokens_per_wave)};
}

}  // namespace hdpsim
