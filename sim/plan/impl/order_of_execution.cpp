#include "sim/plan/impl/order_of_execution.h"

#include <cstddef>
#include <utility>

#include "sim/plan/expert_waves.h"

namespace hdpsim {
namespace {

class Execution {
 public:
  explicit Execution(const Plan& plan)
      : plan_(plan), waves_(plan), next_(plan.schedule.size()), missing_(waves_.count()) {
    for (const auto& list : plan.schedule) {
      for (const MicroBatchId id : list) {
        if (known(id)) ++missing_[waves_.wave(id)];
      }
    }
  }

  std::vector<MicroBatchId> run() {
    for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) arrive(rank);
    std::size_t done = 0;
    while (done < order_.size()) {
      const MicroBatchId id = order_[done++];
      for (const HdpRank rank : plan_.micro_batches[id.index()].group) {
        if (rank.index() < next_.size() && stands_at(rank.index(), id)) {
          ++next_[rank.index()];
          arrive(rank.index());
        }
      }
    }
    return std::move(order_);
  }

 private:
  bool known(MicroBatchId id) const { return id.index() < plan_.micro_batches.size(); }
  bool stands_at(std::size_t rank, MicroBatchId id) const {
    return next_[rank] < plan_.schedule[rank].size() && plan_.schedule[rank][next_[rank]] == id;
  }

  // The rank comes to its next micro-batch; the last rank of a wave to come makes it ready.
  void arrive(std::size_t rank) {
    const auto& list = plan_.schedule[rank];
    while (next_[rank] < list.size() && !known(list[next_[rank]])) ++next_[rank];
    if (next_[rank] == list.size()) return;
    const MicroBatchId id = list[next_[rank]];
    const std::size_t wave = waves_.wave(id);
    if (--missing_[wave] > 0) return;
    for (const MicroBatchId member : waves_.members(wave)) order_.push_back(member);
  }

  const Plan& plan_;
  WaveTable waves_;
  std::vector<std::size_t> next_;
  std::vector<std::size_t> missing_;  // by wave: ranks that have not come to their micro-batch of it yet
  std::vector<MicroBatchId> order_;
};

}  // namespace

std::vector<MicroBatchId> order_of_execution(const Plan& plan) {
  return Execution(plan).run();
}

}  // namespace hdpsim
