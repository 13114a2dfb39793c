#include "sim/loading/loaded_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "sim/loading/impl/source_actors.h"

namespace hdpsim {
namespace {

Duration transfer(Bytes bytes, const std::optional<Bandwidth>& rate) {
  return rate ? bytes / *rate : Duration{};
}

// Bytes of some tokens of a step's mix.
Bytes bytes_of(const LoadingSpec& spec, std::int64_t step, std::int64_t tokens) {
  if (spec.sources.empty()) return spec.bytes_per_token * tokens;
  const std::vector<double> shares = spec.shares_at(step);
  double mean = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const SourceSpec& source = spec.sources[i];
    mean += shares[i] * static_cast<double>(source.count) *
            static_cast<double>(source.bytes_per_token.value_or(spec.bytes_per_token).count());
  }
  return Bytes(tokens).scaled(mean);
}

Duration preparation(const LoadingSpec& spec, std::int64_t tokens) {
  if (!spec.tokens_per_s) return {};
  return Duration::seconds(static_cast<double>(tokens) / (*spec.tokens_per_s * static_cast<double>(spec.processes)));
}

// What a loader needs to prepare a part of the step's samples, of all sources.
Duration preparation(const LoadingSpec& spec, const LoadingJob& job, std::int64_t tokens) {
  if (spec.sources.empty()) return preparation(spec, tokens);
  const std::vector<double> shares = spec.shares_at(job.step);
  const double part = job.tokens == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(job.tokens);
  double work_s = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const SourceSpec& source = spec.sources[i];
    const std::optional<double> rate = source.tokens_per_s ? source.tokens_per_s : spec.tokens_per_s;
    const double all_s = static_cast<double>(job.samples) * source.sample.seconds() +
                         (rate ? static_cast<double>(job.tokens) / *rate : 0);
    work_s += part * all_s * shares[i] * static_cast<double>(source.count);
  }
  return Duration::seconds(work_s / static_cast<double>(spec.processes));
}

Duration planning(const LoadingSpec& spec, const LoadingJob& job) {
  const auto samples = static_cast<double>(job.samples);
  const double comparisons = job.samples > 1 ? samples * std::log2(samples) : 0;
  return spec.planner + spec.planner_sample * job.samples + spec.planner_compare.scaled(comparisons);
}

Duration planning_ahead(const LoadingSpec& spec, const LoadingJob& job) {
  return spec.plan_ahead ? planning(spec, job) : Duration{};
}

// Those of a rank who ask for data.
std::int64_t clients_per_rank(const LoadingSpec& spec, const LoadingJob& job) {
  return spec.each_device ? job.devices_per_rank : 1;
}

// Those on the node with the most. A rank of many devices may lie on several nodes.
std::int64_t clients_on_node(const LoadingSpec& spec, const LoadingJob& job) {
  return spec.each_device ? (job.devices() - 1) / job.nodes + 1 : job.ranks_per_node();
}

std::vector<Duration> spmd_stages(const LoadingSpec& spec, const LoadingJob& job) {
  const std::int64_t tokens = spec.whole_batch ? job.tokens : job.largest_share;
  const Bytes batch = bytes_of(spec, job.step, tokens);
  const Duration read = std::max(transfer(batch * clients_per_rank(spec, job) * job.ranks, spec.storage),
                                 transfer(batch * clients_on_node(spec, job), spec.network));
  return {read + preparation(spec, job, tokens) + planning_ahead(spec, job)};
}

// From storage to the nodes, once.
Duration reading(const LoadingSpec& spec, const LoadingJob& job) {
  const Bytes batch = bytes_of(spec, job.step, job.tokens);
  const Bytes of_a_node = Bytes((batch.count() - 1) / job.nodes + 1);
  return std::max(transfer(batch, spec.storage), transfer(of_a_node, spec.network));
}

// What the clients of a node fetch.
Duration fetching(const LoadingSpec& spec, const LoadingJob& job) {
  return transfer(bytes_of(spec, job.step, job.largest_share) * clients_on_node(spec, job), spec.network);
}

std::vector<Duration> remote_stages(const LoadingSpec& spec, const LoadingJob& job) {
  return {reading(spec, job) + preparation(spec, job.tokens), planning_ahead(spec, job), fetching(spec, job)};
}

std::int64_t constructors_of(const LoadingSpec& spec, const LoadingJob& job) {
  return spec.constructors.value_or(job.nodes);
}

std::vector<Duration> actor_stages(const LoadingSpec& spec, const LoadingJob& job) {
  const std::int64_t constructors = constructors_of(spec, job);
  Duration collecting;  // by the nodes that have constructors
  if (constructors > 0) {
    const std::int64_t nodes = std::min(constructors, job.nodes);
    collecting = transfer(Bytes((bytes_of(spec, job.step, job.tokens).count() - 1) / nodes + 1), spec.network);
  }
  return {reading(spec, job), planning_ahead(spec, job), collecting + fetching(spec, job)};
}

// The connections at the end that has the most, one end after the other: what they take is the time of a step.
std::int64_t connections_in_turn(const LoadingSpec& spec, const LoadingJob& job, std::int64_t loaders) {
  const std::int64_t clients = job.ranks * clients_per_rank(spec, job);
  const std::int64_t constructors = constructors_of(spec, job);
  if (constructors == 0) return std::max(loaders, clients);
  return std::max(loaders, constructors) + (clients - 1) / constructors + 1;
}

std::int64_t all_connections(const LoadingSpec& spec, const LoadingJob& job, std::int64_t loaders) {
  const std::int64_t clients = job.ranks * clients_per_rank(spec, job);
  const std::int64_t constructors = constructors_of(spec, job);
  return constructors == 0 ? loaders * clients : loaders * constructors + clients;
}

Bytes state_at_first(const LoadingSpec& spec) {
  Bytes state;
  for (const SourceSpec& source : spec.sources) state += loader_state(spec, source, source.actors) * source.count;
  return state;
}

// Each loader of SPMD holds every source open in each of its processes.
Bytes memory_of_spmd_loader(const LoadingSpec& spec, const LoadingJob& job) {
  Bytes open = spec.process_memory;
  for (const SourceSpec& source : spec.sources) open += source.access * source.count;
  const Bytes batch = bytes_of(spec, job.step, spec.whole_batch ? job.tokens : job.largest_share);
  return open * spec.processes + batch * (spec.prefetch + 1);
}

LoaderMemory spmd_memory(const LoadingSpec& spec, const LoadingJob& job) {
  const Bytes loader = memory_of_spmd_loader(spec, job);
  return {loader * clients_per_rank(spec, job) * job.ranks, loader * clients_on_node(spec, job), {}};
}

// Loaders, constructors and their samples are spread evenly over the nodes. Loaders hold the samples that batches ahead
// will take, constructors (or clients, without these) the batches.
LoaderMemory actor_memory(const LoadingSpec& spec, const LoadingJob& job, Bytes state) {
  const Bytes samples = bytes_of(spec, job.step, job.tokens) * (spec.prefetch + 1);
  const std::int64_t holders = 2 + (spec.deaths ? spec.deaths->shadows : 0);
  const Bytes all = state + samples * holders + spec.process_memory * constructors_of(spec, job);
  const Bytes room = spec.node_room ? *spec.node_room * job.nodes : all;
  const Bytes here = std::min(all, room);
  return {all, Bytes((here.count() + job.nodes - 1) / job.nodes), all - here};
}

constexpr std::array<std::string_view, 1> spmd_names{"loaders"};
constexpr std::array<std::string_view, 3> remote_names{"sources", "planner", "clients"};
constexpr std::array<std::string_view, 3> actor_names{"reading", "planner", "constructors"};

std::string_view stage_name(LoaderStyle style, std::size_t stage) {
  if (style == LoaderStyle::spmd) return spmd_names.at(stage);
  return style == LoaderStyle::remote ? remote_names.at(stage) : actor_names.at(stage);
}

}  // namespace

LoadedRun::LoadedRun(const LoadingSpec& spec) : spec_(spec) {
  if (spec.style == LoaderStyle::actors) actors_ = std::make_unique<SourceActors>(spec);
}

LoadedRun::LoadedRun(LoadedRun&&) noexcept = default;
LoadedRun::~LoadedRun() = default;

void LoadedRun::rehearse(const LoadedStep& step) {
  (void)next(step, true);
}

Duration LoadedRun::wait(const LoadedStep& step) {
  if (!std::exchange(has_begun_, true) && actors_) actors_->start(ended_);
  const Duration wait = next(step, false);
  if (!spec_.sources.empty()) describe(step);
  if (wait == Duration{}) use_.waited_for.clear();
  return wait;
}

void LoadedRun::begin_again() {
  begins_.clear();
  free_.assign(free_.size(), ended_);
}

Duration LoadedRun::next(const LoadedStep& step, bool is_rehearsal) {
  const DurationSum loaded = load(step, is_rehearsal);
  DurationSum planned = ended_;
  if (!spec_.plan_ahead) planned += planning(spec_, step.job);
  const DurationSum begin = std::max(planned, loaded);
  if (planned > loaded) slowest_ = "planner";
  const Duration wait = (begin - ended_).duration();
  begins_.push_back(begin);
  if (std::ssize(begins_) > spec_.prefetch) begins_.pop_front();
  if (actors_ && !is_rehearsal) actors_->begins(begin, step.job, step.time);
  ended_ = begin;
  ended_ += step.time;
  return wait;
}

DurationSum LoadedRun::loading_begins() const {
  if (spec_.prefetch == 0) return ended_;
  return std::ssize(begins_) < spec_.prefetch ? DurationSum{} : begins_.front();
}

// When the batch has passed all stages.
DurationSum LoadedRun::load(const LoadedStep& step, bool is_rehearsal) {
  DurationSum at = loading_begins();
  Duration longest;
  const auto passed = [&](DurationSum begin, DurationSum end, std::string_view name) {
    const Duration took = (end - begin).duration();
    if (took >= longest) slowest_ = name;
    longest = std::max(longest, took);
    return end;
  };
  free_.resize(step.stages.size());
  for (std::size_t stage = 0; stage < step.stages.size(); ++stage) {
    const DurationSum begin = std::max(at, free_[stage]);
    DurationSum end = begin;
    end += step.stages[stage];
    if (actors_ && stage + 1 == step.stages.size()) {
      end += spec_.connection * connections_in_turn(spec_, step.job, actors_->loaders());
    }
    free_[stage] = end;
    at = passed(begin, end, stage_name(spec_.style, stage));
    if (!actors_ || stage > 0) continue;
    const DurationSum prepared = actors_->prepare(at, step.job, is_rehearsal);
    at = passed(at, prepared, actors_->latest());
  }
  return at;
}

void LoadedRun::describe(const LoadedStep& step) {
  const LoadingJob& job = step.job;
  use_.loaders = actors_ ? actors_->loaders() : job.ranks * clients_per_rank(spec_, job);
  use_.memory = actors_ ? actor_memory(spec_, job, actors_->state()) : spmd_memory(spec_, job);
  use_.connections = actors_ ? all_connections(spec_, job, use_.loaders) : 0;
  use_.waited_for = slowest_;
}

std::vector<LoaderEvent> LoadedRun::take_events() {
  return actors_ ? actors_->take_events() : std::vector<LoaderEvent>{};
}

std::vector<Duration> loading_stages(const LoadingSpec& spec, const LoadingJob& job) {
  switch (spec.style) {
    case LoaderStyle::spmd:
      return spmd_stages(spec, job);
    case LoaderStyle::remote:
      return remote_stages(spec, job);
    case LoaderStyle::actors:
      return actor_stages(spec, job);
  }
  return {};
}

Bytes loading_memory(const LoadingSpec& spec, const LoadingJob& job) {
  if (spec.style == LoaderStyle::spmd) {
    return memory_of_spmd_loader(spec, job) * clients_per_rank(spec, job) / job.devices_per_rank;
  }
  if (spec.style == LoaderStyle::actors) {
    const LoaderMemory memory = actor_memory(spec, job, state_at_first(spec));
    return (memory.all - memory.elsewhere) / job.devices();
  }
  const Bytes batch = spec.bytes_per_token * job.tokens * (spec.prefetch + 1);
  const Bytes slice = spec.bytes_per_token * job.largest_share * (spec.prefetch + 1);
  return slice / job.devices_per_rank + batch / job.devices();
}

LoadedCourse loaded_course(const LoadingSpec& spec, const std::vector<LoadedStep>& steps) {
  LoadedCourse course;
  LoadedRun run(spec);
  for (LoadedStep step : steps) {
    step.job.step = steps.front().job.step;
    run.rehearse(step);
  }
  for (const LoadedStep& step : steps) {
    course.waits.push_back(run.wait(step));
    if (!spec.sources.empty()) course.use.push_back(run.use());
  }
  course.events = run.take_events();
  return course;
}

}  // namespace hdpsim
