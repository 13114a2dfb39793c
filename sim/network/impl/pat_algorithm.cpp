#include <bit>

#include "sim/base/check.h"
#include "sim/network/impl/collective_plans.h"

namespace hdpsim {

// Every device is the root of a binomial tree of its own part. A device at distance d of a root has the part from the
// one at d less its lowest bit, so a hop over 2^k is made by every d below n whose lowest bit is 2^k: one of 2^(k+1).
CollectivePlan plan_pat(CollectivePlanBuilder builder, const MembersByNode& members) {
  HDPSIM_CHECK(members.has_one_each(), "{} devices on {} nodes: PAT is for one a node", members.devices(),
               members.nodes());
  const std::size_t n = members.nodes();
  for (std::size_t hop = 1; hop < n; hop *= 2) {
    const std::size_t parts = (n - 1 + hop) / (2 * hop);
    for (std::size_t from = 0; from < n; ++from) {
      builder.send(members.of(from)[0], members.of((from + hop) % n)[0], static_cast<double>(parts));
    }
  }
  return builder.finish(1 / static_cast<double>(n), {.between = static_cast<std::size_t>(std::bit_width(n - 1))});
}

}  // namespace hdpsim
