#pragma once

#include <optional>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/plan/connection_table.h"

namespace hdpsim {

/// The connections that ranks have set up during one step, and the cost of new ones. A warm step sets up nothing.
///
/// A group sets up what it lacks when its last rank has arrived and before it computes anything: first the
/// communicator, then all new connections of its ring at the same time. A rank sets up one group at a time, because it
/// runs one micro-batch at a time. Connections between pipeline stages always exist.
class ConnectionSetUp {
 public:
  explicit ConnectionSetUp(const Machine& machine, std::int64_t stages = 1);

  /// True if the group has something to set up, so that it cannot compute before all its ranks have arrived.
  [[nodiscard]] bool is_due(const std::vector<HdpRank>& group, std::int64_t stage = 0) const;
  /// Sets up what the group lacks and returns the time that this takes.
  [[nodiscard]] Duration connect(const std::vector<HdpRank>& group, std::int64_t stage = 0);

 private:
  [[nodiscard]] Duration cost(const std::vector<HdpRank>& group, std::int64_t stage) const;

  std::optional<SetUpCosts> costs_;
  std::vector<ConnectionTable> tables_;  // by stage, because each stage has its own devices
};

}  // namespace hdpsim
