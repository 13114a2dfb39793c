#include "sim/analysis/memory_use.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/base/division.h"
#include "sim/model/parameters.h"
#include "sim/model/sharing_form.h"
#include "sim/model/work.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/served_cut.h"

namespace hdpsim {
namespace {

/// The share of a micro-batch's time that is its forward.
double forward_share(const MicroBatch& micro_batch, const WorkModel& work) {
  const double all = work.compute_seconds(micro_batch.area(), micro_batch.tokens());
  return all > 0 ? work.forward_seconds(micro_batch.area(), micro_batch.tokens()) / all : 0;
}

std::optional<OwnExchange> own_exchange_of(const MicroBatch& micro_batch) {
  const std::optional<KeyExchange> exchange = own_exchange(micro_batch);
  if (!exchange) return std::nullopt;
  return micro_batch.exchange ? OwnExchange{*exchange} : own_exchange_load(micro_batch, *exchange);
}

/// What the memory of a micro-batch follows from, if it is neither a chunk of a sequence in order nor of an expert
/// group, and shares keys in the recipe's way.
struct LoadSize {
  std::int64_t tokens;  ///< Of a rank.
  std::size_t ranks;
  double pairs;  ///< 0 where they do not count.
  double offload;
  bool token_wise;
  std::optional<KeyExchange> exchange;  ///< In place of the recipe's.
  friend bool operator==(const LoadSize&, const LoadSize&) = default;
};

struct LoadSizeHash {
  std::size_t operator()(const LoadSize& size) const {
    std::size_t hash = 0;
    const auto mix = [&](std::size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15U; };
    mix(static_cast<std::size_t>(size.tokens));
    mix(size.ranks);
    mix(std::hash<double>()(size.pairs));
    mix(std::hash<double>()(size.offload));
    return hash ^ (hash >> 32U);
  }
};

LoadSize size_of(const MicroBatch& micro_batch, const Recipe& recipe) {
  return {micro_batch.tokens_per_rank(),
          micro_batch.group.size(),
          recipe.flash_attention ? 0 : micro_batch.pairs_per_rank(),
          micro_batch.offload,
          micro_batch.token_wise,
          own_exchange(micro_batch)};
}

}  // namespace

PlanMemory::PlanMemory(const Pipeline& pipeline, const MemorySetting& setting)
    : pipeline_(pipeline), plan_(pipeline.plan()), channels_(setting.channels) {
  if (channels_.per_connection) {
    use_.connections = *channels_.per_connection * channels_.connections->most_connections();
  }
  peaks_.resize(plan_.schedule.size());
  for (std::int64_t stage = 0; stage < pipeline.stages(); ++stage) {
    add_stage(stage, setting);
    for (std::size_t rank = 0; rank < peaks_.size(); ++rank) add_worker(pipeline.worker(HdpRank(rank), stage));
  }
}

void PlanMemory::add_stage(std::int64_t stage, const MemorySetting& setting) {
  const DeviceShape shape{.tp = setting.mesh.tp, .pool = setting.mesh.ranks_of_a_shard_group()};
  const DeviceShape own = stage_shape(setting.model, shape, pipeline_.chunk_map(), stage);
  stages_.push_back({DeviceMemory(setting.model, own, setting.recipe, setting.experts), {}, {}});
  Stage& added = stages_.back();
  const std::int64_t devices = setting.mesh.experts().devices();
  const bool has_groups = setting.model.moe && devices > 1;
  const auto groups = has_groups ? expert_tokens(plan_, setting.mesh.tp, devices) : std::vector<ExpertTokens>{};
  added.numbers.reserve(plan_.micro_batches.size());
  std::unordered_map<LoadSize, std::uint32_t, LoadSizeHash> known;
  for (std::size_t i = 0; i < plan_.micro_batches.size(); ++i) {
    const MicroBatch& micro_batch = plan_.micro_batches[i];
    const MicroBatchId id(i);
    const bool in_chunks = micro_batch.repeats_forward || micro_batch.continues || pipeline_.is_continued(id);
    auto number = static_cast<std::uint32_t>(added.loads.size());
    if (!has_groups && !in_chunks && !exchange_of(micro_batch.cut)) {
      number = known.try_emplace(size_of(micro_batch, setting.recipe), number).first->second;
    }
    added.numbers.push_back(number);
    if (number < added.loads.size()) continue;
    const auto of_experts = has_groups ? std::optional(divided(groups[i].all, devices)) : std::nullopt;
    added.loads.push_back(load_on(stage, id, setting, of_experts));
  }
}

PlanMemory::Load PlanMemory::load_on(std::int64_t stage, MicroBatchId id, const MemorySetting& setting,
                                     std::optional<std::int64_t> expert_tokens) const {
  const DeviceMemory& device = stages_[static_cast<std::size_t>(stage)].device;
  const MicroBatch& micro_batch = plan_.micro_batches[id.index()];
  const std::int64_t tokens = micro_batch.tokens_per_rank();
  const double moved = micro_batch.token_wise ? 1 : micro_batch.offload;
  const double resident = resident_share_of_stage(pipeline_.chunk_map(), setting.model.layers, stage, moved);
  const MemoryLoad load{.tokens = tokens,
                        .ranks = static_cast<std::int64_t>(micro_batch.group.size()),
                        .resident = resident,
                        .pairs = micro_batch.pairs_per_rank(),
                        .expert_tokens = expert_tokens,
                        .own_exchange = own_exchange_of(micro_batch)};
  const Bytes all = device.kept(load);
  const Bytes kept = all.scaled(resident);
  const Bytes host =
      micro_batch.token_wise ? device.kept_token_wise(load, micro_batch.offload).scaled(1 - resident) : all - kept;
  Load made{device.peak(load), kept, host};
  if (micro_batch.repeats_forward) made.kept = device.received(tokens);
  const bool is_continued = pipeline_.is_continued(id);
  if (!is_continued && !micro_batch.continues) return made;
  // Activations hold the keys, unless these are recomputed. Repeated forward passes make them anew.
  const Recompute again = setting.recipe.recompute;
  const bool recomputes_keys = again.has(LayerModule::qkv) || again == Recompute::per_operation;
  const Bytes keys = device.keys(tokens);
  const std::int64_t seen = micro_batch.earlier_keys() + (is_continued ? tokens : 0);
  made.peak = device.beside(made.peak, recomputes_keys ? keys : Bytes{}, device.key_gradients(seen));
  if (recomputes_keys || micro_batch.repeats_forward) made.kept += keys;
  return made;
}

void PlanMemory::add_worker(WorkerId worker) {
  const HdpRank rank = pipeline_.rank_of(worker);
  const std::int64_t stage = pipeline_.stage_of(worker);
  const Stage& at = stages_[static_cast<std::size_t>(stage)];
  const std::int64_t chunks = std::ssize(pipeline_.chunk_map().held(stage));
  Bytes kept;  // in flight, times `chunks`
  Bytes host;
  use_.host = std::max(use_.host, at.device.host_states());
  add_moment(rank, stage, std::nullopt, at.device.states());
  for (const PassId pass : pipeline_.orders()[worker.index()]) {
    const MicroBatchId id = pipeline_.micro_batch_id(pass);
    const PassKind kind = pipeline_.pass(pass).kind;
    const Load& load = at.load(id);
    if (keeps_activations(kind)) {
      kept += load.kept;
      host += load.host;
      use_.host = std::max(use_.host, at.device.host_states() + host / chunks);
    }
    // The peak counts the micro-batch's own activations on all chunks of the device.
    if (goes_backward(kind)) add_moment(rank, stage, id, at.device.beside(load.peak, kept / chunks - load.kept));
    if (releases_activations(kind)) {
      kept = kept - load.kept;
      host = host - load.host;
    }
  }
}

void PlanMemory::add_moment(HdpRank rank, std::int64_t stage, std::optional<MicroBatchId> id, MemoryParts parts) {
  parts[MemoryPart::reserve] += channels_of(rank);
  const Bytes total = parts.total();
  peaks_[rank.index()] = std::max(peaks_[rank.index()], total);
  if (total <= use_.device) return;
  fullest_ = id;
  use_.device = total;
  use_.parts = parts;
  use_.rank = rank;
  use_.stage = stage;
}

std::vector<HdpRank> PlanMemory::fullest(std::size_t count) const {
  std::vector<HdpRank> ranks;
  for (std::size_t rank = 0; rank < peaks_.size(); ++rank) ranks.emplace_back(rank);
  count = std::min(count, ranks.size());
  std::partial_sort(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count), ranks.end(),
      [&](HdpRank a, HdpRank b) { return std::pair(peaks_[b.index()], a) < std::pair(peaks_[a.index()], b); });
  ranks.resize(count);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

void PlanMemory::place(const Timeline& timeline, const WorkModel& work) {
  if (fullest_) use_.at = turn(*fullest_, timeline, work);
}

RankMemory PlanMemory::over_time(HdpRank rank, const Timeline& timeline, const WorkModel& work) const {
  const Bytes states = stages_.front().device.states().total() + channels_of(rank);
  const Bytes on_host = stages_.front().device.host_states();
  RankMemory memory{rank, {{Duration{}, states, on_host}}};
  if (pipeline_.has_whole_passes()) {
    sample_turns(memory, timeline, work);
  } else {
    sample_flights(memory, timeline);
  }
  memory.samples.push_back({timeline.step_time, states, on_host});
  return memory;
}

void PlanMemory::sample_turns(RankMemory& memory, const Timeline& timeline, const WorkModel& work) const {
  const Bytes states = memory.samples.front().device;
  const Bytes on_host = memory.samples.front().host;
  const Bytes channels = channels_of(memory.rank);
  const auto sample = [&](Duration at, Bytes device, Bytes host) {
    memory.samples.push_back({std::max(at, memory.samples.back().at), device, host});
  };
  for (const MicroBatchId id : plan_.schedule[memory.rank.index()]) {
    const Load& load = stages_.front().load(id);
    sample(timeline.micro_batches[id.index()].begin.since_start(), states, on_host);
    sample(turn(id, timeline, work), load.peak.total() + channels, on_host + load.host);
    sample(timeline.micro_batches[id.index()].end.since_start(), states, on_host);
  }
}

void PlanMemory::sample_flights(RankMemory& memory, const Timeline& timeline) const {
  struct Change {
    Instant at;
    bool begins;
    MicroBatchId id;
    auto operator<=>(const Change&) const = default;  // at equal times ends sort before begins
  };
  std::vector<Change> changes;
  for (const PassId pass : pipeline_.orders()[pipeline_.worker(memory.rank, 0).index()]) {
    const MicroBatchId id = pipeline_.micro_batch_id(pass);
    const PassKind kind = pipeline_.pass(pass).kind;
    if (keeps_activations(kind)) changes.push_back({timeline.interval(pass).begin, true, id});
    if (releases_activations(kind)) changes.push_back({timeline.interval(pass).end, false, id});
  }
  std::sort(changes.begin(), changes.end());
  const Stage& first = stages_.front();
  const std::int64_t chunks = std::ssize(pipeline_.chunk_map().held(0));
  const Bytes channels = channels_of(memory.rank);
  const Bytes on_host = memory.samples.front().host;
  Bytes kept;  // times `chunks`, as what follows
  Bytes host;
  for (const Change& change : changes) {
    const Load& load = first.load(change.id);
    kept = change.begins ? kept + load.kept : kept - load.kept;
    host = change.begins ? host + load.host : host - load.host;
    const Bytes device = first.device.beside(first.device.states(), kept / chunks).total() + channels;
    memory.samples.push_back({change.at.since_start(), device, on_host + host / chunks});
  }
}

Bytes PlanMemory::channels_of(HdpRank rank) const {
  if (!channels_.per_connection) return {};
  return *channels_.per_connection * channels_.connections->connections(rank);
}

Duration PlanMemory::turn(MicroBatchId id, const Timeline& timeline, const WorkModel& work) const {
  const MicroBatchInterval& interval = timeline.micro_batches[id.index()];
  const double share = forward_share(plan_.micro_batches[id.index()], work);
  return interval.begin.since_start() + (interval.end - interval.begin).scaled(share);
}

}  // namespace hdpsim
