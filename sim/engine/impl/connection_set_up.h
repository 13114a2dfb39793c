#pragma once

#include <optional>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/plan/connection_table.h"

namespace hdpsim {

/// Who has talked to whom while one step runs, and what it costs to begin. In a warm step nothing is ever due.
///
/// A group that lacks something makes it when its last rank is there and before it computes anything: the communicator,
/// then all new connections of its ring at the same time. Each rank makes one group's at a time, as it runs one
/// micro-batch at a time.
class ConnectionSetUp {
 public:
  explicit ConnectionSetUp(const Machine& machine);

  /// True if the group cannot compute before all its ranks are there.
  [[nodiscard]] bool is_due(const std::vector<HdpRank>& group) const;
  /// How long the group takes to make what it lacks, which it has from now on.
  [[nodiscard]] Duration connect(const std::vector<HdpRank>& group);

 private:
  [[nodiscard]] Duration cost(const std::vector<HdpRank>& group) const;

  std::optional<SetUpCosts> costs_;
  ConnectionTable table_;
};

}  // namespace hdpsim
