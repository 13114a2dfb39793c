#include "sim/engine/step_ending.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/engine/priced_program.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

// The end of the step on one stage.
struct StageEnd {
  Instant last = {};         // end of its workers' last passes
  Instant sync_begins = {};  // begin of the gradient reduction
  Instant synced = {};
  Duration sync = {};       // gradient reduction, sum with another stage, parameter all-gather
  Estimate optimizer = {};  // on a device of nominal speed
  Duration slowest = {};    // the longest optimizer time of a worker
  Duration gather = {};     // parameter all-gather, if `synced` does not include it
  Instant ends = {};

  [[nodiscard]] Duration waits_for_stages(Instant optimizer_begins, Instant all_end) const {
    const Duration before_sync = sync_begins - last;
    const Duration between = (optimizer_begins - sync_begins) - (sync - gather);
    return before_sync + between + (all_end - ends);
  }
};

class StepEnding {
 public:
  StepEnding(const Program& program, const Machine& machine, const StepTimes& times)
      : program_(program), pipeline_(program.pipeline()), machine_(machine), times_(times) {
    for (std::int64_t stage = 0; stage < pipeline_.stages(); ++stage) stages_.push_back(optimizer_of(stage));
    if (times.sync) {
      sync_together(*times.sync);
    } else {
      sync_by_stage();
    }
    for (const StageEnd& stage : stages_) optimizer_begins_ = std::max(optimizer_begins_, stage.synced);
    for (StageEnd& stage : stages_) {
      stage.ends = optimizer_begins_ + stage.slowest + stage.gather;
      all_end_ = std::max(all_end_, stage.ends);
    }
  }

  void book(Timeline& timeline) const {
    timeline.step_time = (all_end_ - times_.begin) + machine_.step_overhead;
    for (std::size_t w = 0; w < timeline.ranks.size(); ++w) {
      const StageEnd& stage = stages_[static_cast<std::size_t>(pipeline_.stage_of(WorkerId(w)))];
      const Duration own_optimizer = stage.optimizer.time.scaled(1 / machine_.speed_among_all(w));
      Breakdown& booked = timeline.ranks[w];
      booked[Activity::grad_sync] += stage.sync;
      booked[Activity::optimizer] += own_optimizer;
      booked[Activity::overhead] += machine_.step_overhead;
      booked[Activity::group_wait] += (stage.last - times_.finished[w]) + (stage.slowest - own_optimizer);
      booked[Activity::bubble] += stage.waits_for_stages(optimizer_begins_, all_end_);
      timeline.evidence[static_cast<std::size_t>(stage.optimizer.evidence)] += own_optimizer;
      HDPSIM_CHECK(booked.total() == timeline.step_time, "worker {} accounts for {} ps of a step of {} ps", w,
                   booked.total().picoseconds(), timeline.step_time.picoseconds());
    }
  }

 private:
  [[nodiscard]] StageEnd optimizer_of(std::int64_t stage) const {
    StageEnd end;
    end.optimizer = optimizer_estimate(program_.step_end(stage).optimizer, machine_);
    for (std::size_t rank = 0; rank < program_.plan().schedule.size(); ++rank) {
      const WorkerId worker = pipeline_.worker(HdpRank(rank), stage);
      end.last = std::max(end.last, times_.finished[worker.index()]);
      end.slowest = std::max(end.slowest, end.optimizer.time.scaled(1 / machine_.speed_among_all(worker.index())));
    }
    return end;
  }

  void sync_together(Duration sync) {
    Instant last;
    for (const StageEnd& stage : stages_) last = std::max(last, stage.last);
    for (StageEnd& stage : stages_) {
      stage.sync = sync;
      stage.sync_begins = last;
      stage.synced = last + sync;
    }
  }

  void sync_by_stage() {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      StageEnd& stage = stages_[s];
      const StepEnd end = program_.step_end(static_cast<std::int64_t>(s));
      stage.gather = parameter_gather(end, machine_);
      const Duration reduction = gradient_reduction(end, machine_);
      stage.sync_begins = stage.last;
      stage.synced = stage.last + reduction;
      stage.sync = reduction + stage.gather;
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto other = static_cast<std::size_t>(program_.step_end(static_cast<std::int64_t>(s)).other_stage);
      if (other > s) sum_between(s, other);
    }
  }

  void sum_between(std::size_t first, std::size_t second) {
    const Duration sum = sum_with_other_stage(program_, static_cast<std::int64_t>(first), machine_);
    const Instant summed = std::max(stages_[first].synced, stages_[second].synced) + sum;
    for (const std::size_t stage : {first, second}) {
      stages_[stage].synced = summed;
      stages_[stage].sync += sum;
    }
  }

  const Program& program_;
  const Pipeline& pipeline_;
  const Machine& machine_;
  const StepTimes& times_;
  std::vector<StageEnd> stages_;
  Instant optimizer_begins_;
  Instant all_end_;
};

Duration host_time(const HostUpdate& host, const Machine& machine) {
  const Duration update = Duration::seconds(static_cast<double>(host.parameters) / host.per_s);
  const Duration out = host.from_device / machine.d2h;
  const Duration back = host.to_device / machine.h2d;
  return host.overlaps ? std::max({out, update, back}) : out + update + back;
}

Estimate both(const Estimate& first, const Estimate& second) {
  return {first.time + second.time, std::max(first.evidence, second.evidence)};
}

// The devices that have the same parameters, together or in groups.
struct Pool {
  const Collective& all;
  const std::optional<HybridSharding>& hybrid;
};

Estimate reduction_over(const Pool& pool, Bytes gradients, bool all_reduce) {
  if (gradients == Bytes{}) return {};
  const Estimate whole = pool.hybrid && !all_reduce ? pool.hybrid->within(CollectiveKind::reduce_scatter, gradients)
                                                    : pool.all(CollectiveKind::reduce_scatter, gradients);
  if (all_reduce) return both(whole, pool.all(CollectiveKind::all_gather, gradients));
  if (!pool.hybrid) return whole;
  const Bytes shard(divided(gradients.count(), pool.hybrid->ranks));
  return both(whole, pool.hybrid->across(CollectiveKind::all_reduce, shard));
}

Estimate gather_over(const Pool& pool, Bytes parameters) {
  if (parameters == Bytes{}) return {};
  return (pool.hybrid ? pool.hybrid->within : pool.all)(CollectiveKind::all_gather, parameters);
}

}  // namespace

Estimate reduction_of(const PoolBytes& gradients, bool all_reduce, const Machine& machine) {
  return both(reduction_over({machine.pool, machine.hybrid}, gradients.common, all_reduce),
              reduction_over({machine.expert_pools, machine.expert_hybrid}, gradients.experts, all_reduce));
}

Estimate gather_of(const PoolBytes& parameters, const Machine& machine) {
  return both(gather_over({machine.pool, machine.hybrid}, parameters.common),
              gather_over({machine.expert_pools, machine.expert_hybrid}, parameters.experts));
}

Duration gradient_reduction(const StepEnd& end, const Machine& machine) {
  return reduction_of(end.gradient, end.all_reduce, machine).time;
}

Duration parameter_gather(const StepEnd& end, const Machine& machine) {
  if (end.broadcasts == 0 || end.parameters.common == Bytes{}) return gather_of(end.parameters, machine).time;
  const Collective& ranks = machine.hybrid ? machine.hybrid->within : machine.pool;
  const Bytes each(divided(end.parameters.common.count(), end.broadcasts));
  const Duration broadcasts = ranks(CollectiveKind::broadcast, each).time * end.broadcasts;
  return broadcasts + gather_over({machine.expert_pools, machine.expert_hybrid}, end.parameters.experts).time;
}

Estimate optimizer_estimate(const OptimizerWork& work, const Machine& machine) {
  const CostModel& cost = *machine.cost;
  Estimate all = cost.memory_bound(work.elementwise);
  double even = 0;  // seconds
  double longest = 0;
  for (const Orthogonalization& matrices : work.orthogonal) {
    double each = 0;
    for (const Gemm& product : matrices.products) {
      const Estimate estimate = cost.gemm(product);
      each += estimate.time.seconds();
      all.evidence = std::max(all.evidence, estimate.evidence);
    }
    even += each * static_cast<double>(matrices.matrices) / static_cast<double>(matrices.ranks);
    longest = std::max(longest, each);
  }
  all.time += Duration::seconds(std::max(even, longest));
  if (work.host.parameters == 0) return all;
  const Duration on_host = host_time(work.host, machine);
  return on_host > all.time ? Estimate{on_host, Evidence::formula} : all;
}

Duration slowest_optimizer(const Program& program, const Machine& machine) {
  const Pipeline& pipeline = program.pipeline();
  std::vector<Duration> of_stage;
  for (std::int64_t stage = 0; stage < pipeline.stages(); ++stage) {
    of_stage.push_back(optimizer_estimate(program.step_end(stage).optimizer, machine).time);
  }
  Duration slowest;
  for (std::size_t w = 0; w < pipeline.workers(); ++w) {
    const Duration own = of_stage[static_cast<std::size_t>(pipeline.stage_of(WorkerId(w)))];
    slowest = std::max(slowest, own.scaled(1 / machine.speed_among_all(w)));
  }
  return slowest;
}

Duration sum_with_other_stage(const Program& program, std::int64_t stage, const Machine& machine) {
  const StepEnd end = program.step_end(stage);
  if (end.twice == Bytes{}) return {};
  Duration slowest;
  for (std::size_t rank = 0; rank < program.plan().schedule.size(); ++rank) {
    const Hop hop = stage_hop(HdpRank(rank), stage, end.other_stage, machine);
    slowest = std::max(slowest, hop.transfer(end.twice / 2) * 2);
  }
  return slowest;
}

Duration sum_with_other_stages(const Program& program, const Machine& machine) {
  Duration longest;
  for (std::int64_t stage = 0; stage < program.pipeline().stages(); ++stage) {
    longest = std::max(longest, sum_with_other_stage(program, stage, machine));
  }
  return longest;
}

Duration least_ending(const Program& program, const Machine& machine) {
  const auto of_stage = [&](std::int64_t stage) {
    const StepEnd end = program.step_end(stage);
    return gradient_reduction(end, machine) + parameter_gather(end, machine);
  };
  Duration least = of_stage(0);
  for (std::int64_t stage = 1; stage < program.pipeline().stages(); ++stage) least = std::min(least, of_stage(stage));
  return least + slowest_optimizer(program, machine) + machine.step_overhead;
}

void finish_step(const Program& program, const Machine& machine, const StepTimes& times, Timeline& timeline) {
  StepEnding(program, machine, times).book(timeline);
}

}  // namespace hdpsim
