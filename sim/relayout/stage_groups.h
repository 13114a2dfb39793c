#pragma once

#include <cstdint>
#include <vector>

#include "sim/relayout/group_shares.h"
#include "sim/relayout/relayout.h"

namespace hdpsim {

/// A group, and the stage of a pipeline that its devices have had.
struct HomeGroup {
  TensorGroup group;
  std::int64_t pipeline = 0;
  std::int64_t stage = 0;
};

/// The layout of a share: which devices are in which pipeline. A pipeline takes the place of the one that its slowest
/// group was in, if that is still free, and the usual groups of that one, by their former stages; missing ones are
/// those that others have too many of. `slow` is the slowest first, `usual` by former pipeline and stage.
[[nodiscard]] Relayout layout_of(const RelayoutJob& job, const GroupShare& share, const std::vector<HomeGroup>& slow,
                                 const std::vector<HomeGroup>& usual);

}  // namespace hdpsim
