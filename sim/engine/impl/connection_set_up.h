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
/// micro-batch at a time. Connections between the stages of a pipeline are always there.
class ConnectionSetUp {
 public:
  explicit ConnectionSetUp(const Machine& machine, std::int64_t stages = 1);

  /// True if the group cannot compute before all its ranks are there.
  [[nodiscard]] bool is_due(const std::vector<HdpRank>& group, std::int64_t stage = 0) const;
  /// How long the group takes to make what it lacks, which it has from now on.
  [[nodiscard]] Duration connect(const std::vector<HdpRank>& group, std::int64_t stage = 0);

 private:
  [[nodiscard]] Duration cost(const std::vector<HdpRank>& group, std::int64_t stage) const;

  std::optional<SetUpCosts> costs_;
  std::vector<ConnectionTable> tables_;  // by stage: other devices, other connections
};

}  // namespace hdpsim
