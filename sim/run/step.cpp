#include "sim/run/step.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "sim/engine/simulator.h"
#include "sim/engine/step_ending.h"
#include "sim/loading/loaded_run.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/plan_time.h"
#include "sim/program/program.h"
#include "sim/roundpipe/streamed_step.h"

namespace hdpsim {
namespace {

/// Processor seconds of this thread since construction or the last lap; other processes on the machine affect it
/// little.
class Stopwatch {
 public:
  double lap() {
    const std::int64_t now = nanoseconds();
    return static_cast<double>(now - std::exchange(start_, now)) / 1e9;
  }

 private:
  static std::int64_t nanoseconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  std::int64_t start_ = nanoseconds();
};

// What `work` computes of a step. Times beyond the range of the clock come from several quantities of the point
// together: an error of the study, reported at the quantity that is farthest from usual.
template <class Work>
auto of_step(const Outsize& outsize, std::int64_t step, Work work) {
  try {
    return work();
  } catch (const QuantityOverflow& overflow) {
    outsize.fail(fmt::format("step {}", step), overflow.what());
  }
}

// Of a streamed pipeline the deepest layers run forward only once, so that what planners know is no bound.
Duration bound_of(const PointStep& planned, const Program& program, const Machine& machine, const Timeline& timeline) {
  if (is_streamed(program.options().pipeline)) return streamed_bound(timeline, machine.speed);
  return planned.bound(machine.speed) + least_ending(program, machine);
}

StepResult summary(const PointStep& planned, const Program& program, const Machine& machine, const Timeline& timeline) {
  const Plan& plan = planned.plan;
  return {.step = plan.step,
          .sequences = std::ssize(planned.batch.sequences),
          .tokens = planned.batch.tokens(),
          .micro_batches = std::ssize(plan.micro_batches),
          .tokens_held = tokens_held(plan),
          .model_flops = planned.model_flops().count(),
          .time = timeline.step_time,
          .bound = bound_of(planned, program, machine, timeline),
          .mean = timeline.mean(),
          .busy = busy_times(timeline),
          .evidence = timeline.evidence,
          .connections = {},
          .memory = {},
          .events = timeline.events,
          .phases = {}};
}

// Who talked to whom, and what all devices held.
void add_memory(const Program& program, const DeviceRoom& room, const WorkModel& work, const Timeline& timeline,
                std::size_t memory_ranks, SimulatedStep& step) {
  const ConnectionTable connections = connections_of(program.plan(), room.communicators);
  step.result.connections = {connections.most_peers(), connections.groups()};
  if (is_streamed(program.options().pipeline)) {
    step.result.memory = streamed_use(program.options(), program.plan(), room.memory);
    if (memory_ranks > 0) step.memory.push_back(constant_memory(step.result.memory, timeline.step_time));
    return;
  }
  PlanMemory memory = memory_of(program.pipeline(), program.options(), {&connections, room.per_connection});
  memory.place(timeline, work);
  step.result.memory = memory.use();
  for (const HdpRank rank : memory.fullest(memory_ranks)) step.memory.push_back(memory.over_time(rank, timeline, work));
}

std::int64_t largest_share(const Plan& plan) {
  std::int64_t largest = 0;
  for (const std::vector<MicroBatchId>& schedule : plan.schedule) {
    std::int64_t tokens = 0;
    for (const MicroBatchId id : schedule) tokens += plan.micro_batches[id.index()].tokens_per_rank();
    largest = std::max(largest, tokens);
  }
  return largest;
}

LoadingJob loading_job(const PointSpec& spec, const Plan& plan, const Batch& batch) {
  const Mesh& mesh = spec.mesh;
  return {.ranks = mesh.hdp,
          .devices_per_rank = mesh.tp * mesh.pp,
          .nodes = spec.nodes.count(spec.cluster),
          .tokens = batch.tokens(),
          .largest_share = largest_share(plan),
          .samples = std::ssize(batch.sequences),
          .step = plan.step};
}

// Adds the time of loading the step's batch, and the host memory that its loaders hold all the time.
void add_loading(const LoadingSpec& loading, const LoadingJob& job, SimulatedStep& step) {
  step.result.loading = loading_stages(loading, job);
  step.result.loading_job = job;
  const Bytes held = loading_memory(loading, job);
  step.result.memory.host += held;
  for (RankMemory& rank : step.memory) {
    for (MemorySample& sample : rank.samples) sample.host += held;
  }
}

// A job beside the main one, from its own step of the same number on.
BackgroundJob training_beside(const StudyNeighbour& job, Machine& machine, std::int64_t step) {
  return {job.name, &machine, job.lowering, [&job, step](std::int64_t n) { return job.plan(step + n); }};
}

// Everything that runs beside a step of the main job.
Background background_of(const StepConditions& conditions, std::int64_t step, World& world) {
  Background background;
  for (std::size_t i = 0; i < conditions.neighbours.size(); ++i) {
    background.jobs.push_back(training_beside(conditions.neighbours[i], world.neighbour(i).machine(), step));
  }
  background.traffic = conditions.traffic;
  return background;
}

// A checked plan.
PointStep sound(PointStep planned) {
  require_sound(planned.plan);
  return planned;
}

// std::bit_cast(), which libc++ has from version 14 on.
std::uint64_t bits_of(double number) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

// Of all that a plan says, but for its policy's name and the number of its step.
std::uint64_t hash_of(const Plan& plan) {
  std::uint64_t hash = 0;
  const auto say_one = [&](auto number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  const auto say = [&](auto... numbers) { (say_one(numbers), ...); };
  const auto say_spans = [&](const std::vector<Span>& spans) {
    say(spans.size());
    for (const Span& span : spans) say(span.sequence.index(), span.begin, span.tokens);
  };
  say(plan.ranks, plan.capacity, plan.layers, plan.expert_ranks);
  for (const std::int64_t tokens : plan.sequence_tokens) say(tokens);
  for (const MicroBatch& each : plan.micro_batches) {
    say(each.group.size());
    for (const HdpRank rank : each.group) say(rank.index());
    say_spans(each.spans);
    for (const LocalSpans& local : each.local) {
      say(local.holder);
      say_spans(local.spans);
    }
    for (const ServedQueries& moved : each.moved) say(moved.span, moved.begin, moved.tokens, moved.server);
    say(each.local.size(), each.moved.size(), static_cast<int>(each.cut), bits_of(each.offload),
        each.exchange ? static_cast<int>(*each.exchange) : -1, each.token_wise, each.continues, each.repeats_forward,
        each.padding, each.padded, each.update);
  }
  for (const std::vector<MicroBatchId>& schedule : plan.schedule) {
    say(schedule.size());
    for (const MicroBatchId id : schedule) say(id.index());
  }
  return hash;
}

bool has_equal_devices(const PointSpec& spec) {
  bool equal = !spec.conditions.any();
  for (std::int64_t device = 0; equal && device < spec.cluster.devices; ++device) {
    equal = spec.cluster.speed_of(DeviceId(device)) == 1;
  }
  return equal;
}

StepPreview preview_of(const StudyPoint& point, const PointStep& planned) {
  const PointSpec& spec = point.spec;
  const Plan& plan = planned.plan;
  const ConnectionTable connections = connections_of(plan, point.room.communicators);
  const Pipeline pipeline(plan, spec.mesh.pp, spec.pipeline);
  const LoweringOptions& job = point.lowering();
  StepPreview step{.memory = is_streamed(job.pipeline)
                                 ? streamed_use(job, plan, point.room.memory)
                                 : memory_of(pipeline, job, {&connections, point.room.per_connection}).use(),
                   .tokens_held = tokens_held(plan),
                   .model_flops = planned.model_flops().count(),
                   .plan = hash_of(plan),
                   .busy = {}};
  if (spec.loading) {
    step.memory.host += loading_memory(*spec.loading, loading_job(spec, plan, planned.batch));
  }
  if (has_equal_devices(spec)) {
    const std::vector<double> busy = plan_time(plan, point.work.lower_bound()).busy;
    step.busy = Duration::seconds(*std::max_element(busy.begin(), busy.end()));
  }
  return step;
}

void simulate_in_closed_form(const StudyPoint& point, std::size_t plan, World& world) {
  const Batch batch = point.batches_of(plan).step(0);
  try {
    of_step(point.outsize, 0, [&] {
      const PointStep planned = sound(point.planned(plan, 0, batch));
      return simulate(Program(planned.plan, point.lowered), world.machine(), Grain::closed_form);
    });
  } catch (const PlanRefused&) {
    return;  // its run will say so
  }
}

}  // namespace

StepPreview preview_step(const StudyPoint& point, std::size_t plan, std::int64_t step) {
  return of_step(point.outsize, step, [&] {
    return preview_of(point, sound(point.planned(plan, step, point.batches_of(plan).step(step))));
  });
}

StepConditions StepConditions::with(const DeviceConditions& others) const {
  return {.grain = grain,
          .devices = others,
          .neighbours = neighbours,
          .traffic = traffic,
          .outsize = outsize,
          .profile = profile};
}

StepConditions conditions_of(const StudyPoint& point) {
  return {.grain = point.spec.grain,
          .devices = point.spec.conditions,
          .neighbours = point.neighbours,
          .traffic = point.traffic,
          .outsize = point.outsize,
          .profile = *point.spec.profile};
}

void require_simulable(const StudyPoint& point) {
  constexpr double usual = 50;
  if (point.outsize.times < usual) return;
  const std::unique_ptr<World> world = point.make_world();
  for (std::size_t i = 0; i < point.planners.size(); ++i) simulate_in_closed_form(point, i, *world);
}

Plan make_plan(const StudyPoint& point, std::size_t plan, std::int64_t step, const Batch& batch) {
  return of_step(point.outsize, step, [&] { return sound(point.planned(plan, step, batch)); }).plan;
}

Timeline simulate_plan(const Program& program, World& world, const StepConditions& conditions) {
  const std::int64_t step = program.plan().step;
  return of_step(conditions.outsize, step, [&] {
    world.set_time_factors(conditions.devices.any() ? time_factors(conditions.devices, world.cluster().devices, step)
                                                    : std::vector<double>{});
    if (is_streamed(program.options().pipeline)) {
      return streamed_step(program, world.machine(), world.cluster(), conditions.profile);
    }
    return simulate(program, world.machine(), conditions.grain, background_of(conditions, step, world), &world.forms());
  });
}

namespace {

// How the step changes under the same plan with what nobody knows beforehand: errors of costs, slow nodes, routes.
void add_changes(const UncertaintyProbes& probes, const Program& program, const StepConditions& conditions,
                 StepResult& step) {
  const auto time_in = [&](const StepProbe& probe) {
    return simulate_plan(program, *probe.make_world(), conditions.with(probe.devices)).step_time;
  };
  const auto add = [&](const std::vector<StepProbe>& unlike, std::vector<Duration>& changes) {
    for (const StepProbe& probe : unlike) changes.push_back(time_in(probe) - step.time);
  };
  for (const auto& [change, dearer, cheaper] : probes.families) {
    step.slopes.push_back((time_in(dearer) - time_in(cheaper)).scaled(1 / (2 * change)));
  }
  add(probes.slow_nodes, step.slow_nodes);
  add(probes.fitted, step.fitted);
  add(probes.routes, step.routes);
}

SimulatedStep simulated(const PointStep& planned, World& world, const StepRequest& wanted) {
  Stopwatch watch;
  PhaseTimes phases;
  const StudyPoint& point = planned.point;
  const PointSpec& spec = point.spec;
  const std::int64_t step = planned.plan.step;
  const Program program(planned.plan, point.lowered);
  const StepConditions usual = conditions_of(point);
  const StepConditions conditions = wanted.devices != nullptr ? usual.with(*wanted.devices) : usual;
  Timeline timeline = simulate_plan(program, world, conditions);
  phases.simulation_s = watch.lap();
  if (wanted.see) wanted.see(program, timeline);

  SimulatedStep result{summary(planned, program, world.machine(), timeline), {}, {}, {}};
  if (spec.uncertainty && takes_elasticities(*spec.uncertainty, step, spec.steps)) {
    add_changes(point.probes(), program, conditions, result.result);
  }
  add_memory(program, point.room, point.work, timeline, wanted.memory_ranks, result);
  if (spec.loading) {
    add_loading(*spec.loading, loading_job(spec, planned.plan, planned.batch), result);
  }
  phases.summary_s = watch.lap();
  result.result.phases = phases;
  result.ranks = std::move(timeline.ranks);
  result.links = {std::move(timeline.links), std::move(timeline.other_links)};
  return result;
}

SimulatedStep planned_and_simulated(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world,
                                    const StepRequest& wanted) {
  Stopwatch watch;
  PhaseTimes phases;
  Batch batch = point.batches_of(plan).step(step);
  phases.batch_s = watch.lap();
  const PointStep planned = point.planned(plan, step, std::move(batch));
  phases.planner_s = watch.lap();
  require_sound(planned.plan);
  phases.check_s = watch.lap();
  SimulatedStep result = simulated(planned, world, wanted);
  result.result.phases += phases;
  return result;
}

}  // namespace

SimulatedStep simulate_step(const PointStep& planned, World& world, const StepRequest& wanted) {
  return of_step(planned.point.outsize, planned.plan.step, [&] { return simulated(planned, world, wanted); });
}

SimulatedStep simulate_step(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world,
                            const StepRequest& wanted) {
  return of_step(point.outsize, step, [&] { return planned_and_simulated(point, plan, step, world, wanted); });
}

DataWaits add_data_waits(const StudyPoint& point, std::vector<StepResult>& steps) {
  const LoadingSpec& loading = *point.spec.loading;
  std::vector<LoadedStep> loaded;
  loaded.reserve(steps.size());
  for (const StepResult& step : steps) loaded.push_back({step.loading, step.time, step.loading_job});
  const std::int64_t last = steps.empty() ? 0 : steps.back().step;
  LoadedCourse course = of_step(point.outsize, last, [&] { return loaded_course(loading, loaded); });
  DataWaits added{std::move(course.waits), std::vector<Bytes>(steps.size()), std::move(course.events)};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    add_data_wait(added.waits[i], steps[i]);
    if (course.use.empty()) continue;
    const LoaderMemory& memory = course.use[i].memory;
    const LoadingJob& job = steps[i].loading_job;
    if (loading.autoscale) {
      added.host_growth[i] = (memory.all - memory.elsewhere) / job.devices() - loading_memory(loading, job);
    }
    steps[i].memory.host += added.host_growth[i];
    steps[i].loaders = std::move(course.use[i]);
  }
  return added;
}

}  // namespace hdpsim
