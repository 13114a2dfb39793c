#include "sim/study/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/program/activations_in_flight.h"
#include "sim/program/chunk_map.h"

namespace hdpsim {
namespace {

constexpr std::int64_t ring_neighbours = 2;
constexpr std::int64_t endless = std::numeric_limits<std::int32_t>::max();  // micro-batches

Bytes channels(const PointSpec& point) {
  const auto& connections = point.profile->connections;
  if (point.mesh.hdp == 1 || !connections || !connections->memory_per_peer) return {};
  return *connections->memory_per_peer * std::min(point.mesh.hdp - 1, ring_neighbours);
}

/// The memory of the devices of one rank, which are the stages of its pipeline, with full micro-batches in flight.
class RankRoom {
 public:
  explicit RankRoom(const PointSpec& point)
      : point_(point),
        available_(point.cluster.least_device_memory()),
        holds_all_(false),
        even_share_((point.batch.tokens_per_step - 1) / point.mesh.hdp + 1) {
    const auto schedule = make_schedule(point.pipeline, point.mesh.pp);
    holds_all_ = holds_all_micro_batches(*schedule);
    const ChunkMap chunks(*schedule);
    const std::vector<std::int64_t> in_flight = most_chunks_in_flight(*schedule, endless);
    const DeviceShape shape{.tp = point.mesh.tp, .pool = point.mesh.hdp};
    for (std::int64_t stage = 0; stage < chunks.stages(); ++stage) {
      const DeviceShape own = stage_shape(point.model, shape, chunks, stage);
      stages_.push_back({DeviceMemory(point.model, own, recipe_of(point), expert_use_of(point)), own.layers,
                         in_flight[static_cast<std::size_t>(stage)], std::ssize(chunks.held(stage))});
    }
    available_ = available_ - channels(point);
  }

  /// True if all stages hold a micro-batch of `tokens` tokens of the rank, the share `offload` of whose activations
  /// leaves the device, beside the other micro-batches in flight, which have C tokens.
  [[nodiscard]] bool holds(std::int64_t tokens, double offload, std::int64_t capacity) const {
    for (const auto& [device, layers, in_flight, held] : stages_) {
      const MemoryParts alone = device.peak({.tokens = tokens,
                                             .ring = std::min(point_.mesh.hdp, ring_neighbours),
                                             .resident = resident_share(offload, layers)});
      const Bytes beside = holds_all_ ? device.kept(std::max<std::int64_t>(0, even_share_ - capacity))
                                      : device.kept(capacity) * (in_flight - held) / held;
      if (device.beside(alone, beside).total() > available_) return false;
    }
    return true;
  }

 private:
  struct Stage {
    DeviceMemory device;
    std::int64_t layers;
    std::int64_t in_flight;  ///< Maximum number of chunks with activations.
    std::int64_t held;       ///< Number of chunks whose parameters it has.
  };

  const PointSpec& point_;
  Bytes available_;
  bool holds_all_;           ///< All tokens of a rank in a step are in flight.
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

std::optional<std::int64_t> largest_capacity(const PointSpec& point) {
  const RankRoom room(point);
  return largest_fitting(point.batch.tokens_per_step,
                         [&](std::int64_t tokens) { return room.holds(tokens, 0, tokens); });
}

void report_no_capacity(const PointSpec& point, const Position& where, Diagnostics& diagnostics) {
  const auto schedule = make_schedule(point.pipeline, point.mesh.pp);
  const DeviceShape shape{.tp = point.mesh.tp, .pool = point.mesh.hdp};
  const DeviceMemory device(point.model, stage_shape(point.model, shape, ChunkMap(*schedule), 0), recipe_of(point),
                            expert_use_of(point));
  const bool holds_all = holds_all_micro_batches(*schedule);
  diagnostics.error(
      where,
      fmt::format("no capacity fits: of the {} of a device, {} are full before the first token{}",
                  bytes_text(point.cluster.least_device_memory()), bytes_text(device.states().total()),
                  holds_all ? ", and its schedule keeps the activations of all micro-batches of a step" : ""),
      holds_all ? "use schedule: 1f1b, recompute: full or fewer tokens a step"
                : "use a larger 'tp' or a higher level of 'zero'");
}

OffloadRoom offload_room(const PointSpec& point) {
  const RankRoom room(point);
  const std::int64_t capacity = point.capacity;
  // A device's memory is the maximum of a few sums that are linear in the tokens and in the tokens that stay, so any
  // load between two that fit fits as well. The two are: C tokens that all stay; and the maximum number of tokens, with
  // all activations offloaded that can leave.
  const auto leaves = [&](std::int64_t beyond) { return room.holds(capacity + beyond, 1, capacity); };
  const std::int64_t beyond = largest_fitting(point.batch.context, leaves).value_or(0);
  OffloadRoom offload{.most_tokens = capacity + beyond, .rounding = 2 * point.mesh.tp};
  if (beyond == 0) return offload;
  const double stays = resident_share(1, layers_of_pass(point)) * static_cast<double>(offload.most_tokens);
  offload.unmovable = std::max(0.0, (static_cast<double>(capacity) - stays) / static_cast<double>(beyond));
  return offload;
}

}  // namespace hdpsim
