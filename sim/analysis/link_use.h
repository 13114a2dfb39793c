#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// What a link carried in a run: `bytes` and `utilisation` are those of the rings of the main job.
struct LinkUse {
  std::string name;
  Bandwidth rate;                ///< That software gets out of it.
  Bytes bytes;                   ///< Of all steps.
  double utilisation = 0;        ///< Of the rate, over the whole time.
  Bytes other_bytes = {};        ///< Of all that other jobs sent.
  double other_utilisation = 0;  ///< The same of theirs.
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// What links carried, by LinkId.
struct LinkBytes {
  std::vector<Bytes> main;
  std::vector<Bytes> others;  ///< Or nothing.
};

/// The links that were used most of their time by all jobs together, at most `most` of them, busiest first; of equal
/// ones the lower id. Links over which the main job sent nothing are left out. O(links).
[[nodiscard]] std::vector<LinkUse> busiest_links(const LinkBytes& bytes, Duration time, const NetworkModel& network,
                                                 std::size_t most);

}  // namespace hdpsim
