#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// What a run computes, as far as the errors of predictions depend on it.
enum class Workload : std::uint8_t {
  dense,
  host_bound,     ///< Layers so short that the host may take longer to issue their kernels than the device to run them.
  mixed_lengths,  ///< Sequences of unlike lengths.
  experts,
  host_memory,  ///< Weights, optimizer states or activations move over the links to host memory.
};
/// "dense", "host-bound", "mixed lengths", "experts", "host memory".
[[nodiscard]] const std::vector<std::string>& workload_names();
[[nodiscard]] std::string_view name_of(Workload workload);

/// What a framework runs on, which its preset states: "nvidia" (Megatron, Transformer Engine), "pytorch" (PyTorch's own
/// kernels and FSDP), or "other", which is also that of a study without a preset.
[[nodiscard]] const std::vector<std::string>& stack_names();

/// The kind of a run. Kinds form a tree: all runs, those with a workload, of them those on a stack, of them those on a
/// device. The errors of a kind without published runs are those of the next wider one.
struct RunKind {
  Workload workload = Workload::dense;
  std::string stack = "other";
  std::string device;
  friend bool operator==(const RunKind&, const RunKind&) = default;
};
/// How deep a kind of one device is in the tree.
inline constexpr int deepest_kind = 3;
/// Whether both are the same down to this depth: 0 is always, 1 by workload, 2 by stack too, 3 by device too.
[[nodiscard]] bool agree(const RunKind& one, const RunKind& other, int depth);
/// The kind down to this depth: "all runs", "dense", "dense, nvidia", "dense, nvidia, H100-80GB".
[[nodiscard]] std::string text_of(const RunKind& kind, int depth = deepest_kind);

}  // namespace hdpsim
