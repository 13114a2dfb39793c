#include "sim/production/known_study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "sim/document/values.h"
#include "sim/study/sweep.h"

namespace hdpsim {
namespace {

// A list or a map that is written here.
Value written(const std::string& text, Diagnostics& problems) {
  return parse_document("production", text, problems);
}

// The study of the point, with its plan alone.
Value root_of(const ProducedPlan& of, Diagnostics& problems) {
  std::vector<SweepPoint> points = expand_sweep(of.study.resolved, problems);
  Value root = std::move(points.at(static_cast<std::size_t>(&of.point - of.study.points.data())).study);
  root.set("plans", Value::sequence({})).items.push_back(of.study.plans[of.plan].entry);
  std::erase_if(root.entries, [](const Value::Entry& entry) { return entry.key == "compare_to"; });
  return root;
}

// The nodes of the job without those of these devices, in their order.
std::vector<std::int64_t> nodes_without(const PointSpec& spec, const std::vector<SlowDevice>& devices) {
  const std::int64_t per_node = spec.cluster.devices_per_node;
  std::set<std::int64_t> gone;
  for (const SlowDevice& each : devices) gone.insert(each.device / per_node);
  std::vector<std::int64_t> nodes;
  for (std::int64_t i = 0; i < spec.nodes.count(spec.cluster); ++i) {
    const DeviceId first = spec.nodes.device(static_cast<std::size_t>(i * per_node), per_node);
    const std::int64_t node = static_cast<std::int64_t>(first.index()) / per_node;
    if (!gone.contains(node)) nodes.push_back(node);
  }
  return nodes;
}

// The study on so many ranks, on the first of these nodes.
Value root_on(const ProducedPlan& of, std::int64_t ranks, std::span<const std::int64_t> nodes, Diagnostics& problems) {
  Value root = root_of(of, problems);
  Value& mesh = *root.find("mesh");
  mesh.set("hdp", written(fmt::format("{}", ranks), problems));
  mesh.set("nodes", written(fmt::format("[{}]", fmt::join(nodes, ", ")), problems));
  return root;
}

}  // namespace

std::vector<Fault> faults_of(const std::vector<SlowDevice>& devices) {
  std::vector<Fault> faults;
  faults.reserve(devices.size());
  for (const SlowDevice& each : devices) {
    faults.push_back({.first_device = each.device,
                      .last_device = each.device,
                      .to_step = std::numeric_limits<std::int64_t>::max(),
                      .slowdown = each.slowdown});
  }
  return faults;
}

Study study_that_knows(const ProducedPlan& of, const std::vector<SlowDevice>& known, Catalog& catalog) {
  Diagnostics problems;
  Value root = root_of(of, problems);
  std::string faults;
  for (const SlowDevice& each : known) {
    faults += fmt::format("- {{device: {}, slowdown: {}}}\n", each.device, each.slowdown);
  }
  Value listed = written(faults, problems);
  const Value* own = root.find("faults");
  if (own != nullptr && of.point.spec.knows.faults) {
    listed.items.insert(listed.items.begin(), own->items.begin(), own->items.end());
  }
  root.set("faults", std::move(listed));
  root.set("planner", written(of.point.spec.knows.speeds ? "knows: [speeds, faults]" : "knows: [faults]", problems));
  problems.throw_if_any();
  return read_study(std::move(root), catalog);
}

Study study_without_nodes(const ProducedPlan& of, const std::vector<SlowDevice>& known, Catalog& catalog) {
  const Mesh& mesh = of.point.spec.mesh;
  const std::int64_t per_node = of.point.spec.cluster.devices_per_node;
  const std::vector<std::int64_t> nodes = nodes_without(of.point.spec, known);
  for (std::int64_t ranks = std::ssize(nodes) * per_node / (mesh.tp * mesh.pp); ranks > 0; --ranks) {
    const std::int64_t devices = ranks * mesh.tp * mesh.pp;
    if (devices % per_node != 0) continue;
    Diagnostics problems;
    const auto used = std::span(nodes).first(static_cast<std::size_t>(devices / per_node));
    Value root = root_on(of, ranks, used, problems);
    problems.throw_if_any();
    try {
      Study study = read_study(std::move(root), catalog);
      const StudyPoint& point = study.points.front();
      (void)point.planned(0, 0, point.batches_of(0).step(0));
      return study;
    } catch (const InputError&) {
      continue;  // a smaller mesh may have a plan
    }
  }
  Diagnostics problems;
  problems.error(of.study.resolved.find("production")->find("stragglers")->find("answer")->position,
                 fmt::format("without the nodes of {} slow devices, {} has no plan on those that are left",
                             known.size(), of.study.plans[of.plan].name),
                 "write 'answer: none' or 'answer: replace'");
  throw InputError(std::move(problems));
}

}  // namespace hdpsim
