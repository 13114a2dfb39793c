#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/impl/job_port.h"
#include "sim/network/collective_plan.h"

namespace hdpsim {

/// A collective over the data-parallel group of a job that shares the network with other jobs. Without other traffic it
/// takes the time of its closed form and sends its bytes evenly over that time. All its hops move at the same pace: a
/// part that gets less bandwidth than it asks for slows the whole collective in proportion. The slowdown is relative to
/// the idle network, because the closed form already contains how the parts of the collective slow each other.
class PoolTraffic {
 public:
  /// `alone`: the time without other traffic; `bytes`: the size of the collective in terms of `plan`. The network must
  /// be idle. `plan` must outlive this object; a plan without parts sends nothing.
  PoolTraffic(Duration alone, Bytes bytes, const CollectivePlan& plan, JobPort& port);

  /// Starts the collective. Its events have this actor, its flows have it as key, and none of its tags is 0.
  void begin(std::uint32_t actor);
  /// Returns true if the collective has ended.
  bool handle(const Event& event);
  void rate_changed();

  /// The share of it that is done since it began.
  [[nodiscard]] double share_done() const;

 private:
  void add_flows(std::uint32_t actor);
  void remove_flows();
  [[nodiscard]] double slowest_part() const;
  void set_pace(double pace);

  Duration alone_;
  Bytes bytes_;
  const CollectivePlan& plan_;
  JobPort& port_;
  Bandwidth demand_;  ///< The rate that each of its flows asks for.
  double pace_of_idle_network_ = 1;

  std::uint32_t actor_ = 0;
  std::uint32_t version_ = 0;
  std::vector<FlowId> flows_;  ///< By part, while the collective runs.
  Instant since_;              ///< When the current pace began.
  double pace_ = 0;            ///< Speed relative to the idle network; 0 while it does not run.
  double done_ = 0;            ///< Share of the collective that was done at `since_`.
  std::uint64_t round_ = 0;    ///< The last round of rate changes that it has seen.
};

}  // namespace hdpsim
