#include "sim/plan/work_model.h"

#include <algorithm>

namespace hdpsim {

double WorkModel::seconds(double area, std::int64_t tokens, std::int64_t degree, bool near) const {
  const double tokens_per_rank = static_cast<double>(tokens) / static_cast<double>(degree);
  const double work = per_micro_batch + per_token * tokens_per_rank;
  if (degree == 1) return std::max(least, work + per_area * area);
  const double moved = transfer(tokens, degree, near);
  const double behind = ring_end * moved / static_cast<double>(degree - 1);
  return std::max(least, work + behind + std::max(attention(area, tokens, degree), moved));
}

// In a sequence on N ranks, 1/N of what a rank computes is attention to its own part.
double WorkModel::attention(double area, std::int64_t tokens, std::int64_t degree) const {
  const auto ranks = static_cast<double>(degree);
  const double steps = ranks - 1;
  return per_area * area / ranks + step_area * area * steps / (ranks * ranks) +
         steps * (step_fixed + step_token * static_cast<double>(tokens) / ranks);
}

double WorkModel::transfer(std::int64_t tokens, std::int64_t degree, bool near) const {
  const RingHops hops = near && within_node ? *within_node : RingHops{per_ring_token, per_ring_step};
  const auto ranks = static_cast<double>(degree);
  return (ranks - 1) * (hops.per_step + hops.per_token * static_cast<double>(tokens) / ranks);
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
