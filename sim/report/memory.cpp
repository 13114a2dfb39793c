#include "sim/report/memory.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"

namespace hdpsim {

namespace {

DeviceMemory device_memory(const MemorySetting& setting) {
  HDPSIM_CHECK(setting.mesh.pp == 1, "the memory of pipelines is not known here: pp is {}", setting.mesh.pp);
  const DeviceShape shape{.tp = setting.mesh.tp, .pool = setting.mesh.hdp};
  return {setting.model, stage_shape(setting.model, shape, 0), setting.rules};
}

/// Share of a micro-batch's time that is its forward: backward is two products for every one of forward in linear work,
/// five for two in attention, and what is computed again comes on top (it is in the work model).
double forward_share(const MicroBatch& micro_batch, const WorkModel& work, Recompute recompute) {
  const double linear = recompute == Recompute::full ? 1.0 / 4 : 1.0 / 3;
  const double attention = recompute == Recompute::none ? 2.0 / 7 : 2.0 / 9;
  const double all = work.compute_seconds(micro_batch.area(), micro_batch.tokens());
  const double forward =
      linear * work.compute_seconds(0, micro_batch.tokens()) + attention * work.compute_seconds(micro_batch.area(), 0);
  return all > 0 ? forward / all : 0;
}

}  // namespace

PlanMemory::PlanMemory(const Plan& plan, const MemorySetting& setting)
    : plan_(plan),
      model_(setting.model),
      channels_(setting.channels),
      recompute_(setting.rules.activations.recompute),
      device_(device_memory(setting)) {
  const MemoryParts states = device_.states();
  use_ = {.device = states.total(), .host = {}, .parts = states};
  if (channels_.per_connection) {
    use_.connections = *channels_.per_connection * channels_.connections->most_connections();
  }
  peaks_.assign(plan.schedule.size(), states.total());
  loads_.reserve(plan.micro_batches.size());
  for (std::size_t i = 0; i < plan.micro_batches.size(); ++i) {
    const MicroBatch& micro_batch = plan.micro_batches[i];
    const Load& load = loads_.emplace_back(load_of(micro_batch));
    use_.host = std::max(use_.host, load.host);
    for (const HdpRank rank : micro_batch.group) {
      const Bytes channels = channels_of(rank);
      const Bytes total = load.peak.total() + channels;
      peaks_[rank.index()] = std::max(peaks_[rank.index()], total);
      if (total < use_.device || (total == use_.device && fullest_)) continue;
      fullest_ = MicroBatchId(i);
      use_.device = total;
      use_.parts = load.peak;
      use_.parts[MemoryPart::reserve] += channels;
      use_.rank = rank;
    }
  }
}

std::vector<HdpRank> PlanMemory::fullest(std::size_t count) const {
  std::vector<HdpRank> ranks;
  for (std::size_t rank = 0; rank < peaks_.size(); ++rank) ranks.emplace_back(rank);
  count = std::min(count, ranks.size());
  std::partial_sort(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count), ranks.end(),
                    [&](HdpRank a, HdpRank b) {
                      const Bytes more = peaks_[a.index()];
                      const Bytes less = peaks_[b.index()];
                      return more != less ? more > less : a < b;
                    });
  ranks.resize(count);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

void PlanMemory::place(const Timeline& timeline, const WorkModel& work) {
  if (fullest_) use_.at = turn(*fullest_, timeline, work);
}

RankMemory PlanMemory::over_time(HdpRank rank, const Timeline& timeline, const WorkModel& work) const {
  const Bytes channels = channels_of(rank);
  const Bytes states = device_.states().total() + channels;
  RankMemory memory{rank, {{Duration{}, states, Bytes{}}}};
  const auto sample = [&](Duration at, Bytes device, Bytes host) {
    memory.samples.push_back({std::max(at, memory.samples.back().at), device, host});
  };
  for (const MicroBatchId id : plan_.schedule[rank.index()]) {
    const MicroBatchInterval& interval = timeline.micro_batches[id.index()];
    const Load& load = loads_[id.index()];
    sample(interval.begin.since_start(), states, Bytes{});
    sample(turn(id, timeline, work), load.peak.total() + channels, load.host);
    sample(interval.end.since_start(), states, Bytes{});
  }
  sample(timeline.step_time, states, Bytes{});
  return memory;
}

PlanMemory::Load PlanMemory::load_of(const MicroBatch& micro_batch) const {
  const std::int64_t tokens = micro_batch.tokens_per_rank();
  const double resident = resident_share(micro_batch.offload, model_.layers);
  const Bytes kept = device_.kept(tokens);
  const auto ring = static_cast<std::int64_t>(micro_batch.group.size());
  return {device_.peak({.tokens = tokens, .ring = ring, .resident = resident}), kept - kept.scaled(resident)};
}

Bytes PlanMemory::channels_of(HdpRank rank) const {
  if (!channels_.per_connection) return {};
  return *channels_.per_connection * channels_.connections->connections(rank);
}

Duration PlanMemory::turn(MicroBatchId id, const Timeline& timeline, const WorkModel& work) const {
  const MicroBatchInterval& interval = timeline.micro_batches[id.index()];
  const double share = forward_share(plan_.micro_batches[id.index()], work, recompute_);
  return interval.begin.since_start() + (interval.end - interval.begin).scaled(share);
}

}  // namespace hdpsim
