#include "sim/study/capacity.h"

#include <algorithm>
#include <limits>

namespace hdpsim {
namespace {

constexpr std::int64_t ring_neighbours = 2;

// A full pipeline of micro-batches of so many tokens on every rank.
Bytes fullest_stage(const PointSpec& point, std::int64_t tokens) {
  const DeviceShape shape{.tp = point.mesh.tp, .pp = point.mesh.pp, .pool = point.mesh.hdp};
  const std::int64_t ring = std::min(point.mesh.hdp, ring_neighbours);
  Bytes fullest;
  for (std::int64_t stage = 0; stage < shape.pp; ++stage) {
    const DeviceMemory device(point.model, stage_shape(point.model, shape, stage), memory_rules_of(point));
    const std::int64_t others = chunks_in_flight(shape.pp, stage, 1, std::numeric_limits<std::int32_t>::max()) - 1;
    const MemoryParts alone = device.peak({.tokens = tokens, .ring = ring});
    fullest = std::max(fullest, device.beside(alone, device.kept(tokens) * others).total());
  }
  return fullest;
}

Bytes channels(const PointSpec& point) {
  const auto& connections = point.profile->connections;
  if (point.mesh.hdp == 1 || !connections || !connections->memory_per_peer) return {};
  return *connections->memory_per_peer * std::min(point.mesh.hdp - 1, ring_neighbours);
}

}  // namespace

std::optional<std::int64_t> largest_capacity(const PointSpec& point) {
  const Bytes memory = point.cluster.least_device_memory();
  const Bytes reserved = channels(point);
  const auto fits = [&](std::int64_t grains) {
    return fullest_stage(point, grains * capacity_grain) + reserved <= memory;
  };
  std::int64_t least = 0;  // fits, or is nothing
  std::int64_t most = std::max<std::int64_t>(1, point.batch.tokens_per_step / capacity_grain) + 1;  // is not asked for
  while (most - least > 1) {
    const std::int64_t middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  if (least == 0) return std::nullopt;
  return least * capacity_grain;
}

}  // namespace hdpsim
