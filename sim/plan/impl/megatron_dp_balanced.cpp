#include <fmt/format.h>

#include <optional>
#include <utility>

#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

struct DpBalancedOptions {
  std::int64_t cp = 1;                        ///< Ranks of a replica, which share each of its sequences.
  std::optional<std::int64_t> max_sequences;  ///< Of a pack.
  std::int64_t multiple = 1;                  ///< The number of micro-batches of a replica is a multiple of this.
  Position position;                          ///< Where a study asks for the policy.
};

/// Megatron-LM's packing on a static mesh (megatron/core/datasets/data_schedule.py, DpBalancedScheduler): next fit in
/// the order of the data; packs are split until all replicas get the same number.
class MegatronDpBalanced final : public Planner {
 public:
  MegatronDpBalanced(const PlanningContext& context, DpBalancedOptions options)
      : context_(context), options_(std::move(options)) {}

  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("megatron-dp-balanced", context_, batch, step);
    const std::int64_t room = context_.capacity * options_.cp;
    std::vector<SequenceList> packs = next_fit(batch, room, options_.max_sequences);
    const auto replicas = static_cast<std::size_t>(context_.ranks / options_.cp);
    split(packs, replicas * static_cast<std::size_t>(options_.multiple));
    for (std::size_t i = 0; i < packs.size(); ++i) {
      builder.add_consecutive(i % replicas * static_cast<std::size_t>(options_.cp), {options_.cp}, packs[i]);
    }
    return builder.take();
  }

 private:
  // Last sequences of packs become packs of their own, from the last pack backwards, until a multiple is reached.
  void split(std::vector<SequenceList>& packs, std::size_t multiple) const {
    const std::size_t made = packs.size();
    std::size_t from = made;
    while (packs.size() % multiple != 0) {
      while (from > 0 && packs[from - 1].size() < 2) --from;
      if (from == 0) refuse_splitting(made, multiple);
      const std::size_t last = packs[from - 1].back();
      packs[from - 1].pop_back();
      packs.push_back({last});
    }
  }

  [[noreturn]] void refuse_splitting(std::size_t packs, std::size_t multiple) const {
    throw InputError(options_.position,
                     fmt::format("megatron-dp-balanced makes {} packs, which it cannot split into a multiple of {}",
                                 packs, multiple),
                     "use larger batches, or fewer replicas (a larger 'cp')");
  }

  PlanningContext context_;
  DpBalancedOptions options_;
};

/// `megatron-dp-balanced: {cp: auto | N, max_sequences: N, micro_batches_divided_by: N}`.
struct DpBalancedPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_sequences;
  std::int64_t multiple = 1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    return std::make_unique<MegatronDpBalanced>(
        pool.context(), DpBalancedOptions{pool.degree_of(cp), max_sequences, multiple, pool.position()});
  }
};

}  // namespace

PolicyKind megatron_dp_balanced_policy() {
  KeyTable<DpBalancedPolicy> keys("megatron-dp-balanced");
  add_cp(keys);
  keys.count("max_sequences", {1, limits::most_tokens_of_sequence}, at(&DpBalancedPolicy::max_sequences),
             "the most sequences of a pack", {.unit = "sequences", .otherwise = "any number"});
  add_micro_batch_multiple(keys);
  return policy_kind(
      "megatron-dp-balanced",
      "Megatron-LM's dp_balanced: the static mesh with packs filled in the order of the data, split until "
      "replicas have as many",
      std::move(keys));
}

}  // namespace hdpsim
