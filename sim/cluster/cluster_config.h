#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/document/document.h"
#include "sim/document/key.h"

namespace hdpsim {

/// All keys of a cluster, declared where they are read, with those that replace others: `preset`, `file`,
/// `node.nccl_topology`. configs/clusters/KEYS.md shows them, and configs/clusters/examples their use.
[[nodiscard]] const std::vector<KeyText>& cluster_keys();

/// Reads a cluster that is written out in full: without `preset`, `file` and `node.nccl_topology`. Without `nvlink` the
/// GPUs of a node talk over PCIe.
/// Every problem is reported; the result is empty if there was one.
[[nodiscard]] std::optional<ClusterSpec> read_cluster(const Value& value, Diagnostics& diagnostics);

/// Reads the cluster of a study: `{preset: name}`, `{file: path}`, a path alone, or written out in full. A preset is a
/// file `name`.yaml in `preset_directory`; a relative path starts at the folder of the file that names it. Other keys
/// next to `preset` or `file` override single keys of it at any depth, and what they name may be based on another:
///
///     cluster: {preset: h100-rail, gpus: 64, node: {nics: {bandwidth: 200 Gbit/s}}, tiers: {leaf: {oversubscription:
///     2}}}
///
/// `node: {nccl_topology: topo.xml, ...}` takes gpus, nvlink, nics and pcie of the node from the file that NCCL wrote
/// to the path in NCCL_TOPO_DUMP_FILE. A relative path starts at the folder of the file that names it, and other keys
/// of `node` win. Not available when a cluster is read by the function above.
[[nodiscard]] std::optional<ClusterSpec> read_cluster(const Value& value, const std::filesystem::path& preset_directory,
                                                      Diagnostics& diagnostics);

/// The same cluster written out in full, without presets, files and topologies, for the resolved study. Null if a
/// preset or file is missing, which is reported.
[[nodiscard]] Value expand_cluster(const Value& value, const std::filesystem::path& preset_directory,
                                   Diagnostics& diagnostics);

/// Names of the presets, sorted; empty if the directory does not exist.
[[nodiscard]] std::vector<std::string> cluster_preset_names(const std::filesystem::path& preset_directory);

}  // namespace hdpsim
