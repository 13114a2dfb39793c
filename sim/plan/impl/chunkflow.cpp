#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

constexpr std::int64_t most_chunks = 65536;  // of a sequence

/// What one rank runs in one go: a pack of whole sequences, or one sequence in chunks.
struct Unit {
  SequenceList sequences;
  double work = 0;
  bool is_chunked = false;
};

/// ChunkFlow (Yuan et al. 2025, arXiv 2503.02356): sequences of more than `chunk` tokens are cut into chunks of that
/// size, which one rank runs in order (MicroBatch::continues); the others are packed into as few micro-batches of that
/// size as bin packing finds. Of a sequence in chunks, the activations of the last `kept` stay from forward to
/// backward, and the others run forward twice.
///
/// The paper does not say how data-parallel ranks share a batch. Here packs and chunked sequences go to ranks by work,
/// largest first to the least load; every rank runs those with least work first, so that a pipeline fills while it has
/// short ones.
class ChunkFlow final : public Planner {
 public:
  ChunkFlow(const PlanningContext& context, std::int64_t chunk, std::int64_t kept)
      : context_(context), chunk_(chunk), kept_(kept) {}

  [[nodiscard]] bool may_refuse() const override { return false; }
  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("chunkflow", context_, batch, step);
    const std::vector<std::vector<Unit>> ranks = dealt(units_of(batch));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (auto unit = ranks[rank].rbegin(); unit != ranks[rank].rend(); ++unit) {
        if (unit->is_chunked) {
          builder.add_chunks(HdpRank(rank), unit->sequences.front(), chunk_, kept_);
        } else {
          builder.add({HdpRank(rank)}, unit->sequences);
        }
      }
    }
    return builder.take();
  }

 private:
  // Most work first. O(n log n).
  [[nodiscard]] std::vector<Unit> units_of(const Batch& batch) const {
    std::vector<Unit> units;
    SequenceList whole;
    for (const std::size_t sequence : longest_first(batch)) {
      if (batch.sequences[sequence].tokens > chunk_) {
        units.push_back({{sequence}, chunked_work(batch.sequences[sequence].tokens), true});
      } else {
        whole.push_back(sequence);
      }
    }
    for (SequenceList& pack : best_fit(batch, whole, chunk_)) {
      double work = 0;
      for (const std::size_t sequence : pack) work += work_of(batch.sequences[sequence].tokens);
      units.push_back({std::move(pack), work});
    }
    std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.work > b.work; });
    return units;
  }

  [[nodiscard]] double work_of(std::int64_t tokens) const {
    return context_.work.compute_seconds(causal_pairs(tokens), tokens);
  }

  // With the forward passes of the chunks that run twice: those of the tokens before the last `kept_` chunks.
  [[nodiscard]] double chunked_work(std::int64_t tokens) const {
    const std::int64_t chunks = (tokens + chunk_ - 1) / chunk_;
    const std::int64_t twice = std::max<std::int64_t>(0, chunks - kept_) * chunk_;
    return work_of(tokens) + context_.work.forward_seconds(causal_pairs(twice), twice);
  }

  // O(n log ranks).
  [[nodiscard]] std::vector<std::vector<Unit>> dealt(std::vector<Unit> most_work_first) const {
    std::vector<std::vector<Unit>> ranks(static_cast<std::size_t>(context_.ranks));
    std::vector<std::pair<double, std::size_t>> loads;  // a heap, least load first
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) loads.emplace_back(0, rank);
    for (Unit& unit : most_work_first) {
      std::pop_heap(loads.begin(), loads.end(), std::greater<>());
      auto& [load, rank] = loads.back();
      load += unit.work;
      ranks[rank].push_back(std::move(unit));
      std::push_heap(loads.begin(), loads.end(), std::greater<>());
    }
    return ranks;
  }

  PlanningContext context_;
  std::int64_t chunk_;
  std::int64_t kept_;
};

/// `chunkflow: {chunk_size: auto | N, kept_chunks: K}`.
struct ChunkFlowPolicy final : PolicyOptions {
  std::optional<std::int64_t> chunk_size;
  std::int64_t kept_chunks = 1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const PlanningContext& context = pool.context();
    pool.require_chunks_in_order(pool.where("chunk_size"));
    // 1F1B holds as many micro-batches as stages on its first stage, and the last chunks besides.
    const std::int64_t room = context.capacity * context.stages / (context.stages + kept_chunks - 1);
    const std::int64_t chunk = chunk_size.value_or(std::max<std::int64_t>(1, room));
    if (const std::int64_t chunks = (context.context - 1) / chunk + 1; chunks > most_chunks) {
      pool.error(pool.where(chunk_size ? "chunk_size" : "kept_chunks"),
                 fmt::format("a context of {} tokens in chunks of {}: more than {} chunks", context.context, chunk,
                             most_chunks),
                 "write larger chunks, or keep fewer of them");
    }
    if (chunk > context.capacity) {
      pool.error(pool.where("chunk_size"),
                 fmt::format("'chunk_size' is {}, a rank holds {} tokens", chunk, context.capacity),
                 "write at most the capacity");
    }
    return std::make_unique<ChunkFlow>(context, chunk, kept_chunks);
  }
};

}  // namespace

PolicyKind chunkflow_policy() {
  KeyTable<ChunkFlowPolicy> keys("chunkflow");
  keys.count("chunk_size", {1, limits::most_tokens_of_sequence}, at(&ChunkFlowPolicy::chunk_size),
             "tokens of a chunk; longer sequences are cut into chunks, shorter ones are packed",
             {.unit = "tokens", .otherwise = "what fits with the chunks that are kept"});
  keys.count("kept_chunks", {1, most_chunks}, at(&ChunkFlowPolicy::kept_chunks),
             "the chunks of a sequence whose activations stay until backward; those before them run forward twice",
             {.unit = "chunks"});
  return policy_kind("chunkflow",
                     "ChunkFlow: no context parallelism; every rank runs long sequences as chunks in order, which see "
                     "the keys of the chunks before them, and packs of short ones",
                     std::move(keys));
}

}  // namespace hdpsim
