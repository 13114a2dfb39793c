#include "sim/plan/updates.h"

#include <cstddef>
#include <iterator>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {

std::int64_t update_count(const Plan& plan) {
  return plan.micro_batches.empty() ? 1 : plan.micro_batches.back().update + 1;
}

std::vector<Plan> split_by_update(const Plan& plan) {
  Plan header = plan;
  header.micro_batches.clear();
  header.schedule.assign(plan.schedule.size(), {});
  std::vector<Plan> updates(static_cast<std::size_t>(update_count(plan)), header);
  std::vector<std::size_t> own(plan.micro_batches.size());  // ids in the plans of the updates
  for (std::size_t id = 0; id < own.size(); ++id) {
    std::vector<MicroBatch>& of_update =
        updates.at(static_cast<std::size_t>(plan.micro_batches[id].update)).micro_batches;
    own[id] = of_update.size();
    of_update.push_back(plan.micro_batches[id]);
    of_update.back().update = 0;
  }
  for (std::size_t rank = 0; rank < plan.schedule.size(); ++rank) {
    for (const MicroBatchId id : plan.schedule[rank]) {
      const auto update = static_cast<std::size_t>(plan.micro_batches[id.index()].update);
      updates[update].schedule[rank].emplace_back(own[id.index()]);
    }
  }
  return updates;
}

Plan joined_updates(std::vector<Plan> updates) {
  HDPSIM_CHECK(!updates.empty(), "a plan without updates");
  Plan all = std::move(updates.front());
  for (std::size_t update = 1; update < updates.size(); ++update) {
    Plan& next = updates[update];
    const std::size_t first = all.micro_batches.size();
    for (MicroBatch& micro_batch : next.micro_batches) {
      micro_batch.update = static_cast<std::int64_t>(update);
      all.micro_batches.push_back(std::move(micro_batch));
    }
    for (std::size_t rank = 0; rank < all.schedule.size(); ++rank) {
      for (const MicroBatchId id : next.schedule.at(rank)) all.schedule[rank].emplace_back(first + id.index());
    }
  }
  return all;
}

}  // namespace hdpsim
