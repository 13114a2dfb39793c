#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/impl/job_port.h"
#include "sim/network/collective_plan.h"

namespace hdpsim {

/// A collective over the pool of a job beside other jobs. Alone it takes the time of its closed form, and sends its
/// bytes evenly over that time. Its hops move at one pace; a part that gets less than that slows it in proportion, as
/// far as it did not already with no other job there: what a collective does to itself is in the closed form.
class PoolTraffic {
 public:
  /// Takes `alone` with nobody else there, and is the collective of so many bytes, the size that the plan has. The
  /// network must be idle; `plan` must live as long. A plan without parts sends nothing.
  PoolTraffic(Duration alone, Bytes bytes, const CollectivePlan& plan, JobPort& port);

  /// Its events and flows carry this actor and key; a tag of 0 is never one of its own.
  void begin(std::uint32_t actor);
  /// True if it has ended.
  bool handle(const Event& event);
  void rate_changed();

  /// Adds what it has sent since it began.
  void add_traffic(std::vector<Bytes>& link_bytes) const;

 private:
  void add_flows(std::uint32_t actor);
  void remove_flows();
  [[nodiscard]] double slowest_part() const;
  void set_pace(double pace);
  [[nodiscard]] double share_done() const;

  Duration alone_;
  Bytes bytes_;
  const CollectivePlan& plan_;
  JobPort& port_;
  Bandwidth demand_;  ///< Of each of its flows.
  double pace_of_idle_network_ = 1;

  std::uint32_t actor_ = 0;
  std::uint32_t version_ = 0;
  std::vector<FlowId> flows_;  ///< By part, while it runs.
  Instant since_;              ///< Of the present pace.
  double pace_ = 0;            ///< Share of the speed that it has alone; 0 while it does not run.
  double done_ = 0;            ///< Share of it, until `since_`.
  std::uint64_t round_ = 0;    ///< Of the rates that it has seen.
};

}  // namespace hdpsim
