#include "sim/relayout/relayout.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/relayout/group_shares.h"
#include "sim/relayout/node_division.h"
#include "sim/relayout/stage_groups.h"

namespace hdpsim {
namespace {

// Those of the least objective that are compared by seconds.
constexpr std::size_t compared_layouts = 10;

/// The groups of all nodes: those that are as fast as usual by their home, a stage of a pipeline, and the others.
struct DividedJob {
  std::vector<HomeGroup> usual;
  std::vector<HomeGroup> slow;  ///< The slowest first.
  std::vector<std::int64_t> suspended;
};

DividedJob divided_job(const RelayoutJob& job, const DeviceSlowdowns& slow) {
  std::map<std::int64_t, std::vector<std::size_t>> homes_of_node;
  std::map<std::int64_t, std::int64_t> home_of;
  for (std::size_t home = 0; home < job.groups.size(); ++home) {
    const std::vector<std::int64_t>& devices = job.groups[home];
    homes_of_node[devices.front() / job.devices_per_node].push_back(home);
    for (const std::int64_t device : devices) home_of[device] = static_cast<std::int64_t>(home);
  }
  DividedJob divided;
  const auto add = [&](TensorGroup group) {
    const std::int64_t home = home_of.at(group.devices.front());
    auto& list = group.slowdown > 1 ? divided.slow : divided.usual;
    list.push_back({std::move(group), home / job.stages, home % job.stages});
  };
  for (const auto& [node, homes] : homes_of_node) {
    std::vector<std::vector<std::int64_t>> groups;
    bool has_slow = false;
    for (const std::size_t home : homes) {
      groups.push_back(job.groups[home]);
      has_slow = has_slow || group_of(job, groups.back(), slow).slowdown > 1;
    }
    if (!has_slow) {
      for (std::vector<std::int64_t>& group : groups) add(group_of(job, std::move(group), slow));
      continue;
    }
    NodeDivision division = divided_node(job, groups, slow);
    for (TensorGroup& group : division.groups) add(std::move(group));
    divided.suspended.insert(divided.suspended.end(), division.suspended.begin(), division.suspended.end());
  }
  const auto by_home = [](const HomeGroup& a, const HomeGroup& b) {
    return std::pair(a.pipeline, a.stage) < std::pair(b.pipeline, b.stage);
  };
  std::stable_sort(divided.usual.begin(), divided.usual.end(), by_home);
  std::stable_sort(divided.slow.begin(), divided.slow.end(),
                   [](const HomeGroup& a, const HomeGroup& b) { return a.group.slowdown > b.group.slowdown; });
  return divided;
}

/// The layouts of one division that are worth a comparison.
void add_layouts(const RelayoutJob& job, const DividedJob& divided, std::vector<Relayout>& layouts) {
  std::vector<double> slowdowns;
  std::vector<std::int64_t> cuts;
  for (const HomeGroup& each : divided.slow) {
    slowdowns.push_back(each.group.slowdown);
    cuts.push_back(each.group.cut);
  }
  const GroupShares shares = best_shares(job, slowdowns, cuts, std::ssize(divided.usual), compared_layouts);
  for (const GroupShare& share : shares.best) {
    Relayout layout = layout_of(job, share, divided.slow, divided.usual);
    layout.suspended = divided.suspended;
    std::sort(layout.suspended.begin(), layout.suspended.end());
    layout.is_exhaustive = shares.is_exhaustive;
    layouts.push_back(std::move(layout));
  }
}

}  // namespace

double PipelineLayout::slowest_stage() const {
  double slowest = 0;
  for (const StageLayout& stage : stages) {
    slowest = std::max(slowest, stage.group.slowdown * static_cast<double>(stage.layers));
  }
  return slowest;
}

double Relayout::objective() const {
  double most = 0;
  for (const PipelineLayout& each : pipelines) {
    most = std::max(most, each.slowest_stage() * static_cast<double>(each.micro_batches));
  }
  return most;
}

std::optional<Relayout> relaid(const RelayoutJob& job, const DeviceSlowdowns& slow) {
  DividedJob divided = divided_job(job, slow);
  std::vector<Relayout> layouts;
  add_layouts(job, divided, layouts);
  while (!divided.slow.empty()) {
    const TensorGroup& slowest = divided.slow.front().group;
    divided.suspended.insert(divided.suspended.end(), slowest.devices.begin(), slowest.devices.end());
    divided.slow.erase(divided.slow.begin());
    add_layouts(job, divided, layouts);
  }
  if (layouts.empty()) return std::nullopt;
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const Relayout& a, const Relayout& b) { return a.objective() < b.objective(); });
  layouts.resize(std::min(layouts.size(), compared_layouts));
  if (!job.seconds) return std::move(layouts.front());
  std::vector<double> seconds;
  for (const Relayout& layout : layouts) seconds.push_back(seconds_of(layout, job));
  return std::move(
      layouts[static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin())]);
}

Relayout uniform_layout(const RelayoutJob& job) {
  Relayout layout;
  for (std::int64_t p = 0; p < job.pipelines; ++p) {
    PipelineLayout& pipeline = layout.pipelines.emplace_back();
    pipeline.micro_batches = job.micro_batches / job.pipelines + (p < job.micro_batches % job.pipelines ? 1 : 0);
    for (std::int64_t s = 0; s < job.stages; ++s) {
      const std::int64_t layers = job.layers / job.stages + (s < job.layers % job.stages ? 1 : 0);
      pipeline.stages.push_back(
          {group_of(job, job.groups.at(static_cast<std::size_t>(p * job.stages + s)), {}), layers});
    }
  }
  return layout;
}

Relayout on_devices(Relayout layout, const RelayoutJob& job, const DeviceSlowdowns& slow) {
  RelayoutJob exact = job;
  exact.threshold = 1;
  for (PipelineLayout& pipeline : layout.pipelines) {
    for (StageLayout& stage : pipeline.stages) stage.group = group_of(exact, std::move(stage.group.devices), slow);
  }
  return layout;
}

double seconds_of(const Relayout& layout, const RelayoutJob& job) {
  HDPSIM_CHECK(job.seconds, "nothing says how long a pipeline takes");
  double most = 0;
  const PipelineLayout* last = nullptr;
  for (const PipelineLayout& each : layout.pipelines) {
    const auto is_alike = [&] {
      return last != nullptr && last->micro_batches == each.micro_batches &&
             std::equal(last->stages.begin(), last->stages.end(), each.stages.begin(), each.stages.end(),
                        [](const StageLayout& a, const StageLayout& b) {
                          return a.layers == b.layers && a.group.slowdown == b.group.slowdown;
                        });
    };
    if (!is_alike()) most = std::max(most, job.seconds(each));
    last = &each;
  }
  return most;
}

}  // namespace hdpsim
