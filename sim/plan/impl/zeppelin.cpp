#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/plan/impl/loads.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// The numbers of ranks that may share a sequence, ascending: one rank, a node, 2, 4, ... nodes and the pool. Each
/// divides the next.
std::vector<std::int64_t> widths_of(const PlanningContext& context) {
  std::vector<std::int64_t> widths{1};
  const auto widen = [&](std::int64_t width) {
    if (width > widths.back()) widths.push_back(width);
  };
  const std::int64_t node = std::gcd(context.ranks_per_node, context.ranks);
  for (std::int64_t width = node; context.ranks % width == 0; width *= 2) widen(width);
  widen(context.ranks);
  return widths;
}

/// Zeppelin (Chen et al. 2025, arXiv 2509.21841): every sequence has a zone, a rank, a node or several nodes, by where
/// the attention of its ranks still takes as long as the messages that it hides; each zone is divided by tokens, and a
/// rank runs the widest zone first. Its routing of messages over all NICs is mesh.ring_nics.
///
/// The paper's lengths at which zones begin, and how many nodes share a sequence, are not public: here they follow from
/// the planners' prices. Its other layout of tokens for linear layers is not modelled.
class Zeppelin final : public BuildingPlanner {
 public:
  explicit Zeppelin(const PlanningContext& context)
      : BuildingPlanner("zeppelin", context), widths_(widths_of(context)) {}

 private:
  // O(n (log n + log P) + P log P) for n sequences and P ranks.
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    const std::vector<SequenceList> zones = zones_of(batch);
    std::vector<double> loads{0};  // tokens of a rank, by run of the zone's width
    for (std::size_t zone = widths_.size(); zone-- > 0;) {
      const std::int64_t width = widths_[zone];
      loads = split(loads, context_.ranks / width);
      const auto runs = deal_to_least_loaded(zones[zone], loads, [&](std::size_t sequence) {
        return static_cast<double>(batch.sequences[sequence].tokens) / static_cast<double>(width);
      });
      for (std::size_t run = 0; run < runs.size(); ++run) {
        for (const SequencePack& pack : best_fit(batch, runs[run], width * context_.capacity)) {
          builder.add_consecutive(run * static_cast<std::size_t>(width), {width}, pack.sequences);
        }
      }
    }
  }

  // By width, its sequences, longest first.
  [[nodiscard]] std::vector<SequenceList> zones_of(const Batch& batch) const {
    std::vector<SequenceList> zones(widths_.size());
    for (const std::size_t sequence : longest_first(batch)) {
      zones[zone_of(batch.sequences[sequence].tokens)].push_back(sequence);
    }
    return zones;
  }

  // The widest zone whose messages are hidden, at least the narrowest that holds the sequence.
  [[nodiscard]] std::size_t zone_of(std::int64_t tokens) const {
    const auto holds = [&](std::int64_t width) { return (tokens - 1) / context_.capacity < width; };
    const auto narrowest =
        static_cast<std::size_t>(std::find_if(widths_.begin(), widths_.end(), holds) - widths_.begin());
    std::size_t zone = widths_.size() - 1;
    while (zone > narrowest && !hides_messages(tokens, widths_[zone])) --zone;
    return zone;
  }

  [[nodiscard]] bool hides_messages(std::int64_t tokens, std::int64_t width) const {
    const bool near = width <= context_.ranks_per_node;
    return context_.work.attention(causal_pairs(tokens), tokens, width) >= context_.work.transfer(tokens, width, near);
  }

  // The loads of `count` runs, of which equally many are parts of each run before.
  [[nodiscard]] static std::vector<double> split(const std::vector<double>& loads, std::int64_t count) {
    const std::size_t parts = static_cast<std::size_t>(count) / loads.size();
    std::vector<double> part_loads;
    part_loads.reserve(static_cast<std::size_t>(count));
    for (const double load : loads) part_loads.insert(part_loads.end(), parts, load);
    return part_loads;
  }

  std::vector<std::int64_t> widths_;
};

/// `zeppelin`.
struct ZeppelinPolicy final : PolicyOptions {
  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    pool.require_room();
    return std::make_unique<Zeppelin>(pool.context());
  }
};

}  // namespace

PolicyKind zeppelin_policy() {
  return policy_kind(
      "zeppelin",
      "Zeppelin's zones, as far as they are public: each sequence on a rank, a node or several nodes, the "
      "widest whose messages its attention hides, and each zone divided by tokens; with `mesh.ring_nics: "
      "all` its routing of messages",
      KeyTable<ZeppelinPolicy>("zeppelin"));
}

}  // namespace hdpsim
