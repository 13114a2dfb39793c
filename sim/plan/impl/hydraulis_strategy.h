#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/impl/plan_builder.h"

namespace hdpsim {

/// A kind of pipeline, as Hydraulis knows it (arXiv 2412.07894; PKU-DAIR/Hetu, examples/hydraulis/strategy). Pipelines
/// of one strategy may differ in all of it: what their tensor, context and pipeline parallelism are worth shows in how
/// fast they are and what they hold.
struct PipelineKind {
  std::int64_t stages = 1;         ///< pp
  std::int64_t room = 1;           ///< The most tokens of a micro-batch, of all its ranks together.
  std::int64_t fewest_tokens = 1;  ///< Tokens of a mean micro-batch below which kernels do not fill the devices.
  double per_micro_batch = 0;      ///< c: fixed seconds of a micro-batch on a stage.
  /// Seconds of a sequence on a stage, a s^2 + b s in Hydraulis' fits. Must not fall with the tokens.
  std::function<double(std::int64_t tokens)> sequence_seconds{};

  /// What stage 1 takes a pipeline to cost: the sum of its sequences, and the longest one in every other stage.
  [[nodiscard]] double dispatched(double sum, double longest) const {
    return sum + static_cast<double>(stages - 1) * longest;
  }
  /// What stage 2 takes it to cost: so many micro-batches, each as long as the costliest one, fill and drain it.
  [[nodiscard]] double seconds(double costliest, std::size_t micro_batches) const {
    return (costliest + per_micro_batch) * turns(micro_batches);
  }
  [[nodiscard]] double turns(std::size_t micro_batches) const {
    return static_cast<double>(stages - 1) + static_cast<double>(micro_batches);
  }
};

/// The pipelines of a strategy, by their kinds.
using Strategy = std::vector<std::size_t>;

/// The work of one pipeline in a step.
struct PipelineWork {
  double seconds = 0;                       ///< PipelineKind::seconds(); 0 without sequences.
  std::vector<SequenceList> micro_batches;  ///< None is empty.
};

/// What every pipeline of a strategy does in a step.
struct StrategyWork {
  double dispatch = 0;                  ///< The largest PipelineKind::dispatched(): stage 1's objective.
  double seconds = 0;                   ///< The largest PipelineWork::seconds: stage 2's objective.
  std::vector<PipelineWork> pipelines;  ///< In the order of the strategy.
};

/// Divides the sequences of a batch among the pipelines of a strategy (stage 1), and those of a pipeline among
/// micro-batches (stage 2). The objectives are Hydraulis'; its searches, 100 shuffles and a solver with half a second,
/// are replaced by longest first and by exchanges (bin_exchange.h), which end after a stated number of them, on every
/// machine alike. A pipeline that gets no sequence idles, where Hydraulis gives the strategy up.
class StrategySearch {
 public:
  /// Counts of micro-batches that stage 2 tries, from the least that may hold the sequences on.
  static constexpr std::size_t tried_counts = 16;

  /// Takes n K prices for n sequences and K kinds.
  StrategySearch(std::vector<std::int64_t> lengths, std::vector<PipelineKind> kinds);

  /// Whether one of its pipelines holds the longest sequence.
  [[nodiscard]] bool usable(const Strategy& strategy) const;
  /// The work of a usable strategy (checked), as Hydraulis finds it: stage 1 alone says which pipeline a sequence goes
  /// to. Without a budget these are the first answers of both stages, in O(n (K log P + 16 log m)) for P pipelines and
  /// m micro-batches of one. `budget`: exchanges that may be looked at to lower the objective of either stage, each
  /// in O(log n). A quarter as many steps may go into dispatching in random orders.
  [[nodiscard]] StrategyWork two_stages(const Strategy& strategy, std::int64_t budget) const;
  /// The same for stage 2's objective alone, which also says where a sequence goes: sequences are dispatched also by
  /// what stage 2 can make of them, and then exchanged between the micro-batches of all pipelines as long as that lets
  /// the last pipeline end earlier.
  [[nodiscard]] StrategyWork joint(const Strategy& strategy, std::int64_t budget) const;
  /// Stage 2 alone, for the sequences of one pipeline, each of which it holds (checked).
  [[nodiscard]] PipelineWork micro_batches(std::size_t kind, const SequenceList& sequences, std::int64_t budget) const;

 private:
  struct Packed {
    double seconds = 0;
    std::vector<Bin> bins;
  };
  // What a pipeline with sequences of this sum, tokens and longest one is worth.
  using PipelineWorth = double (*)(const PipelineKind& kind, double sum, std::int64_t tokens, double longest);

  [[nodiscard]] std::vector<Bin> idle_pipelines(const Strategy& strategy) const;
  [[nodiscard]] std::vector<Bin> longest_first_dispatch(const Strategy& strategy, PipelineWorth worth) const;
  [[nodiscard]] std::vector<Bin> shuffled_dispatch(const Strategy& strategy, int shuffles) const;
  [[nodiscard]] std::vector<Bin> dispatch_in_order(const Strategy& strategy,
                                                   const std::vector<std::size_t>& items) const;
  [[nodiscard]] std::vector<std::vector<Bin>> dispatches(const Strategy& strategy, std::int64_t budget) const;
  [[nodiscard]] Packed packed(std::size_t kind, const std::vector<std::size_t>& items, int restarts,
                              std::int64_t& budget) const;
  [[nodiscard]] std::vector<Bin> evenly_filled(const Bin& empty, std::size_t count,
                                               const std::vector<std::size_t>& items, int restarts,
                                               std::int64_t& budget) const;
  [[nodiscard]] std::vector<Packed> packed_pipelines(const Strategy& strategy, const std::vector<Bin>& dispatched,
                                                     int restarts, std::int64_t& budget) const;
  [[nodiscard]] std::vector<Packed> exchanged(const Strategy& strategy, const std::vector<Packed>& pipelines,
                                              std::int64_t& budget) const;
  [[nodiscard]] static double end_of(const std::vector<Packed>& pipelines);
  [[nodiscard]] double pipeline_seconds(std::size_t kind, const std::vector<Bin>& bins) const;
  [[nodiscard]] PipelineWork work_of(const Packed& packed) const;
  [[nodiscard]] StrategyWork work_of(const std::vector<Packed>& pipelines, double dispatch) const;

  std::vector<PipelineKind> kinds_;
  SequenceList order_;  // the sequence of every item
  ItemCosts costs_;
  ItemCosts tokens_as_costs_;  // with one kind
};

/// The degrees of context parallelism of the pipelines of a strategy, in falling order; they sum up to the pool.
using PipelineDegrees = std::vector<std::int64_t>;

/// The strategies that `hydraulis` tries where a study states none, of pipelines of powers of two of ranks that divide
/// the pool and, so that one of them holds the context, of `holding` ranks (a divisor of the pool):
/// - pipelines that are all alike, of every such degree;
/// - one pipeline of `holding` ranks, or as many as half of the pool has, and pipelines of one lesser degree;
/// - steps: of every degree up to `holding`, and then of every lesser one, as many as half of the ranks that are left
///   have, at least one, and of the least degree all others.
/// No strategy comes twice. About log2(ranks) + 3 log2(holding) of them.
[[nodiscard]] std::vector<PipelineDegrees> usual_strategies(std::int64_t ranks, std::int64_t holding);

}  // namespace hdpsim
