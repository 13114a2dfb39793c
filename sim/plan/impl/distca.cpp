#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/division.h"
#include "sim/plan/impl/attention_servers.h"
#include "sim/plan/impl/loads.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// DistCA (Zhuang et al. 2025, arXiv 2510.18121), core attention disaggregation: whole documents are packed, ranks hold
/// equal numbers of their tokens, whatever the documents, and attend for each other so that attention is equal, too.
///
/// The paper does not say which documents share a micro-batch. Here they are dealt to as few as hold them, longest
/// first to the one with fewest tokens, and within it in the same way to its halves. Micro-batches go to groups in
/// turn.
class DistCa final : public BuildingPlanner {
 public:
  DistCa(const PlanningContext& context, const ServerRules& rules)
      : BuildingPlanner("distca", context), rules_(rules) {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    std::int64_t next = 0;
    for (const SequenceList& pack : packs_of(batch)) {
      if (pack.empty()) continue;
      std::vector<std::int64_t> lengths;
      const SequenceList order = in_halves(batch, pack);
      for (const std::size_t sequence : order) lengths.push_back(batch.sequences[sequence].tokens);
      const auto first_rank = static_cast<std::size_t>(next++ % groups() * rules_.ranks);
      builder.add_served(first_rank, rules_.ranks, order, queries_to_move(lengths, rules_));
    }
  }

  [[nodiscard]] std::int64_t groups() const { return context_.ranks / rules_.ranks; }

  [[nodiscard]] std::vector<SequenceList> packs_of(const Batch& batch) const {
    const SequenceList sorted = longest_first(batch);
    const std::int64_t all = std::max<std::int64_t>(1, batch.tokens());
    // A group of any capacity needs no more room than for all.
    const std::int64_t room = context_.capacity > all / rules_.ranks ? all : context_.capacity * rules_.ranks;
    std::int64_t count = rounded_up(divided(all, room), groups());
    while (true) {
      std::vector<double> tokens(static_cast<std::size_t>(count));
      std::vector<SequenceList> packs = dealt(batch, sorted, tokens);
      if (*std::max_element(tokens.begin(), tokens.end()) <= static_cast<double>(room)) return packs;
      count = rounded_up(count + count / 8 + 1, groups());
    }
  }

  // To the pack with fewest tokens.
  [[nodiscard]] static std::vector<SequenceList> dealt(const Batch& batch, const SequenceList& longest_first,
                                                       std::vector<double>& tokens) {
    return deal_to_least_loaded(longest_first, tokens, [&](std::size_t sequence) {
      return static_cast<double>(batch.sequences[sequence].tokens);
    });
  }

  [[nodiscard]] static SequenceList in_halves(const Batch& batch, const SequenceList& pack) {
    std::vector<double> tokens(2);
    std::vector<SequenceList> halves = dealt(batch, pack, tokens);
    halves[0].insert(halves[0].end(), halves[1].begin(), halves[1].end());
    return std::move(halves[0]);
  }

  ServerRules rules_;
};

/// `distca: {servers: N, tolerance: 0.1}`.
struct DistCaPolicy final : PolicyOptions {
  std::optional<std::int64_t> servers;
  double tolerance = 0.1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const PlanningContext& context = pool.context();
    const Value& where = pool.where("servers");
    pool.require_servers(where);
    if (!servers) pool.require_room();
    const std::int64_t ranks = servers.value_or(context.ranks);
    if (ranks > context.ranks || context.ranks % ranks != 0) {
      pool.error(where,
                 fmt::format("'servers' is {}, which does not divide the pool of {} ranks", ranks, context.ranks),
                 "leave it out, or write a number that does");
    } else if (servers && (context.context - 1) / context.capacity >= ranks) {
      pool.error(where,
                 fmt::format("a context of {} tokens does not fit on {} ranks with {} tokens each", context.context,
                             ranks, context.capacity),
                 "use more ranks, a larger capacity or a shorter context");
    }
    return std::make_unique<DistCa>(
        context, ServerRules{ranks, context.served_bytes.of_query, context.served_bytes.of_key, tolerance});
  }
};

}  // namespace

PolicyKind distca_policy() {
  KeyTable<DistCaPolicy> keys("distca");
  keys.count("servers", {1, limits::most_tokens_of_sequence}, at(&DistCaPolicy::servers),
             "consecutive ranks that attend for each other", {.unit = "ranks", .otherwise = "all ranks of the pool"});
  keys.number("tolerance", {0, 1}, at(&DistCaPolicy::tolerance),
              "share by which a rank may attend to more (query, key) pairs than the mean rank");
  return policy_kind(
      "distca",
      "DistCA: ranks hold equal numbers of tokens of packed documents and attend for each other, so that "
      "attention is equal, too; the messages of one half of a micro-batch overlap with the other half's kernels",
      std::move(keys));
}

}  // namespace hdpsim
