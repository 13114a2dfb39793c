#include "sim/report/page/shown_step.h"

#include <algorithm>
#include <map>

#include "sim/report/lane.h"

namespace hdpsim {
namespace {

std::vector<ShownStep::GroupSize> group_sizes_of(const Plan& plan) {
  std::map<std::int64_t, ShownStep::GroupSize> sizes;
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    const std::int64_t ranks = std::ssize(micro_batch.group);
    ShownStep::GroupSize& size = sizes[ranks];
    size.ranks = ranks;
    size.micro_batches += 1;
    size.tokens += micro_batch.tokens();
  }
  std::vector<ShownStep::GroupSize> ascending;
  for (const auto& [ranks, size] : sizes) ascending.push_back(size);
  return ascending;
}

ShownStep::Lane shown_lane(const Plan& plan, const Timeline& timeline, const Lane& lane) {
  ShownStep::Lane shown{static_cast<std::int64_t>(lane.rank.index()), timeline.busy(lane.rank.index()), {}};
  const std::size_t count = std::min(lane.pieces.size(), ShownStep::most_pieces);
  for (std::size_t i = 0; i < count; ++i) {
    const Lane::Piece& piece = lane.pieces[i];
    const MicroBatch& micro_batch = plan.micro_batches[piece.micro_batch.index()];
    shown.pieces.push_back(
        {piece.begin, piece.end, std::ssize(micro_batch.group), micro_batch.tokens(), micro_batch.offload});
  }
  shown.left_out = static_cast<std::int64_t>(lane.pieces.size() - count);
  return shown;
}

}  // namespace

ShownStep shown_step(const Plan& plan, const Timeline& timeline) {
  ShownStep shown{plan.step, timeline.step_time, group_sizes_of(plan), {}};
  for (const Lane& lane : lanes_of(plan, timeline, typical_ranks(timeline, ShownStep::most_lanes))) {
    shown.lanes.push_back(shown_lane(plan, timeline, lane));
  }
  return shown;
}

}  // namespace hdpsim
