#include "sim/study/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/quantity_text.h"
#include "sim/model/shares.h"
#include "sim/model/sharing_form.h"
#include "sim/program/activations_in_flight.h"
#include "sim/program/chunk_map.h"
#include "sim/roundpipe/streamed_step.h"

namespace hdpsim {

PlanMemory memory_of(const Pipeline& pipeline, const LoweringOptions& job, const ChannelMemory& channels) {
  return {pipeline,
          {.model = job.model,
           .mesh = job.mesh,
           .recipe = job.recipe,
           .experts = expert_use(job.model, job.experts),
           .channels = channels}};
}

bool fits(const Plan& plan, const LoweringOptions& job, const DeviceRoom& room) {
  const ConnectionTable connections = connections_of(plan, room.communicators);
  const Pipeline pipeline(plan, job.mesh.pp, job.pipeline);
  return memory_of(pipeline, job, {&connections, room.per_connection}).use().device <= room.memory;
}

namespace {

constexpr std::int64_t ring_neighbours = 2;
constexpr std::int64_t endless = std::numeric_limits<std::int32_t>::max();  // micro-batches

Bytes channels(std::int64_t ranks, std::optional<Bytes> per_connection) {
  if (ranks == 1 || !per_connection) return {};
  return *per_connection * std::min(ranks - 1, ring_neighbours);
}

/// The gaps of the allocator for which a capacity leaves room.
enum class Gaps : std::uint8_t { largest, usual };

/// The memory of the devices of one rank, which are the stages of its pipeline, with full micro-batches in flight.
class RankRoom {
 public:
  RankRoom(const LoweringOptions& job, const DeviceRoom& room, const BatchOptions& batch, Gaps gaps)
      : gaps_(gaps),
        pool_(job.mesh.hdp),
        form_(sharing_form(job.recipe.key_exchange)),
        all_(group_sharing(job.model, job.recipe, job.mesh.tp, pool_)),
        longest_(batch.context),
        available_(room.memory - channels(job.mesh.hdp, room.per_connection)),
        even_share_(divided(batch.tokens_per_step, job.mesh.hdp)) {
    const auto schedule = make_schedule(job.pipeline, job.mesh.pp);
    holds_all_ = holds_all_micro_batches(*schedule);
    const ChunkMap chunks(*schedule, job.pipeline.split);
    const std::vector<std::int64_t> in_flight = most_chunks_in_flight(*schedule, endless);
    const DeviceShape shape{.tp = job.mesh.tp, .pool = job.mesh.ranks_of_a_shard_group()};
    for (std::int64_t stage = 0; stage < chunks.stages(); ++stage) {
      const DeviceShape own = stage_shape(job.model, shape, chunks, stage);
      const auto it = alike(own, std::ssize(chunks.held(stage)));
      if (it != stages_.end()) {
        it->in_flight = std::max(it->in_flight, in_flight[static_cast<std::size_t>(stage)]);
        continue;
      }
      stages_.push_back({own, DeviceMemory(job.model, own, job.recipe, expert_use(job.model, job.experts)),
                         resident_share_of_stage(chunks, job.model.layers, stage, 1),
                         in_flight[static_cast<std::size_t>(stage)], std::ssize(chunks.held(stage))});
    }
  }

  /// True if all stages hold a micro-batch of `tokens` tokens of the rank, the share `offload` of whose activations
  /// leaves the device, beside the other micro-batches in flight, which have C tokens.
  [[nodiscard]] bool holds(std::int64_t tokens, double offload, std::int64_t capacity) const {
    try {
      return counted(tokens, offload, capacity);
    } catch (const QuantityOverflow&) {  // more bytes than can be counted: the search tries any number of tokens
      return false;
    }
  }

 private:
  [[nodiscard]] bool counted(std::int64_t tokens, double offload, std::int64_t capacity) const {
    for (const auto& [shape, device, unmoved, in_flight, held] : stages_) {
      MemoryLoad load = load_of(tokens);
      load.resident = 1 - offload * (1 - unmoved);
      const MemoryParts alone = device.peak(load);
      const std::int64_t others = holds_all_ ? std::max<std::int64_t>(0, even_share_ - capacity) : capacity;
      const Bytes kept = device.kept(load_of(others));
      const Bytes beside = holds_all_ ? kept : kept * (in_flight - held) / held;
      const MemoryParts parts = device.beside(alone, beside);
      if ((gaps_ == Gaps::largest ? with_largest_gaps(parts) : parts.total()) > available_) return false;
    }
    return true;
  }

  /// Stages that have the same part of the model.
  struct Stage {
    DeviceShape shape;
    DeviceMemory device;
    double unmoved;          ///< Share of its activations that stays on the device whatever is offloaded.
    std::int64_t in_flight;  ///< Maximum number of chunks with activations, on the fullest of them.
    std::int64_t held;       ///< Number of chunks whose parameters each has.
  };

  std::vector<Stage>::iterator alike(const DeviceShape& shape, std::int64_t held) {
    return std::find_if(stages_.begin(), stages_.end(), [&](const Stage& stage) {
      return stage.held == held && stage.shape.layers == shape.layers && stage.shape.embedding == shape.embedding &&
             stage.shape.head == shape.head;
    });
  }

  // As parts of the longest sequence that its group can hold, whose queries see the most keys.
  [[nodiscard]] MemoryLoad load_of(std::int64_t tokens) const {
    const double keys =
        std::min(static_cast<double>(longest_), static_cast<double>(tokens) * static_cast<double>(pool_));
    return {.tokens = tokens,
            .ranks = form_.fullest_group(all_, tokens, longest_),
            .pairs = static_cast<double>(tokens) * keys};
  }

  Gaps gaps_;
  std::int64_t pool_;  ///< Ranks of the pool.
  const SharingForm& form_;
  GroupSharing all_;      ///< The group of the whole pool.
  std::int64_t longest_;  ///< Most tokens of a sequence.
  Bytes available_;
  bool holds_all_ = false;   ///< All tokens of a rank in a step are in flight.
  std::int64_t even_share_;  ///< Even share of a rank in the tokens of a step.
  std::vector<Stage> stages_;
};

}  // namespace

std::optional<std::int64_t> largest_fitting(std::int64_t most, const std::function<bool(std::int64_t)>& fits) {
  std::int64_t least = 0;                                                     // fits, or is 0
  std::int64_t first = std::max<std::int64_t>(1, most / capacity_grain) + 1;  // is never asked for
  while (first - least > 1) {
    const std::int64_t middle = least + (first - least) / 2;
    (fits(middle * capacity_grain) ? least : first) = middle;
  }
  if (least == 0) return std::nullopt;
  return least * capacity_grain;
}

bool holds_capacity(const LoweringOptions& job, const DeviceRoom& room, const BatchOptions& batch,
                    std::int64_t capacity) {
  if (is_streamed(job.pipeline)) return holds_streamed(job, capacity, room.memory);
  return RankRoom(job, room, batch, Gaps::usual).holds(capacity, 0, capacity);
}

std::optional<std::int64_t> largest_capacity(const LoweringOptions& job, const DeviceRoom& room,
                                             const BatchOptions& batch) {
  if (is_streamed(job.pipeline)) {
    return largest_fitting(batch.tokens_per_step / job.mesh.pp,
                           [&](std::int64_t tokens) { return holds_streamed(job, tokens, room.memory); });
  }
  const auto with = [&](Gaps gaps) {
    const RankRoom rank(job, room, batch, gaps);
    return largest_fitting(batch.tokens_per_step, [&](std::int64_t tokens) { return rank.holds(tokens, 0, tokens); });
  };
  const std::optional<std::int64_t> safe = with(Gaps::largest);
  const std::int64_t of_context = divided(batch.context, job.mesh.hdp);  // if the whole pool shares a sequence
  return safe && *safe >= of_context ? safe : with(Gaps::usual);
}

std::string no_capacity_text(const LoweringOptions& job, Bytes memory) {
  if (is_streamed(job.pipeline)) {
    return fmt::format(
        "no capacity fits: 256 tokens need {} of the {} of a device, of which weights and gradients of "
        "two stages take a part of 0.6, or two layers",
        bytes_text(streamed_memory(job, capacity_grain, memory, 0).total()), bytes_text(memory));
  }
  const auto schedule = make_schedule(job.pipeline, job.mesh.pp);
  const DeviceShape shape{.tp = job.mesh.tp, .pool = job.mesh.ranks_of_a_shard_group()};
  const DeviceMemory device(job.model, stage_shape(job.model, shape, ChunkMap(*schedule, job.pipeline.split), 0),
                            job.recipe, expert_use(job.model, job.experts));
  return fmt::format(
      "no capacity fits: of the {} of a device, {} are used by weights, gradients and optimizer before any "
      "activation{}",
      bytes_text(memory), bytes_text(device.states().total()),
      holds_all_micro_batches(*schedule) ? ", and its schedule keeps the activations of all micro-batches of a step"
                                         : "");
}

OffloadRoom offload_room(const LoweringOptions& job, const DeviceRoom& room, const BatchOptions& batch,
                         std::int64_t capacity) {
  const bool is_safe = RankRoom(job, room, batch, Gaps::largest).holds(capacity, 0, capacity);
  const RankRoom rank(job, room, batch, is_safe ? Gaps::largest : Gaps::usual);
  // A device's memory is the maximum of a few sums that are linear in the tokens and in the tokens that stay, so any
  // load between two that fit fits as well. The two are: C tokens that all stay; and the maximum number of tokens, with
  // all activations offloaded that can leave.
  const auto leaves = [&](std::int64_t beyond) { return rank.holds(capacity + beyond, 1, capacity); };
  const std::int64_t beyond = largest_fitting(batch.context, leaves).value_or(0);
  OffloadRoom offload{.most_tokens = capacity + beyond, .rounding = 2 * job.mesh.tp};
  if (beyond == 0) return offload;
  const double stays = resident_share(1, layers_of_pass(job)) * static_cast<double>(offload.most_tokens);
  offload.unmovable = std::max(0.0, (static_cast<double>(capacity) - stays) / static_cast<double>(beyond));
  return offload;
}

}  // namespace hdpsim
