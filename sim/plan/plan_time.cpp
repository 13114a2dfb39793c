#include "sim/plan/plan_time.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/model/sharing_form.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/group_cut.h"
#include "sim/plan/updates.h"

namespace hdpsim {
namespace {

// What the busiest rank of a group holds alone, as if it hid nothing of what the group exchanges.
double longest_alone(const MicroBatch& micro_batch, const WorkModel& work) {
  double longest = 0;
  for (const LocalSpans& local : micro_batch.local) {
    const MicroBatch own = alone(micro_batch, local);
    longest = std::max(longest, work.compute_seconds(own.area(), own.tokens()));
  }
  return longest;
}

// All ranks end an update together.
PlanTime time_of_updates(const Plan& plan, const WorkModel& work) {
  PlanTime all = PlanClock(plan.schedule.size()).time();
  for (const Plan& update : split_by_update(plan)) {
    const PlanTime own = plan_time(update, work);
    const double began = *std::max_element(all.finish.begin(), all.finish.end());
    for (std::size_t rank = 0; rank < own.busy.size(); ++rank) {
      all.busy[rank] += own.busy[rank];
      all.finish[rank] = began + own.finish[rank];
      all.longest[rank] += own.longest[rank];
    }
  }
  return all;
}

}  // namespace

double PlanTime::step(std::int64_t stages) const {
  double last = 0;
  for (std::size_t rank = 0; rank < finish.size(); ++rank) {
    last = std::max(last, finish[rank] + static_cast<double>(stages - 1) * longest[rank]);
  }
  return last;
}

double offload_seconds(const WorkModel& work, double area, double tokens, std::int64_t layers, double offload,
                       bool token_wise) {
  if (!token_wise && offload <= 0) return 0;
  const double whole = token_wise ? work.copied_whole : 0;
  const double copied = whole + (1 - whole) * offload;  // of what the layers that do not stay on the device keep
  const double leaving = 1 - resident_share(1, layers);
  const double again = token_wise ? leaving * (1 - offload) * work.again_per_token.value_or(0) * tokens : 0;
  return again + leaving * work.copy_wait(area, tokens, copied);
}

double micro_batch_seconds(const MicroBatch& micro_batch, std::int64_t layers, const WorkModel& work) {
  const auto degree = static_cast<std::int64_t>(micro_batch.group.size());
  const double tokens = static_cast<double>(micro_batch.shared_tokens()) / static_cast<double>(degree);
  const bool near = work.near(micro_batch.group);
  const double area = area_of_busiest(micro_batch);
  if (degree > 1 && exchange_of(micro_batch.cut)) {
    const double compute = work.compute_seconds(area / static_cast<double>(degree), micro_batch.tokens_per_rank());
    return std::max(work.least, work.per_micro_batch + compute);
  }
  const double twice = micro_batch.repeats_forward ? work.forward_seconds(area, micro_batch.shared_tokens()) : 0;
  const double moved = offload_seconds(work, area / static_cast<double>(degree), tokens, layers, micro_batch.offload,
                                       micro_batch.token_wise);
  const WorkModel& way = work.in(micro_batch.exchange);
  return way.seconds_in_this_way(area, micro_batch.shared_tokens(), degree, near) + moved + twice +
         longest_alone(micro_batch, work);
}

std::vector<PassSeconds> pass_seconds(const Plan& plan, const WorkModel& work) {
  std::vector<PassSeconds> seconds;
  seconds.reserve(plan.micro_batches.size());
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    const double whole = micro_batch_seconds(micro_batch, plan.layers, work);
    const std::int64_t tokens = micro_batch.tokens_per_rank();
    const double area = micro_batch.area() / static_cast<double>(micro_batch.group.size());
    const double computed = work.compute_seconds(area, tokens);
    const double share = computed > 0 ? work.forward_seconds(area, tokens) / computed : work.forward_of_tokens;
    seconds.push_back({.forward = share * whole, .backward = (1 - share) * whole});
  }
  return seconds;
}

void PlanClock::run(std::span<const HdpRank> group, double seconds) {
  double start = 0;
  for (const HdpRank rank : group) start = std::max(start, time_.finish[rank.index()]);
  for (const HdpRank rank : group) {
    time_.busy[rank.index()] += seconds;
    time_.longest[rank.index()] = std::max(time_.longest[rank.index()], seconds);
    time_.finish[rank.index()] = start + seconds;
  }
}

PlanTime plan_time(const Plan& plan, const WorkModel& work) {
  const std::vector<MicroBatchId> order = order_of_execution(plan);
  HDPSIM_CHECK(order.size() == plan.micro_batches.size(), "{} of {} micro-batches can run", order.size(),
               plan.micro_batches.size());
  if (update_count(plan) > 1) return time_of_updates(plan, work);
  PlanClock clock(plan.schedule.size());
  for (const MicroBatchId id : order) {
    const MicroBatch& micro_batch = plan.micro_batches[id.index()];
    clock.run(micro_batch.group, micro_batch_seconds(micro_batch, plan.layers, work));
  }
  return clock.time();
}

}  // namespace hdpsim
