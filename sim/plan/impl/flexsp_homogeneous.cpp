#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

// Packs are filled to this share of what a group holds (Hetu-Galvatron, homo_sp_baseline_ffd_bfd_globalbatch).
constexpr double fill = 0.9;
// From this degree on, the tokens of the last micro-batch are evened out if some of its groups had none.
constexpr std::int64_t evened_degree = 16;

/// FlexSP's baseline of one degree: best-fit decreasing, as many packs a micro-batch as there are groups.
class FlexSpHomogeneous final : public Planner {
 public:
  FlexSpHomogeneous(const PlanningContext& context, std::int64_t cp) : context_(context), cp_(cp) {}

  [[nodiscard]] bool may_refuse() const override { return false; }
  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("flexsp-homogeneous", context_, batch, step);
    std::vector<SequenceList> packs = packs_of(batch);
    const auto groups = static_cast<std::size_t>(context_.ranks / cp_);
    const std::size_t filled = packs.size();
    occupy_all(packs, groups);
    if (cp_ >= evened_degree && packs.size() > filled) even_out(batch, packs, packs.size() - groups);
    for (std::size_t i = 0; i < packs.size(); ++i) {
      if (packs[i].empty()) continue;  // it has passed its only sequence on
      builder.add_consecutive(i % groups * static_cast<std::size_t>(cp_), {cp_}, packs[i]);
    }
    return builder.take();
  }

 private:
  // Each pack with its sequences in the order of the data.
  [[nodiscard]] std::vector<SequenceList> packs_of(const Batch& batch) const {
    const SequenceList order = longest_first(batch);
    if (order.empty()) return {};
    const double filled = fill * static_cast<double>(context_.capacity) * static_cast<double>(cp_);
    const std::int64_t room = std::max(static_cast<std::int64_t>(filled), batch.sequences[order.front()].tokens);
    std::vector<SequenceList> packs = best_fit(batch, order, room);
    for (SequenceList& pack : packs) std::sort(pack.begin(), pack.end());
    return packs;
  }

  // Groups that have no pack in the last micro-batch get the first sequence of the last pack that has two.
  static void occupy_all(std::vector<SequenceList>& packs, std::size_t groups) {
    while (packs.size() % groups != 0) {
      const auto from =
          std::find_if(packs.rbegin(), packs.rend(), [](const SequenceList& pack) { return pack.size() > 1; });
      if (from == packs.rend()) return;
      const std::size_t moved = from->front();
      from->erase(from->begin());
      packs.push_back({moved});
    }
  }

  // Packs from `begin` on that have more tokens than the mean pass their first sequences on to later ones that have
  // fewer.
  static void even_out(const Batch& batch, std::vector<SequenceList>& packs, std::size_t begin) {
    const auto tokens_of = [&](const SequenceList& pack) {
      return std::accumulate(pack.begin(), pack.end(), std::int64_t{0},
                             [&](std::int64_t sum, std::size_t i) { return sum + batch.sequences[i].tokens; });
    };
    std::vector<std::int64_t> tokens(packs.size());
    for (std::size_t i = begin; i < packs.size(); ++i) tokens[i] = tokens_of(packs[i]);
    const double mean = static_cast<double>(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0})) /
                        static_cast<double>(packs.size() - begin);
    const auto is_below = [&](std::int64_t sum) { return static_cast<double>(sum) < mean; };
    for (std::size_t from = begin; from < packs.size(); ++from) {
      while (static_cast<double>(tokens[from]) > mean) {
        const auto later = tokens.begin() + static_cast<std::ptrdiff_t>(from) + 1;
        const auto to = static_cast<std::size_t>(std::find_if(later, tokens.end(), is_below) - tokens.begin());
        if (to == packs.size()) break;
        const std::size_t moved = packs[from].front();
        packs[from].erase(packs[from].begin());
        packs[to].insert(std::lower_bound(packs[to].begin(), packs[to].end(), moved), moved);
        tokens[from] -= batch.sequences[moved].tokens;
        tokens[to] += batch.sequences[moved].tokens;
      }
    }
  }

  PlanningContext context_;
  std::int64_t cp_;
};

/// `flexsp-homogeneous: {cp: auto | N}`.
struct HomogeneousPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    return std::make_unique<FlexSpHomogeneous>(pool.context(), pool.degree_of(cp));
  }
};

}  // namespace

PolicyKind flexsp_homogeneous_policy() {
  KeyTable<HomogeneousPolicy> keys("flexsp-homogeneous");
  add_cp(keys);
  return policy_kind(
      "flexsp-homogeneous",
      "FlexSP's baseline: groups of `cp` ranks, packs by best-fit decreasing up to 0.9 of what they hold",
      std::move(keys));
}

}  // namespace hdpsim
