#include "sim/report/lane.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace hdpsim {
namespace {

/// Intervals in which workers ran passes, from their instructions.
class OwnIntervals {
 public:
  OwnIntervals(const Pipeline& pipeline, const Timeline& timeline, const std::vector<WorkerId>& workers)
      : pipeline_(pipeline), wanted_(pipeline.workers(), false) {
    for (const WorkerId worker : workers) wanted_.at(worker.index()) = true;
    for (const InstructionRecord& record : timeline.instructions) add(record);
  }

  /// Null if no instruction of the pass is known.
  [[nodiscard]] const MicroBatchInterval* find(WorkerId worker, PassId pass) const {
    const auto found = intervals_.find(key(worker, pass));
    return found == intervals_.end() ? nullptr : &found->second;
  }

 private:
  static std::uint64_t key(WorkerId worker, PassId pass) {
    return (std::uint64_t{worker.index()} << 32U) + pass.index();
  }

  void add(const InstructionRecord& record) {
    const WorkerId worker = pipeline_.worker(record.rank, record.stage);
    if (!wanted_.at(worker.index())) return;
    const MicroBatchInterval own{record.begin, record.end};
    const auto [known, is_new] = intervals_.try_emplace(key(worker, pass_of(record, pipeline_)), own);
    known->second.begin = std::min(known->second.begin, own.begin);
    known->second.end = std::max(known->second.end, own.end);
  }

  const Pipeline& pipeline_;
  std::vector<bool> wanted_;
  std::unordered_map<std::uint64_t, MicroBatchInterval> intervals_;
};

}  // namespace

std::vector<Lane> lanes_of(const Pipeline& pipeline, const Timeline& timeline, const std::vector<WorkerId>& workers) {
  const OwnIntervals own(pipeline, timeline, workers);
  std::vector<Lane> lanes;
  lanes.reserve(workers.size());
  for (const WorkerId worker : workers) {
    Lane& lane = lanes.emplace_back(Lane{worker, {}});
    Instant free;
    for (const PassId pass : pipeline.orders().at(worker.index())) {
      const MicroBatchInterval* known = own.find(worker, pass);
      const MicroBatchInterval& interval = known != nullptr ? *known : timeline.interval(pass);
      const Instant end = std::max(free, interval.end);
      lane.pieces.push_back({pass, std::max(free, interval.begin), end});
      free = end;
    }
  }
  return lanes;
}

std::vector<WorkerId> workers_of(const Pipeline& pipeline, const std::vector<HdpRank>& ranks) {
  std::vector<WorkerId> workers;
  for (const HdpRank rank : ranks) {
    for (std::int64_t stage = 0; stage < pipeline.stages(); ++stage) workers.push_back(pipeline.worker(rank, stage));
  }
  return workers;
}

std::vector<HdpRank> typical_ranks(const Pipeline& pipeline, const Timeline& timeline, std::size_t count) {
  const std::size_t ranks = pipeline.workers() / static_cast<std::size_t>(pipeline.stages());
  std::vector<std::pair<Duration, HdpRank>> order;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Duration busy;
    for (const WorkerId worker : workers_of(pipeline, {HdpRank(rank)})) busy += timeline.busy(worker.index());
    order.emplace_back(busy, rank);
  }
  std::sort(order.begin(), order.end());
  std::vector<HdpRank> chosen;
  if (order.size() <= count || count == 0) {
    for (const auto& [busy, rank] : order) chosen.push_back(rank);
  } else if (count == 1) {
    chosen.push_back(order[order.size() / 2].second);
  } else {
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(order[i * (order.size() - 1) / (count - 1)].second);
  }
  return chosen;
}

}  // namespace hdpsim
