#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/document/document.h"

namespace hdpsim {

/// Reads a cluster that is written out in full:
///
///     name: two-nodes                # optional
///     device: A100-80GB              # the word that profiles use
///     compute_capability: 9.0        # optional: of devices that device_facts.h does not know
///     gpus: 16                       # a whole number of nodes
///     node:
///       gpus: 8
///       gpu_memory: 80 GB
///       host_memory: 2 TB
///       cpu: amd                     # optional: intel (default) or amd; NCCL's rates of small messages differ
///       nvlink: {bandwidth: 300 GB/s, latency: 0 us}       # per GPU and direction; not needed with one GPU a node
///       nics: {count: 8, bandwidth: 200 Gbit/s, ports: 2}  # per NIC and direction, its ports together (1 unless told)
///                                                          # not needed with one node
///       pcie: {bandwidth: 32 GB/s, gpus_per_uplink: 2}     # per uplink and direction
///     node_kinds:                    # optional: nodes that differ from `node`, in the keys that stand here alone
///       old: {nodes: [8-15, 31], speed: 0.4, device: V100-32GB, gpu_memory: 32 GB, host_memory: 1 TB,
///             nvlink: {bandwidth: 150 GB/s}, nics: {bandwidth: 100 Gbit/s}}
///     tiers:                         # from the nodes up; not needed with one node
///       tor:  {fan_in: 64, oversubscription: 2, latency: 0.8 us}   # uplinks: 32 gives their number for ECMP
///       core: {fan_in: 32, latency: 2.4 us}                # the last tier has no uplinks to oversubscribe
///     speed:                         # optional: GPUs that compute slower or faster than nominal; later lines win
///       17: 0.8                      # GPU 17
///       32-39: 0.9                   # GPUs 32 to 39
///       every 64: 0.95               # GPUs 0, 64, 128, ...
///       every 64 from 3: 0.95        # GPUs 3, 67, 131, ...
///     in_network_reduction: true     # optional: the switches between nodes add up (NVIDIA SHARP)
///     routing: ecmp                  # optional: adaptive (default) or ecmp, also {policy: ecmp, seed: 7}; see Routing
///     links:                         # optional: links that carry less than their kind, by the names that links.csv
///     uses;
///       node 3 nic 2: 0.5            # without a direction: both; later lines win
///       node 3 gpu 1 nvlink out: 0.8
///       tor 1 rail 0 up: 0.25        # the uplink of unit 1 of tier 'tor' on rail 0
///       node 3 nic 4 port 1: 0       # 0: down, for NICs and tiers; messages take what is left
///       tor 1 rail 2 plane 1: 0      # what the ports 1 of rail 2 lead to
///       leaf0 to spine 2: 0          # the third cable between two switches of a graph, both directions
///     notes: [...]                   # optional: shown by `hdpsim check`
///
/// Without `nvlink` the GPUs of a node talk over PCIe. Instead of `tiers` there may be one of the fabrics of
/// fabric_spec.h:
///
///     torus: {shape: [8, 8, 16], bandwidth: 100 Gbit/s, latency: 0.2 us}           # nodes; links per rail
///     dragonfly: {groups: 9, leaves: 4, spines: 4, nodes_per_leaf: 8, global_links: 2, bandwidth: 400 Gbit/s,
///                 global_bandwidth: 400 Gbit/s, latency: 0.3 us, global_latency: 1 us}
///     graph:
///       switches: {leaf0: {latency: 0.5 us}, leaf1: {latency: 0.5 us}, spine: {latency: 0.5 us}}
///       cables:
///         - {from: leaf0, to: spine, bandwidth: 400 Gbit/s, count: 2}              # per direction, of each of the two
///         - {from: leaf1, to: spine, bandwidth: 400 Gbit/s}
///       nodes:
///         0-15: leaf0                # all NICs of these nodes
///         16-31 nic 0-3: leaf1       # some of them; later lines win
///
/// Every problem is reported; the result is empty if there was one.
[[nodiscard]] std::optional<ClusterSpec> read_cluster(const Value& value, Diagnostics& diagnostics);

/// Reads the cluster of a study: `{preset: name}`, `{file: path}`, a path alone, or written out in full. A preset is a
/// file `name`.yaml in `preset_directory`; a relative path starts at the folder of the file that names it. Other keys
/// next to `preset` or `file` override single keys of it at any depth:
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
