#include "sim/program/pipeline.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// Walks through the lists of all ranks in step with the groups and counts, on the longest way to each micro-batch, the
// micro-batches before it. Those of a wave are as one.
class Slots {
 public:
  Slots(const Plan& plan, const WaveTable& waves)
      : plan_(plan), waves_(waves), slots_(waves.count()), next_(plan.schedule.size()), missing_(waves.count()) {
    for (std::size_t i = 0; i < plan.micro_batches.size(); ++i) {
      missing_[waves.wave(MicroBatchId(i))] += plan.micro_batches[i].group.size();
    }
  }

  // By wave.
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

// Where a pass stands in the order of one stage with endlessly many micro-batches.
class StageOrder {
 public:
  StageOrder(std::int64_t stages, std::int64_t stage, const PipelineOptions& options)
      : stages_(stages), stage_(stage), virtual_stages_(options.virtual_stages), warm_up_(warm_up(options.schedule)) {}

  // Forward passes before the first backward; then a forward and a backward in turn.
  [[nodiscard]] std::int64_t key(PassKind kind, std::int64_t slot, std::int64_t turn) const {
    switch (kind) {
      case PassKind::whole:
        return slot;
      case PassKind::forward:
        return forward_key(index(slot, turn));
      case PassKind::backward:
      case PassKind::input_gradient:
        return backward_key(index(slot, virtual_stages_ - 1 - turn));
      case PassKind::weight_gradient:
        // As many micro-batches keep activations as on the first stage of 1F1B, on every stage.
        return backward_key(slot + stage_) + 1;
    }
    return 0;
  }

 private:
  [[nodiscard]] std::int64_t warm_up(PipelineSchedule schedule) const {
    constexpr std::int64_t all = std::int64_t{1} << 40;
    switch (schedule) {
      case PipelineSchedule::one_f_one_b:
      case PipelineSchedule::zb_h1:
        return stages_ - 1 - stage_;
      case PipelineSchedule::gpipe:
        return all;
      case PipelineSchedule::interleaved:
        return 2 * (stages_ - 1 - stage_) + (virtual_stages_ - 1) * stages_;
    }
    return 0;
  }

  // As many micro-batches as there are stages go through one chunk of the stage, then through the next.
  [[nodiscard]] std::int64_t index(std::int64_t slot, std::int64_t turn) const {
    return (slot / stages_ * virtual_stages_ + turn) * stages_ + slot % stages_;
  }

  [[nodiscard]] std::int64_t forward_key(std::int64_t index) const {
    return 2 * (index < warm_up_ ? index : 2 * index - warm_up_);
  }
  [[nodiscard]] std::int64_t backward_key(std::int64_t index) const { return 2 * (warm_up_ + 2 * index + 1); }

  std::int64_t stages_;
  std::int64_t stage_;
  std::int64_t virtual_stages_;
  std::int64_t warm_up_;
};

// The kinds of passes of a micro-batch through a chunk, in the order of their ids.
const std::vector<PassKind>& kinds_of(std::int64_t stages, PipelineSchedule schedule) {
  static const std::vector<PassKind> whole{PassKind::whole};
  static const std::vector<PassKind> two{PassKind::forward, PassKind::backward};
  static const std::vector<PassKind> three{PassKind::forward, PassKind::input_gradient, PassKind::weight_gradient};
  if (stages == 1) return whole;
  return schedule == PipelineSchedule::zb_h1 ? three : two;
}

bool sends_forward(PassKind kind) {
  return kind == PassKind::forward;
}

bool sends_backward(PassKind kind) {
  return kind == PassKind::backward || kind == PassKind::input_gradient;
}

}  // namespace

std::string_view pass_kind_name(PassKind kind) {
  constexpr std::array<std::string_view, pass_kinds> names = {"whole", "forward", "backward", "input gradient",
                                                              "weight gradient"};
  return names.at(static_cast<std::size_t>(kind));
}

bool keeps_activations(PassKind kind) {
  return kind == PassKind::whole || kind == PassKind::forward;
}

bool goes_backward(PassKind kind) {
  return kind == PassKind::whole || kind == PassKind::backward || kind == PassKind::input_gradient;
}

bool releases_activations(PassKind kind) {
  return kind == PassKind::whole || kind == PassKind::backward || kind == PassKind::weight_gradient;
}

const std::vector<std::string>& pipeline_schedule_names() {
  static const std::vector<std::string> names{"1f1b", "gpipe", "interleaved", "zb-h1"};
  return names;
}

LayerRange layers_of_chunk(std::int64_t layers, std::int64_t chunks, std::int64_t chunk) {
  HDPSIM_CHECK(1 <= chunks && chunks <= layers, "{} layers in {} chunks", layers, chunks);
  const std::int64_t each = layers / chunks;
  const std::int64_t left_over = layers % chunks;
  return {chunk * each + std::min(chunk, left_over), each + (chunk < left_over ? 1 : 0)};
}

Pipeline::Pipeline(const Plan& plan, std::int64_t stages, const PipelineOptions& options)
    : plan_(plan),
      waves_(plan),
      stages_(stages),
      options_(options),
      kinds_(std::ssize(kinds_of(stages, options.schedule))),
      schedule_(plan.schedule.size() * static_cast<std::size_t>(stages)) {
  const bool interleaves = options.schedule == PipelineSchedule::interleaved && stages > 1;
  HDPSIM_CHECK(stages >= 1 && options.virtual_stages >= 1 && (options.virtual_stages == 1 || interleaves),
               "{} stages of {} chunks each", stages, options.virtual_stages);
  order_passes();
}

void Pipeline::order_passes() {
  if (stages_ == 1) {
    for (std::size_t rank = 0; rank < schedule_.size(); ++rank) {
      schedule_[rank].reserve(plan_.schedule[rank].size());
      for (const MicroBatchId id : plan_.schedule[rank]) schedule_[rank].emplace_back(id.index());
    }
    return;
  }
  const std::vector<std::int64_t> slots = Slots(plan_, waves_).run();
  std::vector<std::pair<std::int64_t, PassId>> keyed;
  for (std::size_t w = 0; w < schedule_.size(); ++w) {
    const std::int64_t stage = stage_of(WorkerId(w));
    const StageOrder order(stages_, stage, options_);
    keyed.clear();
    for (const MicroBatchId id : plan_.schedule[rank_of(WorkerId(w)).index()]) {
      for (std::int64_t turn = 0; turn < options_.virtual_stages; ++turn) {
        for (const PassKind kind : kinds_of(stages_, options_.schedule)) {
          const StagePass pass{id, turn * stages_ + stage, stage, kind};
          keyed.emplace_back(order.key(kind, slots[waves_.wave(id)], turn), id_of(pass));
        }
      }
    }
    std::sort(keyed.begin(), keyed.end());
    schedule_[w].reserve(keyed.size());
    for (const auto& entry : keyed) schedule_[w].push_back(entry.second);
  }
}

StagePass Pipeline::pass(PassId id) const {
  const auto within = static_cast<std::int64_t>(id.index() % passes_of_micro_batch());
  const std::int64_t chunk = within / kinds_;
  return {micro_batch_id(id), chunk, chunk % stages_,
          kinds_of(stages_, options_.schedule)[static_cast<std::size_t>(within % kinds_)]};
}

PassId Pipeline::id_of(const StagePass& pass) const {
  const auto& kinds = kinds_of(stages_, options_.schedule);
  const auto kind = std::find(kinds.begin(), kinds.end(), pass.kind) - kinds.begin();
  HDPSIM_CHECK(kind < kinds_, "the schedule has no passes of kind {}", static_cast<int>(pass.kind));
  return PassId(pass.micro_batch.index() * passes_of_micro_batch() +
                static_cast<std::size_t>(pass.chunk * kinds_ + kind));
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

// The pass of the same kind through another chunk.
PassId Pipeline::neighbour(PassId id, std::int64_t chunk) const {
  StagePass other = pass(id);
  other.chunk = chunk;
  return id_of(other);
}

std::optional<PassId> Pipeline::target(PassId id) const {
  const StagePass from = pass(id);
  if (sends_forward(from.kind) && from.chunk + 1 < chunks()) return neighbour(id, from.chunk + 1);
  if (sends_backward(from.kind) && from.chunk > 0) return neighbour(id, from.chunk - 1);
  return std::nullopt;
}

std::optional<PassId> Pipeline::source(PassId id) const {
  const StagePass to = pass(id);
  if (sends_forward(to.kind) && to.chunk > 0) return neighbour(id, to.chunk - 1);
  if (sends_backward(to.kind) && to.chunk + 1 < chunks()) return neighbour(id, to.chunk + 1);
  return std::nullopt;
}

namespace {

std::int64_t counted_in_flight(std::int64_t stages, std::int64_t stage, const PipelineOptions& options,
                               std::int64_t micro_batches) {
  const StageOrder order(stages, stage, options);
  std::vector<std::pair<std::int64_t, PassKind>> passes;
  for (std::int64_t slot = 0; slot < micro_batches; ++slot) {
    for (std::int64_t turn = 0; turn < options.virtual_stages; ++turn) {
      for (const PassKind kind : kinds_of(stages, options.schedule)) {
        passes.emplace_back(order.key(kind, slot, turn), kind);
      }
    }
  }
  std::sort(passes.begin(), passes.end());
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const auto& [key, kind] : passes) {
    if (keeps_activations(kind)) ++held;
    most = std::max(most, held);
    if (releases_activations(kind)) --held;
  }
  return most;
}

// A schedule that holds a bounded number of micro-batches has begun backward on every stage by then.
std::int64_t enough_micro_batches(std::int64_t stages) {
  return 4 * stages;
}

}  // namespace

std::int64_t most_chunks_in_flight(std::int64_t stages, std::int64_t stage, const PipelineOptions& options,
                                   std::int64_t micro_batches) {
  if (micro_batches > enough_micro_batches(stages)) {
    if (holds_all_micro_batches(stages, options)) return micro_batches * options.virtual_stages;
    micro_batches = enough_micro_batches(stages);
  }
  return counted_in_flight(stages, stage, options, micro_batches);
}

bool holds_all_micro_batches(std::int64_t stages, const PipelineOptions& options) {
  const std::int64_t enough = enough_micro_batches(stages);
  return stages > 1 &&
         counted_in_flight(stages, 0, options, 2 * enough) > counted_in_flight(stages, 0, options, enough);
}

}  // namespace hdpsim
