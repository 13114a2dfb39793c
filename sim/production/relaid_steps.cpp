#include "sim/production/relaid_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/network/cluster_links.h"
#include "sim/relayout/layout_text.h"
#include "sim/relayout/point_relayout.h"
#include "sim/relayout/state_moves.h"

namespace hdpsim {
namespace {

DeviceSlowdowns slowdowns_of(const std::vector<SlowDevice>& devices) {
  DeviceSlowdowns slowdowns;
  for (const SlowDevice& each : devices) slowdowns[each.device] = each.slowdown;
  return slowdowns;
}

RelayoutJob checked_job(const ProducedPlan& of, const PointStep& first) {
  std::string problem = relayout_problem(of.point);
  if (problem.empty()) problem = relayout_problem(first.plan);
  if (problem.empty()) return relayout_job(of.point, first.plan, of.study.production->stragglers->threshold);
  Diagnostics problems;
  problems.error(of.study.resolved.find("production")->find("stragglers")->find("answer")->position,
                 fmt::format("the pipelines of {} cannot be laid out anew: {}", of.study.plans[of.plan].name, problem),
                 "write 'answer: replan', or leave this plan out");
  throw InputError(std::move(problems));
}

}  // namespace

RelaidSteps::RelaidSteps(const ProducedPlan& of, const PointStep& first)
    : point_(of.point), job_(checked_job(of, first)), layer_bytes_(layer_state_bytes(of.point)) {
  usual_s_ = seconds_of(uniform_layout(job_), job_);
}

double RelaidSteps::more_seconds(const DeviceState& state) {
  const Relayout now = on_devices(layout_for(state.known), job_, slowdowns_of(state.slow));
  return seconds_of(now, job_) - usual_s_;
}

Adaptation RelaidSteps::adapt(const std::vector<SlowDevice>& before, const std::vector<SlowDevice>& now) {
  Adaptation adaptation{.layout = layout_text(layout_for(now), job_)};
  const std::vector<Message> moves = state_moves(layout_for(before), layout_for(now), job_, layer_bytes_);
  if (moves.empty()) return adaptation;
  const ClusterLinks links(point_.spec.cluster, message_efficiency(*point_.spec.profile));
  const std::vector<double> arrivals = arrival_times(links, moves);
  adaptation.moving_s = *std::max_element(arrivals.begin(), arrivals.end());
  return adaptation;
}

const Relayout& RelaidSteps::layout_for(const std::vector<SlowDevice>& known) {
  const auto found = layouts_.find(known);
  if (found != layouts_.end()) return found->second;
  Relayout layout =
      known.empty() ? uniform_layout(job_) : relaid(job_, slowdowns_of(known)).value_or(uniform_layout(job_));
  return layouts_.emplace(known, std::move(layout)).first->second;
}

}  // namespace hdpsim
