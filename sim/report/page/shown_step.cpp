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
  ascending.reserve(sizes.size());
  for (const auto& [ranks, size] : sizes) ascending.push_back(size);
  return ascending;
}

ShownStep::Lane shown_lane(const Pipeline& pipeline, const Timeline& timeline, const Lane& lane) {
  ShownStep::Lane shown{.rank = static_cast<std::int64_t>(pipeline.rank_of(lane.worker).index()),
                        .stage = pipeline.stage_of(lane.worker),
                        .breakdown = timeline.ranks.at(lane.worker.index()),
                        .pieces = {}};
  const std::size_t count = std::min(lane.pieces.size(), ShownStep::most_pieces);
  for (std::size_t i = 0; i < count; ++i) {
    const Lane::Piece& piece = lane.pieces[i];
    const MicroBatch& micro_batch = pipeline.micro_batch(piece.pass);
    const StagePass pass = pipeline.pass(piece.pass);
    shown.pieces.push_back({.begin = piece.begin,
                            .end = piece.end,
                            .ranks = std::ssize(micro_batch.group),
                            .tokens = micro_batch.tokens(),
                            .offload = micro_batch.offload,
                            .micro_batch = static_cast<std::int64_t>(pass.micro_batch.index()),
                            .chunk = pass.chunk,
                            .kind = pass.kind});
  }
  shown.left_out = static_cast<std::int64_t>(lane.pieces.size() - count);
  return shown;
}

}  // namespace

ShownStep shown_step(const Program& program, const Timeline& timeline) {
  const Plan& plan = program.plan();
  const Pipeline& pipeline = program.pipeline();
  ShownStep shown{plan.step, timeline.step_time, group_sizes_of(plan), {}, {}};
  const auto stages = static_cast<std::size_t>(pipeline.stages());
  const std::size_t ranks = std::max<std::size_t>(1, ShownStep::most_lanes / stages);
  const std::vector<WorkerId> workers = workers_of(pipeline, typical_ranks(pipeline, timeline, ranks));
  for (const Lane& lane : lanes_of(pipeline, timeline, workers)) {
    shown.lanes.push_back(shown_lane(pipeline, timeline, lane));
  }
  return shown;
}

}  // namespace hdpsim
