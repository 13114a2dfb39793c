#include "sim/roundpipe/streamed_step.h"

#include <algorithm>
#include <numeric>

#include "sim/base/diagnostic.h"
#include "sim/engine/simulator.h"
#include "sim/model/parameters.h"
#include "sim/program/chunk_map.h"

namespace hdpsim {
namespace {

void require_whole(const Plan& plan) {
  const auto is_whole = [](const MicroBatch& each) {
    return each.group.size() == 1 && !each.offloads() && !each.continues && !each.repeats_forward && each.update == 0;
  };
  if (std::all_of(plan.micro_batches.begin(), plan.micro_batches.end(), is_whole)) return;
  throw InputError("stages that go round the GPUs run whole micro-batches, once each",
                   "choose a plan without offload, chunks and several updates of a step, or another schedule");
}

/// What stages are made of, for the mean micro-batch.
class StageWriter {
 public:
  StageWriter(const LoweringOptions& job, const std::vector<StreamedLayer>& layers, double hidden)
      : job_(job), layers_(layers), hidden_(hidden) {}

  [[nodiscard]] StreamedStage forward(const StageLayers& of) const {
    StreamedStage stage = begin(of);
    for (const StreamedLayer& each : part(of)) stage.seconds += each.forward;
    stage.input_bytes = of.first == 0 ? 0 : hidden_;
    stage.output_bytes = hidden_ * static_cast<double>(of.count);
    return stage;
  }
  [[nodiscard]] StreamedStage fused(const StageLayers& of) const {
    StreamedStage stage = with_gradients(of);
    stage.input_bytes = of.first == 0 ? 0 : hidden_;
    return stage;
  }
  [[nodiscard]] StreamedStage backward(const StageLayers& of) const {
    StreamedStage stage = with_gradients(of);
    stage.input_bytes = of.first == 0 ? hidden_ : 2 * hidden_;
    return stage;
  }

 private:
  [[nodiscard]] std::span<const StreamedLayer> part(const StageLayers& of) const {
    return std::span(layers_).subspan(static_cast<std::size_t>(of.first), static_cast<std::size_t>(of.count));
  }
  [[nodiscard]] StreamedStage begin(const StageLayers& of) const {
    StreamedStage stage{.first = of.first, .layers = of.count};
    for (const StreamedLayer& each : part(of)) stage.weight_bytes += each.bytes;
    return stage;
  }
  [[nodiscard]] StreamedStage with_gradients(const StageLayers& of) const {
    StreamedStage stage = begin(of);
    for (const StreamedLayer& each : part(of)) {
      stage.seconds += each.backward;
      stage.gradient_bytes += each.gradient_bytes;
    }
    stage.output_bytes = of.first == 0 ? 0 : hidden_;
    const double trained = stage.gradient_bytes / static_cast<double>(job_.model.element_bytes);
    stage.update_seconds = trained / job_.recipe.host.updates_per_s;
    return stage;
  }

  const LoweringOptions& job_;
  const std::vector<StreamedLayer>& layers_;
  double hidden_;  // bytes of the hidden states of a micro-batch
};

/// Parts of a step's breakdown, which sum to it.
Breakdown breakdown_of(const StreamedTime& time, double attention, Duration overhead, Duration step) {
  Breakdown parts;
  parts[Activity::attention] = Duration::seconds(time.compute * attention);
  parts[Activity::linear] = Duration::seconds(time.compute * (1 - attention));
  parts[Activity::offload_stall] = Duration::seconds(time.copies);
  parts[Activity::bubble] = Duration::seconds(time.pipeline);
  parts[Activity::optimizer] = Duration::seconds(time.optimizer);
  parts[Activity::overhead] = overhead;
  parts[Activity::linear] += step - parts.total();  // what rounding leaves
  return parts;
}

// The share of attention in the time of kernels.
double attention_share(const Timeline& timeline) {
  double attention = 0;
  double all = 0;
  for (const Breakdown& rank : timeline.ranks) {
    attention += rank[Activity::attention].seconds();
    all += (rank[Activity::attention] + rank[Activity::linear] + rank[Activity::overhead]).seconds();
  }
  return all > 0 ? attention / all : 0;
}

/// Says when the passes of a pipeline of even chunks ran, from when the stages that have their layers did.
class PassTimes {
 public:
  PassTimes(const StageCut& cut, const RoundRobinJob& job, const RoundRobinStep& step, Duration length)
      : forward_(std::ssize(cut.forward)), job_(job), step_(step), length_(length) {}

  /// Of layers first ... end - 1 in both directions or in one.
  [[nodiscard]] MicroBatchInterval both(std::size_t micro_batch) const {
    return hull(micro_batch, 0, layers(), 0, all());
  }
  [[nodiscard]] MicroBatchInterval forward(std::size_t micro_batch, std::int64_t first, std::int64_t end) const {
    return hull(micro_batch, first, end, 0, forward_ + 1);
  }
  [[nodiscard]] MicroBatchInterval backward(std::size_t micro_batch, std::int64_t first, std::int64_t end) const {
    return hull(micro_batch, first, end, forward_, all());
  }
  [[nodiscard]] std::int64_t layers() const {
    const StreamedStage& fused = job_.stages[static_cast<std::size_t>(forward_)];
    return fused.first + fused.layers;
  }

 private:
  [[nodiscard]] std::int64_t all() const { return std::ssize(job_.stages); }
  // Other steps overlap with the end of one that an optimizer behind does not drain: it is cut off there.
  [[nodiscard]] Instant at(double seconds) const { return Instant::at(std::min(Duration::seconds(seconds), length_)); }

  [[nodiscard]] MicroBatchInterval hull(std::size_t micro_batch, std::int64_t first, std::int64_t end,
                                        std::int64_t from, std::int64_t to) const {
    double begin = length_.seconds();
    double last = 0;
    for (std::int64_t s = from; s < to; ++s) {
      const StreamedStage& stage = job_.stages[static_cast<std::size_t>(s)];
      if (stage.first >= end || stage.first + stage.layers <= first) continue;
      const StreamedPass& pass = step_.passes[static_cast<std::size_t>(s) * job_.micro_batches.size() + micro_batch];
      begin = std::min(begin, pass.begin);
      last = std::max(last, pass.end);
    }
    return {at(begin), at(std::max(begin, last))};
  }

  std::int64_t forward_;
  const RoundRobinJob& job_;
  const RoundRobinStep& step_;
  Duration length_;
};

void add_intervals(const Pipeline& pipeline, std::int64_t layers, const PassTimes& times, Timeline& timeline) {
  const std::size_t count = pipeline.plan().micro_batches.size();
  for (std::size_t i = 0; i < count; ++i) timeline.micro_batches.push_back(times.both(i));
  if (pipeline.has_whole_passes()) return;
  timeline.passes.resize(pipeline.passes());
  for (std::size_t i = 0; i < pipeline.passes(); ++i) {
    const StagePass pass = pipeline.pass(PassId(i));
    const LayerRange range = pipeline.chunk_map().deal().layers(layers, pass.chunk);
    // The embedding is layer 0 of those that are streamed.
    const std::int64_t first = pass.chunk == 0 ? 0 : range.first + 1;
    const std::int64_t end = pass.chunk + 1 == pipeline.chunks() ? times.layers() : range.first + range.count + 1;
    const std::size_t micro_batch = pass.micro_batch.index();
    timeline.passes[i] = pass.kind == PassKind::forward ? times.forward(micro_batch, first, end)
                                                        : times.backward(micro_batch, first, end);
  }
}

// By micro-batch, relative to the mean one.
std::vector<StreamedMicroBatch> relative_micro_batches(const Plan& plan, const std::vector<double>& seconds) {
  const auto count = static_cast<double>(seconds.size());
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
  double tokens = 0;
  for (const MicroBatch& each : plan.micro_batches) tokens += static_cast<double>(each.tokens()) / count;
  std::vector<StreamedMicroBatch> all;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    all.push_back({seconds[i] / mean, static_cast<double>(plan.micro_batches[i].tokens()) / tokens});
  }
  return all;
}

}  // namespace

StreamLinks stream_links(const ClusterSpec& cluster, const DeviceProfile& profile, const Machine& machine) {
  const auto per_s = [](Bandwidth rate) { return static_cast<double>(rate.bytes_per_second()); };
  const Bandwidth uplink = cluster.pcie;
  StreamLinks links{.up = per_s(uplink),
                    .down = per_s(uplink),
                    .switch_rate = per_s(uplink),
                    .gpus_per_switch = std::max<std::int64_t>(1, cluster.devices_per_pcie_uplink)};
  if (!profile.host_copies) return links;
  const HostCopies& copies = *profile.host_copies;
  // What the machine's copies are slower or faster than the profile says.
  const double usual = std::min(per_s(copies.h2d), per_s(uplink) / static_cast<double>(links.gpus_per_switch));
  const double factor = per_s(machine.h2d) / usual;
  links.up = factor * std::min(per_s(copies.h2d), per_s(uplink));
  links.down = factor * std::min(per_s(copies.d2h), per_s(uplink));
  links.down_meets_up = std::max(0.0, per_s(copies.h2d) - per_s(copies.h2d_both)) / per_s(copies.d2h_both);
  return links;
}

RoundRobinJob round_robin_job(const LoweringOptions& job, const Plan& plan, const StageCut& cut,
                              const std::vector<StreamedLayer>& layers) {
  double tokens = 0;
  for (const MicroBatch& each : plan.micro_batches) tokens += static_cast<double>(each.tokens());
  tokens /= static_cast<double>(plan.micro_batches.size());
  const double hidden = tokens * static_cast<double>(job.model.hidden * job.model.element_bytes);
  const StageWriter writer(job, layers, hidden);
  RoundRobinJob made;
  for (const StageLayers& each : cut.forward) made.stages.push_back(writer.forward(each));
  made.stages.push_back(writer.fused(cut.fused));
  for (const StageLayers& each : cut.backward) made.stages.push_back(writer.backward(each));
  made.optimizer =
      job.pipeline.schedule == drained_streamed_schedule ? HostOptimizer::at_end : HostOptimizer::one_step_behind;
  return made;
}

Timeline streamed_step(const Program& program, const Machine& machine, const ClusterSpec& cluster,
                       const DeviceProfile& profile) {
  const LoweringOptions& options = program.options();
  const Plan& plan = program.plan();
  require_whole(plan);
  const StreamedTimes times = streamed_times(options, plan, machine);
  const StageCut cut =
      stage_cut(times.layers, options.mesh.pp, static_cast<double>(cluster.least_device_memory().count()));
  RoundRobinJob job = round_robin_job(options, plan, cut, times.layers);
  job.micro_batches = relative_micro_batches(plan, times.micro_batches);
  job.speeds = machine.speed;
  job.links = stream_links(cluster, profile, machine);
  const RoundRobinStep step = round_robin_step(job);

  // Kernels, by what they are and how well their times are known, are those of even stages.
  Machine even = machine;
  even.record_instructions = false;
  const Timeline kernels = simulate(program, even, Grain::closed_form);
  const double attention = attention_share(kernels);
  Timeline timeline;
  timeline.step_time = Duration::seconds(step.seconds) + machine.step_overhead;
  timeline.evidence = kernels.evidence;
  timeline.links = LinkTraffic(kernels.links.bytes.size());
  timeline.events = step.events;
  for (const StreamedTime& gpu : step.gpus) {
    timeline.ranks.push_back(breakdown_of(gpu, attention, machine.step_overhead, timeline.step_time));
  }
  add_intervals(program.pipeline(), options.model.layers, {cut, job, step, timeline.step_time}, timeline);
  return timeline;
}

Duration streamed_bound(const Timeline& timeline, const std::vector<double>& speeds) {
  double work = 0;
  double speed = 0;
  for (std::size_t gpu = 0; gpu < timeline.ranks.size(); ++gpu) {
    const Breakdown& parts = timeline.ranks[gpu];
    work += speeds[gpu] * (parts[Activity::attention] + parts[Activity::linear]).seconds();
    speed += speeds[gpu];
  }
  return Duration::seconds(work / speed);
}

}  // namespace hdpsim
