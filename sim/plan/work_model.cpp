#include "sim/plan/work_model.h"

#include <algorithm>

#include "sim/model/group_sharing.h"

namespace hdpsim {
namespace {

double exchange(const RingHops& share, const RingHops& hop, double tokens) {
  return share.per_step * hop.per_step + share.per_token * hop.per_token * tokens;
}

}  // namespace

double RingPass::seconds(double block_area, double tokens, std::int64_t ranks, const RingHops& hop) const {
  const auto alike = static_cast<double>(ranks - 2);
  const double first_step = std::max(own.at(block_area, tokens), exchange(first, hop, tokens));
  const double each = std::max(step.at(block_area, tokens), exchange(between, hop, tokens));
  const double last = std::max(last_step.at(block_area, tokens), exchange(beside_last, hop, tokens));
  const double leaves = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return first_step + alike * each + last + exchange(behind, hop, tokens) + leaves * traded.at(0, tokens);
}

double WorkModel::seconds(double area, std::int64_t tokens, std::int64_t degree, bool near) const {
  double least_seconds = seconds_in_this_way(area, tokens, degree, near);
  if (degree == 1) return least_seconds;
  for (const WorkModel& other : others) {
    least_seconds = std::min(least_seconds, other.seconds_in_this_way(area, tokens, degree, near));
  }
  return least_seconds;
}

const WorkModel& WorkModel::in(std::optional<KeyExchange> chosen) const {
  if (!chosen || *chosen == exchange) return *this;
  const auto has = [&](const WorkModel& other) { return other.exchange == *chosen; };
  const auto found = std::find_if(others.begin(), others.end(), has);
  return found == others.end() ? *this : *found;
}

std::optional<KeyExchange> WorkModel::fastest(double area, std::int64_t tokens, std::int64_t degree, bool near) const {
  double least_seconds = seconds_in_this_way(area, tokens, degree, near);
  std::optional<KeyExchange> way;
  for (const WorkModel& other : others) {
    const double in_other = other.seconds_in_this_way(area, tokens, degree, near);
    if (in_other >= least_seconds) continue;
    least_seconds = in_other;
    way = other.exchange;
  }
  return way;
}

double WorkModel::seconds_in_this_way(double area, std::int64_t tokens, std::int64_t degree, bool near) const {
  if (degree == 1) {
    const double all = per_micro_batch + compute_seconds(area, tokens);
    return std::max(least, all - saved_by_short_sequences(area, static_cast<double>(tokens)));
  }
  const std::int64_t ring = degree * unit;
  const auto ranks = static_cast<double>(ring);
  const double tokens_per_rank = static_cast<double>(tokens) / ranks;
  const double block = area / (ranks * ranks);
  const RingHops hop = hops(near);
  if (traders) {
    const std::int64_t party = ranks_that_trade(ring, traders->heads, traders->most);
    if (party < ring) return seconds_of_traders(area, tokens, ring, party, hop);
  }
  const RingPasses& group = passes_of(ring, near);
  return std::max(least, group.per_micro_batch + group.per_token * tokens_per_rank +
                             group.forward.seconds(block, tokens_per_rank, ring, hop) +
                             group.backward.seconds(block, tokens_per_rank, ring, hop));
}

// In proportion to what the mean token's sequence, of 2 x area / tokens tokens, lacks.
double WorkModel::saved_by_short_sequences(double area, double tokens) const {
  if (has_windows || tokens <= 0 || 2 * area >= tokens * short_below) return 0;
  return (1 - 2 * area / (tokens * short_below)) * (less_if_short.per_token * tokens + less_if_short.fixed);
}

// A rank has 1 / party of the heads, and passes on as many bytes as in a ring of all ranks, in fewer steps.
double WorkModel::seconds_of_traders(double area, std::int64_t tokens, std::int64_t ranks, std::int64_t party,
                                     const RingHops& hop) const {
  const RingPasses& ring = traders->ring;
  const std::int64_t parties = ranks / party;
  const double tokens_per_rank = static_cast<double>(tokens) / static_cast<double>(ranks);
  const double block = area / (static_cast<double>(parties) * static_cast<double>(ranks));
  const double leaves = static_cast<double>(party - 1) / static_cast<double>(party);
  const RingPasses& group = passes_of(party, party <= ranks_per_node * unit);
  const double trading = group.forward.traded.at(0, tokens_per_rank) + group.backward.traded.at(0, tokens_per_rank);
  return std::max(least, ring.per_micro_batch + ring.per_token * tokens_per_rank +
                             ring.forward.seconds(block, tokens_per_rank, parties, hop) +
                             ring.backward.seconds(block, tokens_per_rank, parties, hop) + leaves * trading);
}

WorkModel WorkModel::of_groups(std::int64_t ranks, double area, std::int64_t tokens) const {
  if (ranks == 1) return *this;
  const bool shares_node = ranks <= ranks_per_node;
  const double least_seconds = seconds(1, 1, ranks, shares_node);
  const double of_tokens = seconds(1, tokens, ranks, shares_node);
  WorkModel model = *this;
  model.unit = unit * ranks;
  model.less_if_short = {};
  model.ranks_per_node = std::max<std::int64_t>(1, ranks_per_node / ranks);
  model.per_micro_batch = least_seconds;
  model.per_token = (of_tokens - least_seconds) / static_cast<double>(tokens);
  model.per_area = (seconds(area, tokens, ranks, shares_node) - of_tokens) / area;
  for (WorkModel& other : model.others) other = other.of_groups(ranks, area, tokens);
  return model;
}

WorkModel WorkModel::lower_bound() const {
  WorkModel model = *this;
  for (WorkModel& other : model.others) other = other.lower_bound();
  model.per_area -= less_if_short.per_area;
  model.per_token -= less_if_short.per_token;
  model.per_micro_batch -= less_if_short.fixed;
  model.less_if_short = {};
  if (!ranks_share && !has_windows) return model;
  const auto lower = [&](RingPasses& group) {
    for (RingPass* pass : {&group.forward, &group.backward}) {
      for (StepCost* cost : {&pass->own, &pass->step, &pass->last_step}) {
        const bool shares = ranks_share && cost != &pass->own;
        if (has_windows || shares) cost->per_token = cost->fixed = 0;
        if (less_if_short.per_area > 0) cost->per_area = 0;
      }
      if (ranks_share) pass->traded = {};
    }
  };
  lower(model.passes);
  if (model.passes_within_node) lower(*model.passes_within_node);
  if (model.passes_of_whole_nodes) lower(*model.passes_of_whole_nodes);
  return model;
}

const RingPasses& WorkModel::passes_of(std::int64_t ranks, bool near) const {
  if (near && passes_within_node) return *passes_within_node;
  const std::int64_t node = ranks_per_node * unit;
  return passes_of_whole_nodes && ranks > node && ranks % node == 0 ? *passes_of_whole_nodes : passes;
}

RingHops WorkModel::hops(bool near) const {
  return near && within_node ? *within_node : RingHops{per_ring_token, per_ring_step};
}

// In a sequence on N ranks, 1/N of what a rank computes is attention to its own part.
double WorkModel::attention(double area, std::int64_t tokens, std::int64_t degree) const {
  const auto ranks = static_cast<double>(degree);
  if (unit > 1) return per_area * area / ranks;
  const double steps = ranks - 1;
  return per_area * area / ranks + step_area * area * steps / (ranks * ranks) +
         steps * (step_fixed + step_token * static_cast<double>(tokens) / ranks);
}

double WorkModel::transfer(std::int64_t tokens, std::int64_t degree, bool near) const {
  const RingHops hop = hops(near);
  const auto ranks = static_cast<double>(degree);
  return (ranks - 1) * (hop.per_step + hop.per_token * static_cast<double>(tokens) / ranks);
}

bool WorkModel::near(const std::vector<HdpRank>& group) const {
  const auto size = static_cast<std::size_t>(ranks_per_node);
  return std::all_of(group.begin(), group.end(),
                     [&](HdpRank rank) { return rank.index() / size == group.front().index() / size; });
}

double WorkModel::forward_seconds(double area, std::int64_t tokens) const {
  return forward_of_tokens * per_token * static_cast<double>(tokens) + forward_of_area * per_area * area;
}

double WorkModel::copy_wait(double area, double tokens, double share) const {
  const double forward = forward_of_tokens * per_token * tokens + forward_of_area * per_area * area;
  const double backward = per_token * tokens + per_area * area - forward;
  const double moved = share * tokens;
  return std::max(0.0, moved * offload_per_token - forward) + std::max(0.0, moved * fetch_per_token - backward);
}

}  // namespace hdpsim
