#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// What a link carried in a run.
struct LinkUse {
  std::string name;
  Bandwidth rate;          ///< That software gets out of it.
  Bytes bytes;             ///< Of all steps.
  double utilisation = 0;  ///< Of the rate, over the whole time.
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// The links that were used most of their time, at most `most` of them, busiest first; of equal ones the lower id. Links
/// that carried nothing are left out. `bytes` is by LinkId. O(links).
[[nodiscard]] std::vector<LinkUse> busiest_links(const std::vector<Bytes>& bytes, Duration time,
                                                 const NetworkModel& network, std::size_t most);

}  // namespace hdpsim
