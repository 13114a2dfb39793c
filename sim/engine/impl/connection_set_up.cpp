#include "sim/engine/impl/connection_set_up.h"

namespace hdpsim {

ConnectionSetUp::ConnectionSetUp(const Machine& machine, std::int64_t stages)
    : costs_(machine.set_up),
      tables_(static_cast<std::size_t>(stages), ConnectionTable(costs_ ? costs_->communicators : Communicators::one)) {}

bool ConnectionSetUp::is_due(const std::vector<HdpRank>& group, std::int64_t stage) const {
  return costs_ && cost(group, stage) > Duration{};
}

Duration ConnectionSetUp::connect(const std::vector<HdpRank>& group, std::int64_t stage) {
  if (!costs_) return {};
  const Duration time = cost(group, stage);
  tables_[static_cast<std::size_t>(stage)].connect(group);
  return time;
}

Duration ConnectionSetUp::cost(const std::vector<HdpRank>& group, std::int64_t stage) const {
  const ConnectionTable::Missing missing = tables_[static_cast<std::size_t>(stage)].missing(group);
  Duration time;
  if (missing.communicator) {
    time += costs_->communicator.base + costs_->communicator.per_rank * static_cast<std::int64_t>(group.size());
  }
  if (missing.connection) time += costs_->first_contact;
  return time;
}

}  // namespace hdpsim
