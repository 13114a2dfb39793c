#include "sim/engine/impl/training_job.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/engine/step_ending.h"

namespace hdpsim {
namespace {

// The end of the stage that takes longest for a collective, without other traffic.
StepEnd longest_end(const Program& program, const Machine& machine,
                    Duration (*collective)(const StepEnd& end, const Machine& machine)) {
  StepEnd longest = program.step_end();
  for (std::int64_t stage = 1; stage < program.pipeline().stages(); ++stage) {
    const StepEnd end = program.step_end(stage);
    if (collective(end, machine) > collective(longest, machine)) longest = end;
  }
  return longest;
}

}  // namespace

TrainingJob::TrainingJob(const Setting& setting, const Program& first_step, JobPort& port, std::size_t links)
    : setting_(setting),
      port_(port),
      sent_(links),
      collectives_(setting.machine.traffic.get(), first_step.options().mesh) {
  if (setting_.alone) return;
  const Machine& machine = setting_.machine;
  const StepEnd reduced = longest_end(first_step, machine, gradient_reduction);
  const StepEnd gathered = longest_end(first_step, machine, parameter_gather);
  if (machine.pool_flows) {
    reduction_flows_ = machine.pool_flows(CollectiveKind::reduce_scatter, reduced.gradient.common);
    all_gather_flows_ = machine.pool_flows(CollectiveKind::all_gather, gathered.parameters.common);
  }
  const auto collective = [&](Duration alone, Bytes bytes, const CollectivePlan& flows) {
    return std::make_unique<PoolTraffic>(alone, bytes, flows, port_);
  };
  // An all-reduce is a reduce-scatter and an all-gather of its result.
  reduction_ = collective(gradient_reduction(reduced, machine), reduced.gradient.common * (reduced.all_reduce ? 2 : 1),
                          reduction_flows_);
  all_gather_ = collective(parameter_gather(gathered, machine), gathered.parameters.common, all_gather_flows_);
}

void TrainingJob::begin_step(const Program& program) {
  connections_.emplace(setting_.machine, program.pipeline().stages());
  begin_update(program);
}

void TrainingJob::begin_update(const Program& program) {
  HDPSIM_CHECK(step_ended(), "a step of '{}' begins before the last one has ended", setting_.name);
  phase_ = Phase::micro_batches;
  step_began_ = port_.queue.now();
  sync_ = Duration{};
  micro_batches_ =
      make_step({program, setting_.machine, port_, sent_, collectives_, *connections_, setting_.alone, setting_.forms},
                setting_.grain, setting_.queue_all);
  micro_batches_->begin();
  if (!setting_.alone && micro_batches_->progress().all_ended()) next_phase();
}

void TrainingJob::handle(const Event& event) {
  if (event.actor == own_actor) {
    PoolTraffic* collective = running_collective();
    const bool ended = collective != nullptr ? collective->handle(event) : event.tag == phase_ended;
    if (ended) next_phase();
    return;
  }
  if (phase_ != Phase::micro_batches) return;  // an outdated event
  micro_batches_->handle(event);
  if (!setting_.alone && micro_batches_->progress().all_ended()) next_phase();
}

void TrainingJob::rate_changed(std::uint32_t key) {
  if (key != own_actor) {
    micro_batches_->rate_changed(key);
  } else if (PoolTraffic* collective = running_collective()) {
    collective->rate_changed();
  }
}

void TrainingJob::run_out() {
  micro_batches_->progress().check_all_ended(setting_.name);
  HDPSIM_CHECK(setting_.alone, "nothing wakes '{}' in phase {} of its step", setting_.name, static_cast<int>(phase_));
  end_step(std::nullopt);
}

void TrainingJob::next_phase() {
  switch (phase_) {
    case Phase::micro_batches: {
      phase_ = Phase::overlapped;
      const Instant ends = micro_batches_->collectives_end();
      if (ends > port_.queue.now()) return wait(ends - port_.queue.now());
      return next_phase();
    }
    case Phase::overlapped:
      phase_ = Phase::reduction;
      return begin_collective(*reduction_);
    case Phase::reduction:
      end_collective(*reduction_);
      phase_ = Phase::optimizer;
      sync_ += sum_with_other_stages(micro_batches_->program(), setting_.machine);
      return wait(sum_with_other_stages(micro_batches_->program(), setting_.machine) +
                  slowest_optimizer(micro_batches_->program(), setting_.machine));
    case Phase::optimizer:
      phase_ = Phase::all_gather;
      return begin_collective(*all_gather_);
    case Phase::all_gather:
      end_collective(*all_gather_);
      phase_ = Phase::overhead;
      return wait(setting_.machine.step_overhead);
    case Phase::overhead:
      return end_step(sync_);
    case Phase::ended:
      break;
  }
}

void TrainingJob::wait(Duration time) {
  port_.queue.schedule_after(time, own_actor, phase_ended);
}

void TrainingJob::begin_collective(PoolTraffic& collective) {
  sync_began_ = port_.queue.now();
  collective.begin(own_actor);
}

void TrainingJob::end_collective(const PoolTraffic& collective) {
  sync_ += port_.queue.now() - sync_began_;
  count_collectives(phase_, collective.share_done());
}

void TrainingJob::end_step(std::optional<Duration> sync) {
  timeline_ = micro_batches_->take_timeline();
  const std::vector<Instant>& finished = micro_batches_->finished();
  finish_step(micro_batches_->program(), setting_.machine, {step_began_, finished, sync}, timeline_);
  if (setting_.alone) {
    count_collectives(Phase::reduction, 1);
    count_collectives(Phase::all_gather, 1);
  }
  phase_ = Phase::ended;
}

// As gradient_reduction() and parameter_gather() price it.
void TrainingJob::count_collectives(Phase phase, double share) {
  const CollectiveTraffic* links = collectives_.traffic();
  if (links == nullptr) return;
  const Program& program = micro_batches_->program();
  std::vector<std::vector<SetTraffic>> sent;  // by stage
  for (std::int64_t stage = 0; stage < program.pipeline().stages(); ++stage) {
    const StepEnd end = program.step_end(stage);
    std::vector<SetTraffic>& of_stage = sent.emplace_back();
    if (phase == Phase::reduction) {
      links->add_reduction(of_stage, end.gradient, end.all_reduce);
    } else {
      links->add_gather(of_stage, end.parameters);
    }
  }
  for (std::size_t w = 0; w < program.pipeline().workers(); ++w) {
    const WorkerId worker(w);
    collectives_.add(sent[w % sent.size()], {&worker, 1}, share);
  }
}

PoolTraffic* TrainingJob::running_collective() {
  if (phase_ == Phase::reduction) return reduction_.get();
  return phase_ == Phase::all_gather ? all_gather_.get() : nullptr;
}

LinkTraffic TrainingJob::all_traffic() {
  if (phase_ == Phase::micro_batches) micro_batches_->take_back_unsent();
  if (const PoolTraffic* collective = running_collective()) count_collectives(phase_, collective->share_done());
  return take_traffic();
}

LinkTraffic TrainingJob::take_traffic() {
  collectives_.add_to(sent_);
  return std::move(sent_);
}

}  // namespace hdpsim
