#pragma once

#include <optional>

#include "sim/base/units.h"
#include "sim/cluster/placement.h"
#include "sim/model/transformer.h"
#include "sim/plan/connection_table.h"
#include "sim/plan/plan.h"
#include "sim/program/program.h"

namespace hdpsim {

/// Memory at the fullest moment of a step, on the fullest device and in its share of the host.
struct MemoryUse {
  Bytes device;
  Bytes host;
  /// Of `device` on the device with most of it: channels to others. Nothing if it is not known what they hold.
  std::optional<Bytes> connections{};
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

/// What training keeps per parameter with mixed precision and Adam (Rajbhandari et al. 2020, section 3.1): bf16
/// weights, fp32 gradients that are accumulated over micro-batches, and the optimizer's fp32 weights, momentum and
/// variance, of which ZeRO-1 leaves one shard of the pool on each rank.
inline constexpr std::int64_t weight_bytes = 2;
inline constexpr std::int64_t gradient_bytes = 4;
inline constexpr std::int64_t optimizer_bytes = 12;

/// Channels of rings: those of this step's own connections; in a real job those of earlier steps stay too.
struct ChannelMemory {
  const ConnectionTable* connections = nullptr;  ///< Of the plan; not null if `per_connection` is known.
  std::optional<Bytes> per_connection{};
};

/// Of a pipeline of one stage: weights, gradients, optimizer shard, channels, and the activations of the largest
/// micro-batch: activation_bytes() of every layer, of which resident_share() stays on the device and the rest is in host memory. Not counted: the
/// allocator's gaps, buffers of collectives, the logits (the cross-entropy is fused). O(sum of the groups' sizes).
[[nodiscard]] MemoryUse memory_use(const Plan& plan, const Transformer& model, const Mesh& mesh,
                                   const ChannelMemory& channels = {});

/// The same on the fullest device of a pipeline: of its stage, and with the activations of all micro-batches that it has
/// run forward and not yet all of backward. O(passes of all workers).
[[nodiscard]] MemoryUse memory_use(const Program& program, const ChannelMemory& channels = {});

}  // namespace hdpsim
