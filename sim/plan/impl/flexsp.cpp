#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/plan/impl/flexsp_groups.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

// Numbers of micro-batches that are tried, from the least one on (flexsp_solver/solver.py).
constexpr std::size_t tried_counts = 5;

/// FlexSP (Wang et al. 2025, arXiv 2412.01523; Hetu-Galvatron, branch flexsp): the batch, longest first, is cut into
/// micro-batches of even tokens; in each the pool is divided into groups of unlike degrees that end together.
class FlexSp final : public BuildingPlanner {
 public:
  FlexSp(const PlanningContext& context, std::int64_t least_degree)
      : BuildingPlanner("flexsp", context), pool_{context.ranks, context.capacity, least_degree} {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    if (batch.sequences.empty()) return;
    for (const Slot& slot : slots_of(batch)) add_packed(builder, slot);
  }

  [[nodiscard]] std::vector<Slot> slots_of(const Batch& batch) const {
    const SequenceList order = longest_first(batch);
    const GroupPrices prices(batch, pool_, group_times(context_.work, context_.ranks_per_node));
    std::vector<Slot> best;
    double earliest = 0;
    std::size_t tried = 0;
    for (std::size_t count = least_count(batch); count <= order.size(); ++count) {
      const std::vector<SequenceList> runs = even_runs(batch, order, count);
      if (tried == 0 && !have_room(batch, runs)) continue;
      std::vector<Slot> slots = slots_of_runs(batch, runs, prices);
      double end = 0;
      for (const Slot& slot : slots) end += largest_load(slot);
      if (!slots.empty() && (best.empty() || end < earliest)) {
        earliest = end;
        best = std::move(slots);
      }
      if (++tried >= tried_counts && !best.empty()) break;
    }
    HDPSIM_CHECK(!best.empty(), "no groups for {} sequences, one a micro-batch", order.size());
    return best;
  }

  [[nodiscard]] std::int64_t room() const { return context_.capacity * context_.ranks; }
  [[nodiscard]] std::size_t least_count(const Batch& batch) const {
    return static_cast<std::size_t>(divided(batch.tokens(), room()));
  }

  // Every run must leave room, if only for one token, unless it is a sequence that fills the pool, of which FlexSP
  // makes no plan.
  [[nodiscard]] bool have_room(const Batch& batch, const std::vector<SequenceList>& runs) const {
    return std::all_of(runs.begin(), runs.end(),
                       [&](const SequenceList& run) { return run.size() == 1 || tokens_of(batch, run) < room(); });
  }

  // The groups of every run; empty if a run has none.
  [[nodiscard]] std::vector<Slot> slots_of_runs(const Batch& batch, const std::vector<SequenceList>& runs,
                                                const GroupPrices& prices) const {
    std::vector<Slot> slots;
    for (const SequenceList& run : runs) {
      std::optional<Slot> slot = early_groups(batch, run, pool_, prices);
      if (!slot) return {};
      slots.push_back(std::move(*slot));
    }
    return slots;
  }

  GroupPool pool_;
};

/// `flexsp: {min_cp: N}`.
struct FlexSpPolicy final : PolicyOptions {
  std::int64_t min_cp = 2;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    pool.require_room();
    const std::int64_t ranks = pool.context().ranks;
    if (!std::has_single_bit(static_cast<std::uint64_t>(ranks))) {
      pool.error(pool.where("flexsp"), fmt::format("flexsp divides a power of two of ranks, the pool has {}", ranks),
                 "use a mesh with a power of two of replicas");
    }
    return std::make_unique<FlexSp>(pool.context(), pool.least_group(min_cp));
  }
};

}  // namespace

PolicyKind flexsp_policy() {
  KeyTable<FlexSpPolicy> keys("flexsp");
  add_min_cp(keys);
  PolicyKind kind =
      policy_kind("flexsp",
                  "FlexSP: micro-batches of even tokens, in each of which the pool is divided into groups of unlike "
                  "powers of two of ranks that end together",
                  std::move(keys));
  kind.takes_long = true;
  return kind;
}

}  // namespace hdpsim
