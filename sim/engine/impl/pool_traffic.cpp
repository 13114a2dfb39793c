#include "sim/engine/impl/pool_traffic.h"

#include <algorithm>

namespace hdpsim {

PoolTraffic::PoolTraffic(Duration alone, Bytes bytes, const CollectivePlan& plan, JobPort& port)
    : alone_(alone), bytes_(bytes), plan_(plan), port_(port) {
  if (alone_ == Duration{} || bytes_ == Bytes{}) return;
  const double rate = static_cast<double>(bytes_.count()) * plan_.bytes_per_flow / alone_.seconds();
  demand_ = Bandwidth::bytes_per_second(1).scaled(std::max(1.0, rate));
  add_flows(0);
  pace_of_idle_network_ = slowest_part();
  remove_flows();
}

void PoolTraffic::begin(std::uint32_t actor) {
  actor_ = actor;
  done_ = 0;
  pace_ = 0;
  since_ = port_.queue.now();
  if (demand_ > Bandwidth{}) add_flows(actor);
  set_pace(std::min(1.0, slowest_part() / pace_of_idle_network_));
}

bool PoolTraffic::handle(const Event& event) {
  if (event.tag != version_) return false;
  remove_flows();
  done_ = 1;
  pace_ = 0;
  return true;
}

void PoolTraffic::rate_changed() {
  if (flows_.empty() || round_ == port_.flows.round()) return;
  round_ = port_.flows.round();
  const double pace = std::min(1.0, slowest_part() / pace_of_idle_network_);
  if (pace != pace_) set_pace(pace);
}

void PoolTraffic::add_flows(std::uint32_t actor) {
  for (const CollectivePlan::Part& part : plan_.parts) flows_.push_back(port_.flows.add(part, demand_, actor));
}

void PoolTraffic::remove_flows() {
  for (const FlowId flow : flows_) port_.flows.remove(flow);
  flows_.clear();
}

double PoolTraffic::slowest_part() const {
  double slowest = 1;
  for (const FlowId flow : flows_) {
    const auto rate = static_cast<double>(port_.flows.rate(flow).bytes_per_second());
    slowest = std::min(slowest, rate / static_cast<double>(demand_.bytes_per_second()));
  }
  return slowest;
}

void PoolTraffic::set_pace(double pace) {
  done_ = share_done();
  pace_ = pace;
  since_ = port_.queue.now();
  version_ = port_.queue.fresh_version();
  const double left = std::max(0.0, 1 - done_) / pace;
  port_.queue.schedule_after(left == 1 ? alone_ : alone_.scaled(left), actor_, version_);
}

double PoolTraffic::share_done() const {
  if (pace_ == 0 || alone_ == Duration{}) return done_;
  return std::min(1.0, done_ + pace_ * (port_.queue.now() - since_).seconds() / alone_.seconds());
}

}  // namespace hdpsim
