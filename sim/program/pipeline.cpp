#include "sim/program/pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/check.h"
#include "sim/plan/updates.h"

namespace hdpsim {
namespace {

// Computes the slot of every wave: the number of waves before it on the longest path through the lists of all ranks.
// The micro-batches of a wave count as one.
class Slots {
 public:
  Slots(const Plan& plan, const WaveTable& waves)
      : plan_(plan), waves_(waves), slots_(waves.count()), next_(plan.schedule.size()), missing_(waves.count()) {
    for (std::size_t i = 0; i < plan.micro_batches.size(); ++i) {
      missing_[waves.wave(MicroBatchId(i))] += plan.micro_batches[i].group.size();
    }
  }

  // Returns the slots by wave.
  std::vector<std::int64_t> run() {
    for (std::size_t rank = 0; rank < next_.size(); ++rank) arrive(rank, 0);
    std::size_t done = 0;
    while (done < ready_.size()) {  // arrive() adds to them
      const std::size_t wave = ready_[done++];
      for (const MicroBatchId id : waves_.members(wave)) {
        for (const HdpRank rank : plan_.micro_batches[id.index()].group) {
          ++next_[rank.index()];
          arrive(rank.index(), slots_[wave] + 1);
        }
      }
    }
    HDPSIM_CHECK(ready_.size() == slots_.size(), "the order of the plan's micro-batches is a circle{}", waiting());
    return std::move(slots_);
  }

 private:
  void arrive(std::size_t rank, std::int64_t slot) {
    if (next_[rank] == plan_.schedule[rank].size()) return;
    const std::size_t wave = waves_.wave(plan_.schedule[rank][next_[rank]]);
    slots_[wave] = std::max(slots_[wave], slot);
    if (--missing_[wave] == 0) ready_.push_back(wave);
  }

  [[nodiscard]] std::string waiting() const {
    constexpr std::size_t most_told = 8;
    std::string text;
    for (std::size_t rank = 0, told = 0; rank < next_.size() && told < most_told; ++rank) {
      if (next_[rank] == plan_.schedule[rank].size()) continue;
      const MicroBatchId id = plan_.schedule[rank][next_[rank]];
      std::size_t ranks = 0;
      for (const MicroBatchId member : waves_.members(waves_.wave(id))) {
        ranks += plan_.micro_batches[member.index()].group.size();
      }
      text += fmt::format("; rank {} waits in micro-batch {} for {} of its {} ranks", rank, id.index(),
                          missing_[waves_.wave(id)], ranks);
      ++told;
    }
    return text;
  }

  const Plan& plan_;
  const WaveTable& waves_;
  std::vector<std::int64_t> slots_;   // by wave
  std::vector<std::size_t> next_;     // by rank
  std::vector<std::size_t> missing_;  // by wave: ranks that have not come to it
  std::vector<std::size_t> ready_;    // waves in an order of execution
};

/// The order of the passes of one stage, by slot.
class StageOrder {
 public:
  struct Entry {
    std::int64_t place;  // position in the order
    std::size_t offset;  // index of the pass among those of its micro-batch
  };
  template <class OffsetOf>
  StageOrder(const std::vector<SlotPass>& order, std::int64_t slots, OffsetOf offset_of)
      : begins_(static_cast<std::size_t>(slots) + 1), entries_(order.size()), beside_next_(order.size()) {
    for (const SlotPass& pass : order) ++begins_[static_cast<std::size_t>(pass.slot) + 1];
    for (std::size_t slot = 1; slot < begins_.size(); ++slot) begins_[slot] += begins_[slot - 1];
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (std::size_t place = 0; place < order.size(); ++place) {
      const SlotPass& pass = order[place];
      entries_[next[static_cast<std::size_t>(pass.slot)]++] = {static_cast<std::int64_t>(place), offset_of(pass)};
      beside_next_[place] = pass.beside_next;
    }
  }
  [[nodiscard]] std::span<const Entry> of(std::int64_t slot) const {
    const auto at = static_cast<std::size_t>(slot);
    return {entries_.data() + begins_[at], entries_.data() + begins_[at + 1]};
  }
  /// Whether the pass in this place runs at the same time as the one in the next place.
  [[nodiscard]] bool is_beside_next(std::int64_t place) const { return beside_next_[static_cast<std::size_t>(place)]; }

 private:
  std::vector<std::size_t> begins_;  // by slot
  std::vector<Entry> entries_;
  std::vector<bool> beside_next_;  // by place
};

// Of every micro-batch of a rank's list, the place of the last one of its chain: of those that continue each other.
std::vector<std::int64_t> chain_ends(const Plan& plan, const std::vector<MicroBatchId>& list) {
  std::vector<std::int64_t> ends(list.size());
  std::int64_t end = std::ssize(list) - 1;
  for (std::size_t i = list.size(); i-- > 0;) {
    ends[i] = end;
    if (!plan.micro_batches[list[i].index()].continues) end = static_cast<std::int64_t>(i) - 1;
  }
  return ends;
}

}  // namespace

Pipeline::Pipeline(const Plan& plan, std::int64_t stages, const PipelineOptions& options)
    : plan_(plan),
      waves_(plan),
      schedule_(has_chunks_in_order(plan) ? make_schedule_of_chains(options, stages) : make_schedule(options, stages)),
      chunk_map_(*schedule_, options.split),
      kinds_(schedule_->kinds()),
      orders_(plan.schedule.size() * static_cast<std::size_t>(stages)) {
  if (stages > 1 && update_count(plan) > 1) {
    order_updates(options);
  } else {
    order_passes();
  }
}

void Pipeline::order_updates(const PipelineOptions& options) {
  std::size_t first = 0;  // pass of the update
  for (const Plan& update : split_by_update(plan_)) {
    const Pipeline own(update, stages(), options);
    const auto here = [&](PassId pass) { return PassId(first + pass.index()); };
    for (std::size_t w = 0; w < orders_.size(); ++w) {
      for (const PassId pass : own.orders_[w]) orders_[w].push_back(here(pass));
    }
    copies_.insert(copies_.end(), own.copies_.begin(), own.copies_.end());
    if (!own.overlap_partners_.empty()) overlap_partners_.resize(passes());
    for (std::size_t p = 0; p < own.overlap_partners_.size(); ++p) {
      if (const auto& partner = own.overlap_partners_[p]) overlap_partners_[first + p] = here(*partner);
    }
    first += own.passes();
  }
}

void Pipeline::order_passes() {
  if (has_chunks_in_order(plan_)) return order_chains();
  if (stages() == 1) {
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      orders_[rank].reserve(plan_.schedule[rank].size());
      for (const MicroBatchId id : plan_.schedule[rank]) orders_[rank].emplace_back(id.index());
    }
    return;
  }
  const std::vector<std::int64_t> slots_of_waves = Slots(plan_, waves_).run();
  std::vector<std::int64_t> slots(plan_.micro_batches.size());
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = slots_of_waves[waves_.wave(MicroBatchId(i))];
  if (chunk_map_.copies() > 1) {
    for (const std::int64_t slot : slots) copies_.push_back(slot % chunk_map_.copies());
  }
  const std::int64_t slot_count = slots.empty() ? 0 : *std::max_element(slots.begin(), slots.end()) + 1;
  for (std::int64_t stage = 0; stage < stages(); ++stage) order_stage(stage, slots, slot_count);
}

void Pipeline::order_chains() {
  continued_.resize(plan_.micro_batches.size());
  for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) {
    const std::vector<MicroBatchId>& list = plan_.schedule[rank];
    const std::vector<std::int64_t> ends = chain_ends(plan_, list);
    for (std::size_t i = 0; i < list.size(); ++i) {
      continued_[list[i].index()] = ends[i] > static_cast<std::int64_t>(i);
    }
    for (std::int64_t stage = 0; stage < stages(); ++stage) {
      std::vector<PassId>& of_worker = orders_[worker(HdpRank(rank), stage).index()];
      of_worker.reserve(2 * list.size());
      for (const SlotPass& pass : schedule_->order_of_chains(stage, ends)) {
        of_worker.push_back(id_of(list[static_cast<std::size_t>(pass.slot)], pass.chunk, pass.kind));
      }
    }
  }
}

void Pipeline::order_stage(std::int64_t stage, const std::vector<std::int64_t>& slots, std::int64_t slot_count) {
  const StageOrder order(schedule_->order(stage, slot_count), slot_count,
                         [this](const SlotPass& pass) { return offset_of(pass.chunk, pass.kind); });
  std::vector<std::pair<std::int64_t, PassId>> placed;
  for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) {
    placed.clear();
    for (const MicroBatchId id : plan_.schedule[rank]) {
      const std::size_t first = id.index() * passes_of_micro_batch();
      for (const auto& [place, offset] : order.of(slots[id.index()])) placed.emplace_back(place, first + offset);
    }
    std::sort(placed.begin(), placed.end());
    std::vector<PassId>& of_worker = orders_[worker(HdpRank(rank), stage).index()];
    of_worker.reserve(placed.size());
    for (const auto& entry : placed) of_worker.push_back(entry.second);
    for (std::size_t i = 0; i + 1 < placed.size(); ++i) {
      const std::int64_t place = placed[i].first;
      if (order.is_beside_next(place) && placed[i + 1].first == place + 1) pair(placed[i].second, placed[i + 1].second);
    }
  }
}

// A short step may lack the backward pass. The ranks of a group may have different passes beside theirs: that of the
// first rank counts.
void Pipeline::pair(PassId forward, PassId backward) {
  if (!goes_backward(pass(backward).kind)) return;
  if (overlap_partners_.empty()) overlap_partners_.resize(passes());
  auto& of_forward = overlap_partners_[forward.index()];
  auto& of_backward = overlap_partners_[backward.index()];
  if (!of_forward) of_forward = backward;
  if (!of_backward) of_backward = forward;
}

StagePass Pipeline::pass(PassId id) const {
  const std::size_t within = id.index() % passes_of_micro_batch();
  const auto chunk = static_cast<std::int64_t>(within / kinds_.size());
  const MicroBatchId micro_batch = micro_batch_id(id);
  return {micro_batch, chunk, chunk_map_.stage_of(chunk, copy_of(micro_batch)), kinds_[within % kinds_.size()]};
}

bool Pipeline::begins_on_stage(PassId id) const {
  const StagePass at = pass(id);
  return keeps_activations(at.kind) && chunk_map_.is_first(at.chunk, copy_of(at.micro_batch));
}

std::size_t Pipeline::offset_of(std::int64_t chunk, PassKind kind) const {
  const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
  HDPSIM_CHECK(found != kinds_.end(), "the schedule has no passes of kind {}", pass_kind_name(kind));
  return static_cast<std::size_t>(chunk) * kinds_.size() + static_cast<std::size_t>(found - kinds_.begin());
}

PassId Pipeline::id_of(MicroBatchId micro_batch, std::int64_t chunk, PassKind kind) const {
  return PassId(micro_batch.index() * passes_of_micro_batch() + offset_of(chunk, kind));
}

std::vector<WorkerId> Pipeline::group(PassId id) const {
  const std::vector<HdpRank>& ranks = micro_batch(id).group;
  const std::int64_t stage = pass(id).stage;
  std::vector<WorkerId> workers;
  workers.reserve(ranks.size());
  for (const HdpRank rank : ranks) workers.push_back(worker(rank, stage));
  return workers;
}

std::vector<PassId> Pipeline::wave(PassId id) const {
  const std::size_t within = id.index() % passes_of_micro_batch();
  std::vector<PassId> passes;
  for (const MicroBatchId member : waves_.members(waves_.wave(micro_batch_id(id)))) {
    passes.emplace_back(member.index() * passes_of_micro_batch() + within);
  }
  return passes;
}

// The pass of the same kind through the chunk `step` further on, if another stage has that chunk.
std::optional<PassId> Pipeline::neighbour(PassId id, std::int64_t step) const {
  const StagePass from = pass(id);
  const std::int64_t chunk = from.chunk + step;
  if (chunk < 0 || chunk >= chunks()) return std::nullopt;
  if (chunk_map_.stage_of(chunk, copy_of(from.micro_batch)) == from.stage) return std::nullopt;
  return id_of(from.micro_batch, chunk, from.kind);
}

std::optional<PassId> Pipeline::target(PassId id) const {
  const PassKind kind = pass(id).kind;
  return sends_forward(kind) ? neighbour(id, 1) : sends_backward(kind) ? neighbour(id, -1) : std::nullopt;
}

std::optional<PassId> Pipeline::source(PassId id) const {
  const PassKind kind = pass(id).kind;
  return sends_forward(kind) ? neighbour(id, -1) : sends_backward(kind) ? neighbour(id, 1) : std::nullopt;
}

}  // namespace hdpsim
