#include "sim/engine/impl/connection_set_up.h"

namespace hdpsim {

ConnectionSetUp::ConnectionSetUp(const Machine& machine)
    : costs_(machine.set_up), table_(costs_ ? costs_->communicators : Communicators::one) {}

bool ConnectionSetUp::is_due(const std::vector<HdpRank>& group) const {
  return costs_ && cost(group) > Duration{};
}

Duration ConnectionSetUp::connect(const std::vector<HdpRank>& group) {
  if (!costs_) return {};
  const Duration time = cost(group);
  table_.connect(group);
  return time;
}

Duration ConnectionSetUp::cost(const std::vector<HdpRank>& group) const {
  const ConnectionTable::Missing missing = table_.missing(group);
  Duration time;
  if (missing.communicator) {
    time += costs_->communicator.base + costs_->communicator.per_rank * static_cast<std::int64_t>(group.size());
  }
  if (missing.connection) time += costs_->first_contact;
  return time;
}

}  // namespace hdpsim
