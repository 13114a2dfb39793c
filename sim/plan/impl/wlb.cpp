#include <optional>
#include <set>
#include <utility>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// WLB-LLM's packing on a static mesh (Wang et al. 2025, arXiv 2503.17924, algorithm 1) without its delay of outliers:
/// micro-batches of unlike numbers of tokens and even work, as few as hold the batch.
class WlbLlm final : public Planner {
 public:
  WlbLlm(const PlanningContext& context, std::int64_t cp) : context_(context), cp_(cp) {}

  [[nodiscard]] bool may_refuse() const override { return false; }
  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("wlb", context_, batch, step);
    const SequenceList order = longest_first(batch);
    const std::size_t replicas = static_cast<std::size_t>(context_.ranks / cp_);
    const std::int64_t in_all = room() * static_cast<std::int64_t>(replicas);
    auto of_replica = static_cast<std::size_t>((batch.tokens() + in_all - 1) / in_all);
    std::optional<std::vector<SequenceList>> packs;
    while (!packs) packs = packed(batch, order, replicas * of_replica++);
    for (std::size_t i = 0; i < packs->size(); ++i) {
      if ((*packs)[i].empty()) continue;
      builder.add_consecutive(i % replicas * static_cast<std::size_t>(cp_), {cp_}, (*packs)[i]);
    }
    return builder.take();
  }

 private:
  struct Pack {
    SequenceList sequences;
    std::int64_t tokens = 0;
    double work = 0;
  };

  [[nodiscard]] std::int64_t room() const { return context_.capacity * cp_; }

  // Each sequence, longest first, goes to the pack of least work or, where it does not fit, to that of fewest tokens;
  // the first among equals. Empty if it does not fit there either. O(sequences log packs).
  [[nodiscard]] std::optional<std::vector<SequenceList>> packed(const Batch& batch, const SequenceList& order,
                                                                std::size_t count) const {
    std::vector<Pack> packs(count);
    std::set<std::pair<double, std::size_t>> by_work;
    std::set<std::pair<std::int64_t, std::size_t>> by_tokens;
    for (std::size_t i = 0; i < count; ++i) {
      by_work.emplace(0, i);
      by_tokens.emplace(0, i);
    }
    for (const std::size_t sequence : order) {
      const std::int64_t tokens = batch.sequences[sequence].tokens;
      const auto fits = [&](std::size_t pack) { return packs[pack].tokens + tokens <= room(); };
      std::size_t chosen = by_work.begin()->second;
      if (!fits(chosen)) chosen = by_tokens.begin()->second;
      if (!fits(chosen)) return std::nullopt;
      Pack& pack = packs[chosen];
      by_work.erase({pack.work, chosen});
      by_tokens.erase({pack.tokens, chosen});
      pack.sequences.push_back(sequence);
      pack.tokens += tokens;
      pack.work += context_.work.compute_seconds(causal_pairs(tokens), tokens);
      by_work.emplace(pack.work, chosen);
      by_tokens.emplace(pack.tokens, chosen);
    }
    std::vector<SequenceList> lists;
    lists.reserve(packs.size());
    for (Pack& pack : packs) lists.push_back(std::move(pack.sequences));
    return lists;
  }

  PlanningContext context_;
  std::int64_t cp_;
};

/// `wlb: {cp: auto | N}`.
struct WlbPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    return std::make_unique<WlbLlm>(pool.context(), pool.degree_of(cp));
  }
};

}  // namespace

PolicyKind wlb_policy() {
  KeyTable<WlbPolicy> keys("wlb");
  add_cp(keys);
  return policy_kind("wlb",
                     "WLB-LLM's packing on a static mesh: micro-batches of even work, whatever their tokens, longest "
                     "sequence first",
                     std::move(keys));
}

}  // namespace hdpsim
