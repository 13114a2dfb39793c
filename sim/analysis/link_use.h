#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// The traffic of a link in a run: `bytes` and `utilisation` count the rings of the main job.
struct LinkUse {
  std::string name;
  Bandwidth rate;                ///< The rate that software reaches on it.
  Bytes bytes;                   ///< Sum over all steps.
  double utilisation = 0;        ///< Mean share of the rate over the whole time.
  Bytes other_bytes = {};        ///< Sent by all other jobs.
  double other_utilisation = 0;  ///< The same for the other jobs.
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// Bytes that links carried, by LinkId.
struct LinkBytes {
  std::vector<Bytes> main;
  std::vector<Bytes> others;  ///< May be empty.
};

/// The links that all jobs together used most, at most `most` of them, busiest first; among equal ones the lower id.
/// Links over which the main job sent nothing are left out. O(links).
[[nodiscard]] std::vector<LinkUse> busiest_links(const LinkBytes& bytes, Duration time, const NetworkModel& network,
                                                 std::size_t most);

}  // namespace hdpsim
