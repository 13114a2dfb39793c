#pragma once

#include <string>
#include <vector>

#include "sim/analysis/explanation.h"

namespace hdpsim {

/// The changes of an advice: "mesh.tp=4 mesh.zero=2", "cluster.links={node 1 nic 3: 0} (node 1 nic 3 out of service)".
[[nodiscard]] std::string changes_text(const Advice& advice);

/// The same with what it gives: "mesh.tp=4 (-9.2% of the time of a token)", or "mesh.tp=4 (62.1 GB a device)" where the
/// plan cannot run without it.
[[nodiscard]] std::string advice_text(const Advice& advice);

/// The first of them, "A, or B, or C"; empty of none.
[[nodiscard]] std::string best_advice(const std::vector<Advice>& all);

}  // namespace hdpsim
