#pragma once

#include <memory>

#include "sim/network/fabric.h"

namespace hdpsim {

// One function per kind of fabric: see ClusterSpec and FabricSpec for their meaning.

[[nodiscard]] std::unique_ptr<Fabric> make_clos_fabric(const ClusterSpec& cluster, double efficiency);
[[nodiscard]] std::unique_ptr<Fabric> make_torus_fabric(const TorusSpec& torus, std::int64_t rails, double efficiency);
[[nodiscard]] std::unique_ptr<Fabric> make_dragonfly_fabric(const DragonflySpec& dragonfly, std::int64_t rails,
                                                            std::uint64_t seed, double efficiency);
[[nodiscard]] std::unique_ptr<Fabric> make_graph_fabric(const SwitchGraphSpec& graph, std::int64_t rails,
                                                        std::uint64_t seed, double efficiency);

}  // namespace hdpsim
