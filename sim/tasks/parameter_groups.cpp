#include "sim/tasks/parameter_groups.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/division.h"
#include "sim/model/optimizer_work.h"
#include "sim/network/collective_model.h"

namespace hdpsim {
namespace {

/// Groups that sum their gradients at once.
struct JointSum {
  DeviceSets sets;
  std::int64_t parameters = 0;
  double seconds = 0;

  [[nodiscard]] bool takes(const std::vector<DeviceId>& group, std::int64_t count) const {
    if (parameters != count || sets.front().size() != group.size()) return false;
    return std::none_of(sets.begin(), sets.end(), [&](const std::vector<DeviceId>& other) {
      return std::find_first_of(other.begin(), other.end(), group.begin(), group.end()) != other.end();
    });
  }
};

double sum_time(const JointSum& sum, const ClusterLinks& links, const PointSpec& spec) {
  const CollectiveModel model(links, *spec.profile, sum.sets);
  const Bytes gradients(sum.parameters * spec.recipe.gradient_bytes);
  const auto time = [&](CollectiveKind kind, Bytes bytes) { return model.estimate(kind, bytes).time.seconds(); };
  if (spec.recipe.reduces_all()) return time(CollectiveKind::all_reduce, gradients);
  return time(CollectiveKind::reduce_scatter, gradients) +
         time(CollectiveKind::all_gather, Bytes(sum.parameters * spec.model.element_bytes));
}

}  // namespace

ParameterGroups::ParameterGroups(const SliceData& data, const TaskPlan& plan)
    : data_(data), state_bytes_(static_cast<std::size_t>(data.work().devices)), optimized_(state_bytes_.size()) {
  std::map<ParameterPlace, std::set<DeviceId>> holders;
  for (const TaskRound& round : plan.rounds) {
    for (const TaskLane& lane : round.lanes) {
      for (const TaskWave& wave : lane.waves) {
        for (const TaskSlice& slice : wave.slices) {
          for (std::size_t i = 0; i < slice.placed.size(); ++i) {
            for (const ParameterPlace& place : data.parameters_of(slice, i)) holders[place].insert(slice.placed[i]);
          }
        }
      }
    }
  }
  for (const auto& [place, devices] : holders) {
    const ModuleMemory memory(data.task_case().modules[place.module]);
    const std::int64_t parameters = memory.parameters(place.kind);
    groups_[{devices.begin(), devices.end()}] += parameters;
    const auto sharers = static_cast<std::int64_t>(devices.size());
    const Bytes states = memory.states(place.kind, sharers);
    const bool shards = data.task_case().spec().recipe.zero > 0;
    for (const DeviceId device : devices) {
      state_bytes_[device.index()] += static_cast<double>(states.count());
      OptimizerShare& share = optimized_[device.index()];
      share.held += parameters;
      share.updated += shards ? divided(parameters, sharers) : parameters;
    }
  }
}

double ParameterGroups::sum_seconds(const ClusterLinks& links) const {
  std::vector<JointSum> sums;
  for (const auto& [devices, parameters] : groups_) {
    if (devices.size() < 2) continue;
    const auto found = std::find_if(
        sums.begin(), sums.end(),
        [&, &group = devices, count = parameters](const JointSum& sum) { return sum.takes(group, count); });
    if (found != sums.end()) {
      found->sets.push_back(devices);
    } else {
      sums.push_back({{devices}, parameters, 0});
    }
  }
  for (JointSum& sum : sums) sum.seconds = sum_time(sum, links, data_.task_case().spec());
  std::stable_sort(sums.begin(), sums.end(),
                   [](const JointSum& one, const JointSum& other) { return one.seconds > other.seconds; });
  std::vector<double> free(state_bytes_.size());
  double last = 0;
  for (const JointSum& sum : sums) {
    double begin = 0;
    for (const auto& set : sum.sets) {
      for (const DeviceId device : set) begin = std::max(begin, free[device.index()]);
    }
    for (const auto& set : sum.sets) {
      for (const DeviceId device : set) free[device.index()] = begin + sum.seconds;
    }
    last = std::max(last, begin + sum.seconds);
  }
  return last;
}

double ParameterGroups::optimizer_seconds() const {
  const PointSpec& spec = data_.task_case().spec();
  const auto cost = make_cost_model(*spec.profile);
  double slowest = 0;
  for (const OptimizerShare& share : optimized_) {
    if (share.held == 0) continue;
    const OptimizerWork work = optimizer_work(share, spec.model.element_bytes, spec.recipe);
    slowest = std::max(slowest, cost->memory_bound(work.elementwise).time.seconds());
  }
  return slowest;
}

}  // namespace hdpsim
