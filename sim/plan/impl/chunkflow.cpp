#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/base/division.h"
#include "sim/plan/impl/loads.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/ring_sizing.h"
#include "sim/plan/impl/shared_options.h"

namespace hdpsim {
namespace {

constexpr std::int64_t most_chunks = 65536;  // of a sequence

/// ChunkFlow (Yuan et al. 2025, arXiv 2503.02356): sequences of more than `chunk` tokens are cut into chunks of that
/// size, which one rank runs in order (MicroBatch::continues); the others are packed into as few micro-batches of that
/// size as bin packing finds. Of a sequence in chunks, the activations of the last `kept` stay from forward to
/// backward, and the others run forward twice.
///
/// The paper does not say how data-parallel ranks share a batch. Here packs and chunked sequences go to ranks by work,
/// largest first to the least load; every rank runs those with least work first, so that a pipeline fills while it has
/// short ones.
///
/// The chunks that keep their activations may offload them, as in SPPO (Chen et al. 2025, arXiv 2503.10377): all alike,
/// or each what its forward pass hides, since the first chunks see few keys and hide little.
class ChunkFlow final : public BuildingPlanner {
 public:
  ChunkFlow(const PlanningContext& context, std::int64_t chunk, std::int64_t kept, OffloadRule rule)
      : BuildingPlanner("chunkflow", context), chunk_(chunk), kept_(kept), rule_(rule) {}

 private:
  // O(n (log n + log ranks)).
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    const std::vector<SequencePack> units = units_of(batch);
    std::vector<std::size_t> order(units.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<double> loads(static_cast<std::size_t>(context_.ranks));
    const auto ranks = deal_to_least_loaded(order, loads, [&](std::size_t unit) { return units[unit].work; });
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (auto unit = ranks[rank].rbegin(); unit != ranks[rank].rend(); ++unit) {
        const SequencePack& pack = units[*unit];
        if (pack.tokens > chunk_) {
          builder.add_chunks(HdpRank(rank), pack.sequences.front(), chunk_, kept_,
                             [this](const MicroBatch& chunk) { return offload_of_chunk(chunk); });
        } else {
          builder.add({HdpRank(rank)}, pack.sequences);
        }
      }
    }
  }

  // What one rank runs in one go, packs of whole sequences and single sequences in chunks: most work first.
  [[nodiscard]] std::vector<SequencePack> units_of(const Batch& batch) const {
    std::vector<SequencePack> units;
    SequenceList whole;
    for (const std::size_t sequence : longest_first(batch)) {
      const std::int64_t tokens = batch.sequences[sequence].tokens;
      if (tokens > chunk_) {
        units.push_back({{sequence}, tokens, chunked_work(tokens)});
      } else {
        whole.push_back(sequence);
      }
    }
    for (SequencePack& pack : best_fit(batch, whole, chunk_)) {
      for (const std::size_t sequence : pack.sequences) {
        pack.work += work_of(context_.work, batch.sequences[sequence].tokens);
      }
      units.push_back(std::move(pack));
    }
    std::stable_sort(units.begin(), units.end(),
                     [](const SequencePack& a, const SequencePack& b) { return a.work > b.work; });
    return units;
  }

  [[nodiscard]] double offload_of_chunk(const MicroBatch& chunk) const {
    if (rule_.mode != OffloadRule::Mode::automatic) return rule_.ratio;
    if (context_.layers <= resident_layers) return 0;  // nothing can leave
    return hidden_offload(context_.work, chunk.area(), chunk.tokens());
  }

  // With the forward passes of the chunks that run twice: those of the tokens before the last `kept_` chunks.
  [[nodiscard]] double chunked_work(std::int64_t tokens) const {
    const std::int64_t chunks = divided(tokens, chunk_);
    const std::int64_t twice = std::max<std::int64_t>(0, chunks - kept_) * chunk_;
    return work_of(context_.work, tokens) + context_.work.forward_seconds(causal_pairs(twice), twice);
  }

  std::int64_t chunk_;
  std::int64_t kept_;
  OffloadRule rule_;
};

/// `chunkflow: {chunk_size: auto | N, kept_chunks: K, offload: none | auto | ratio}`.
struct ChunkFlowPolicy final : PolicyOptions {
  std::optional<std::int64_t> chunk_size;
  std::int64_t kept_chunks = 1;
  OffloadRule offload;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const PlanningContext& context = pool.context();
    pool.require_chunks_in_order(pool.where("chunk_size"));
    // 1F1B holds as many micro-batches as stages on its first stage, and the last chunks besides.
    const std::int64_t room = context.capacity * context.stages / (context.stages + kept_chunks - 1);
    const std::int64_t chunk = chunk_size.value_or(std::max<std::int64_t>(1, room));
    if (const std::int64_t chunks = divided(context.context, chunk); chunks > most_chunks) {
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
    return std::make_unique<ChunkFlow>(context, chunk, kept_chunks, pool.allowed(offload));
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
  add_offload(
      keys, {.splits_tokens = false, .automatic = "of each chunk that keeps them, what its forward pass hides (SPPO)"});
  return policy_kind("chunkflow",
                     "ChunkFlow: no context parallelism; every rank runs long sequences as chunks in order, which see "
                     "the keys of the chunks before them, and packs of short ones",
                     std::move(keys));
}

}  // namespace hdpsim
