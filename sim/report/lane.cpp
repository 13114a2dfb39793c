#include "sim/report/lane.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace hdpsim {
namespace {

/// When ranks ran micro-batches, by their instructions.
class OwnIntervals {
 public:
  OwnIntervals(const Timeline& timeline, const std::vector<HdpRank>& ranks) : wanted_(timeline.ranks.size(), false) {
    for (const HdpRank rank : ranks) wanted_.at(rank.index()) = true;
    for (const InstructionRecord& record : timeline.instructions) {
      if (wanted_.at(record.rank.index())) add(record);
    }
  }

  /// Nothing if no instruction is known.
  [[nodiscard]] const MicroBatchInterval* find(HdpRank rank, MicroBatchId id) const {
    const auto found = intervals_.find(key(rank, id));
    return found == intervals_.end() ? nullptr : &found->second;
  }

 private:
  static std::uint64_t key(HdpRank rank, MicroBatchId id) { return (std::uint64_t{rank.index()} << 32U) + id.index(); }

  void add(const InstructionRecord& record) {
    const MicroBatchInterval own{record.begin, record.end};
    const auto [known, is_new] = intervals_.try_emplace(key(record.rank, record.micro_batch), own);
    known->second.begin = std::min(known->second.begin, own.begin);
    known->second.end = std::max(known->second.end, own.end);
  }

  std::vector<bool> wanted_;
  std::unordered_map<std::uint64_t, MicroBatchInterval> intervals_;
};

}  // namespace

std::vector<Lane> lanes_of(const Plan& plan, const Timeline& timeline, const std::vector<HdpRank>& ranks) {
  const OwnIntervals own(timeline, ranks);
  std::vector<Lane> lanes;
  lanes.reserve(ranks.size());
  for (const HdpRank rank : ranks) {
    Lane& lane = lanes.emplace_back(Lane{rank, {}});
    Instant free;
    for (const MicroBatchId id : plan.schedule.at(rank.index())) {
      const MicroBatchInterval* known = own.find(rank, id);
      const MicroBatchInterval& interval = known != nullptr ? *known : timeline.micro_batches.at(id.index());
      const Instant end = std::max(free, interval.end);
      lane.pieces.push_back({id, std::max(free, interval.begin), end});
      free = end;
    }
  }
  return lanes;
}

std::vector<HdpRank> typical_ranks(const Timeline& timeline, std::size_t count) {
  std::vector<HdpRank> order;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) order.emplace_back(rank);
  std::sort(order.begin(), order.end(), [&](HdpRank a, HdpRank b) {
    return std::tuple(timeline.busy(a.index()), a) < std::tuple(timeline.busy(b.index()), b);
  });
  if (order.size() <= count || count == 0) return order;
  if (count == 1) return {order[order.size() / 2]};
  std::vector<HdpRank> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(order[i * (order.size() - 1) / (count - 1)]);
  return chosen;
}

}  // namespace hdpsim
