#include "sim/relayout/point_relayout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/layers.h"
#include "sim/model/memory.h"
#include "sim/plan/plan_time.h"
#include "sim/program/schedule_time.h"

namespace hdpsim {
namespace {

std::int64_t tp_of_cut(const Mesh& mesh, std::int64_t cut) {
  return mesh.tp >> cut;
}

std::int64_t cuts_of(const Mesh& mesh) {
  std::int64_t cuts = 1;
  while (tp_of_cut(mesh, cuts) > 0) ++cuts;
  return cuts;
}

// The same pipelines of groups of tp / 2^cut on as many devices.
PointSpec with_cut_groups(PointSpec spec, std::int64_t cut) {
  const std::int64_t tp = tp_of_cut(spec.mesh, cut);
  spec.mesh.hdp = spec.mesh.hdp * spec.mesh.tp / tp;
  spec.mesh.tp = tp;
  return spec;
}

/// What the mean micro-batch takes on a mean stage, by group cut, and on which chunks it takes more.
struct StageTimes {
  PassSeconds seconds;
  std::vector<PassSeconds> excess;  ///< By chunk; empty: none.

  [[nodiscard]] double both() const { return seconds.forward + seconds.backward; }
};

StageTimes stage_times(const PointSpec& spec, const DeviceProfile& profile, const Plan& plan) {
  Diagnostics problems;
  const auto world = world_of(spec.cluster, profile, layout_of(spec), {}, problems);
  problems.throw_if_any();
  const WorkModel work = world->job().work_model(lowering_of(spec), spec.capacity);
  StageTimes times;
  double tokens = 0;
  const auto count = static_cast<double>(plan.micro_batches.size());
  for (const PassSeconds& each : pass_seconds(plan, work)) {
    times.seconds.forward += each.forward / count;
    times.seconds.backward += each.backward / count;
  }
  for (const MicroBatch& each : plan.micro_batches) tokens += static_cast<double>(each.tokens()) / count;
  for (const auto& [per_token, fixed] : work.chunk_excess) {
    times.excess.push_back({per_token.forward * tokens + fixed.forward, per_token.backward * tokens + fixed.backward});
  }
  return times;
}

// A device whose kernels take twice as long.
DeviceProfile twice_as_slow(DeviceProfile profile) {
  FamilyFactors twice;
  for (const CostFamily family :
       {CostFamily::attention_forward, CostFamily::attention_backward, CostFamily::gemm, CostFamily::memory_bound}) {
    twice[family] = 2;
  }
  profile.factors *= twice;
  return profile;
}

PassSeconds operator-(const PassSeconds& a, const PassSeconds& b) {
  return {a.forward - b.forward, a.backward - b.backward};
}
PassSeconds operator+(const PassSeconds& a, const PassSeconds& b) {
  return {a.forward + b.forward, a.backward + b.backward};
}
PassSeconds operator*(double factor, const PassSeconds& a) {
  return {factor * a.forward, factor * a.backward};
}

/// What a layer takes, and the first and the last stage besides.
struct LayerTimes {
  PassSeconds layer;
  PassSeconds first;
  PassSeconds last;
};

// Chunks between the first and the last one have layers alone; of two, the first one counts as such.
LayerTimes layer_times(const StageTimes& stage, const Mesh& mesh, std::int64_t layers) {
  const double layers_of_chunk = static_cast<double>(layers) / static_cast<double>(mesh.pp);
  if (std::ssize(stage.excess) != mesh.pp || mesh.pp == 1) return {1 / layers_of_chunk * stage.seconds, {}, {}};
  const PassSeconds& usual = stage.excess[mesh.pp > 2 ? 1 : 0];
  return {1 / layers_of_chunk * (stage.seconds + usual), stage.excess.front() - usual, stage.excess.back() - usual};
}

// One rank with so many micro-batches, of which only the number counts here.
Plan plan_of_pipeline(std::int64_t micro_batches) {
  Plan plan;
  plan.policy = "relayout";
  plan.ranks = 1;
  plan.capacity = 1;
  plan.layers = 1;
  plan.schedule.resize(1);
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    const auto number = static_cast<std::size_t>(i);
    plan.sequence_tokens.push_back(1);
    plan.micro_batches.push_back({.group = {HdpRank(0)}, .spans = {{SequenceId(number), 0, 1}}});
    plan.schedule.front().push_back(MicroBatchId(number));
  }
  return plan;
}

double pipeline_seconds(const PipelineLayout& layout, const LayerTimes& times) {
  const Plan plan = plan_of_pipeline(layout.micro_batches);
  const Pipeline pipeline(plan, std::ssize(layout.stages), {});
  std::vector<ChunkExcess> excess;
  std::vector<double> speeds;
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    const StageLayout& stage = layout.stages[s];
    PassSeconds more = static_cast<double>(stage.layers - 1) * times.layer;
    if (s == 0) more = more + times.first;
    if (s + 1 == layout.stages.size()) more = more + times.last;
    excess.push_back({.fixed = more});
    speeds.push_back(1 / stage.group.slowdown);
  }
  const std::vector<PassSeconds> seconds(plan.micro_batches.size(), times.layer);
  return schedule_seconds(pipeline, seconds, excess, speeds);
}

/// Bytes of a device of a group of tp / 2^cut.
struct GroupMemory {
  double layer = 0;      ///< A layer's states, ...
  double in_flight = 0;  ///< ... what it keeps of a micro-batch, ...
  double first = 0;
  double last = 0;
  double extra = 0;
};

GroupMemory group_memory(const StudyPoint& point, std::int64_t tp, std::int64_t tokens) {
  const PointSpec& spec = point.spec;
  const MemoryLoad load{.tokens = tokens};
  const auto memory = [&](std::int64_t layers, bool embedding, bool head) {
    const DeviceShape shape{.tp = tp,
                            .pp = spec.mesh.pp,
                            .pool = spec.mesh.ranks_of_a_shard_group(),
                            .layers = {{layers, 0}},
                            .embedding = embedding,
                            .head = head};
    return DeviceMemory(spec.model, shape, spec.recipe);
  };
  const auto bytes = [](Bytes count) { return static_cast<double>(count.count()); };
  const auto states = [&](const DeviceMemory& of) { return bytes(of.states().total()); };
  const auto peak = [&](const DeviceMemory& of) { return bytes(of.peak(load).total()); };
  const DeviceMemory one = memory(1, false, false);
  const DeviceMemory two = memory(2, false, false);
  GroupMemory found;
  found.layer = states(two) - states(one);
  found.in_flight = bytes(two.kept(load)) - bytes(one.kept(load));
  found.first = states(memory(1, true, false)) - states(one);
  found.last = peak(memory(1, false, true)) - peak(one);
  found.extra = peak(one) - found.layer - found.in_flight;
  return found;
}

void set_memory(const StudyPoint& point, RelayoutJob& job) {
  std::vector<GroupMemory> memory;
  for (std::size_t cut = 0; cut < job.cuts.size(); ++cut) {
    memory.push_back(
        group_memory(point, tp_of_cut(point.spec.mesh, static_cast<std::int64_t>(cut)), point.spec.capacity));
  }
  const auto of = [memory](std::int64_t cut) { return memory[static_cast<std::size_t>(cut)]; };
  job.memory = static_cast<double>(point.room.memory.count());
  job.layer_memory = [of](std::int64_t cut, std::int64_t in_flight) {
    return of(cut).layer + static_cast<double>(in_flight) * of(cut).in_flight;
  };
  job.first_memory = [of](std::int64_t cut) { return of(cut).first; };
  job.last_memory = [of](std::int64_t cut) { return of(cut).last; };
  job.extra_memory = [of](std::int64_t cut) { return of(cut).extra; };
}

std::vector<std::vector<std::int64_t>> groups_of(const StudyPoint& point) {
  const auto world = point.make_world();
  const Mesh& mesh = point.spec.mesh;
  std::vector<std::vector<std::int64_t>> groups;
  for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
    for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
      std::vector<std::int64_t>& devices = groups.emplace_back();
      for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
        const HdpRank of(static_cast<std::size_t>(rank));
        devices.push_back(static_cast<std::int64_t>(world->machine().placement->device(of, stage, shard).index()));
      }
    }
  }
  return groups;
}

}  // namespace

std::string relayout_problem(const StudyPoint& point) {
  const PointSpec& spec = point.spec;
  if (spec.model.moe) return "its layers have experts";
  if (layer_runs(spec.model).size() > 1) return "its layers are of several kinds";
  if (spec.mesh.tp > spec.cluster.devices_per_node) return "its tensor-parallel groups span nodes";
  if (!std::has_single_bit(static_cast<std::uint64_t>(spec.mesh.tp))) return "its mesh.tp is no power of two";
  if (spec.mesh.pp > 1 && spec.pipeline.schedule != "1f1b") {
    return fmt::format("its schedule is {}, and not 1f1b", spec.pipeline.schedule);
  }
  return {};
}

std::string relayout_problem(const Plan& plan) {
  const auto shares = [](const MicroBatch& each) { return each.group.size() > 1; };
  const auto offloads = [](const MicroBatch& each) { return each.offloads(); };
  if (std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), shares)) {
    return "several ranks share a micro-batch";
  }
  if (has_chunks_in_order(plan)) return "its micro-batches continue each other";
  if (std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), offloads)) return "it offloads activations";
  return {};
}

RelayoutJob relayout_job(const StudyPoint& point, const Plan& plan, double threshold) {
  const PointSpec& spec = point.spec;
  HDPSIM_CHECK(relayout_problem(point).empty() && relayout_problem(plan).empty(), "a job that cannot be laid out anew");
  RelayoutJob job;
  job.tp = spec.mesh.tp;
  job.pipelines = spec.mesh.hdp;
  job.stages = spec.mesh.pp;
  job.layers = spec.model.layers;
  job.micro_batches = std::ssize(plan.micro_batches);
  job.devices_per_node = spec.cluster.devices_per_node;
  job.groups = groups_of(point);
  job.threshold = threshold;
  const StageTimes whole = stage_times(spec, *spec.profile, plan);
  const DeviceProfile slow = twice_as_slow(*spec.profile);
  for (std::int64_t cut = 0; cut < cuts_of(spec.mesh); ++cut) {
    const PointSpec cut_spec = with_cut_groups(spec, cut);
    const double usual = cut == 0 ? whole.both() : stage_times(cut_spec, *spec.profile, plan).both();
    job.cuts.push_back(
        {.slowdown = usual / whole.both(), .kernels = stage_times(cut_spec, slow, plan).both() / usual - 1});
  }
  set_memory(point, job);
  job.seconds = [times = layer_times(whole, spec.mesh, spec.model.layers)](const PipelineLayout& layout) {
    return pipeline_seconds(layout, times);
  };
  return job;
}

double layer_state_bytes(const StudyPoint& point) {
  const PointSpec& spec = point.spec;
  const auto states = [&](std::int64_t layers) {
    const DeviceShape shape{.tp = spec.mesh.tp,
                            .pp = spec.mesh.pp,
                            .pool = spec.mesh.ranks_of_a_shard_group(),
                            .layers = {{layers, 0}},
                            .embedding = false,
                            .head = false};
    const MemoryParts parts = DeviceMemory(spec.model, shape, spec.recipe).states();
    return parts[MemoryPart::parameters] + parts[MemoryPart::optimizer];
  };
  return static_cast<double>((states(2) - states(1)).count() * spec.mesh.tp);
}

}  // namespace hdpsim
