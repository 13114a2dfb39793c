// Policies that are a static mesh with a way to pack: static, megatron-dp-balanced, flexsp-homogeneous.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "sim/base/text.h"
#include "sim/plan/impl/packers.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

using Packs = std::vector<SequencePack>;

class StaticMesh final : public BuildingPlanner {
 public:
  /// `pack` makes the packs of a batch, in the order in which they go to the groups of `cp` ranks.
  StaticMesh(std::string policy, const PlanningContext& context, std::int64_t cp,
             std::function<Packs(const Batch&)> pack, const OffloadRule& offload = {}, bool may_refuse = false)
      : BuildingPlanner(std::move(policy), context, may_refuse),
        cp_(cp),
        pack_(std::move(pack)),
        sizing_(context, offload) {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    builder.add_in_turn(pack_(batch), cp_, sizing_);
  }

  std::int64_t cp_;
  std::function<Packs(const Batch&)> pack_;
  RingSizing sizing_;
};

/// `static` with best fit, up to the context.
class BestFitMesh final : public BuildingPlanner {
 public:
  BestFitMesh(const PlanningContext& context, const StaticOptions& options)
      : BuildingPlanner("static", context), options_(options), sizing_(context, options.offload) {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    const PackList packs = best_fit_list(sized_longest_first(batch), context_.context, options_.order);
    builder.add_in_turn(packs, options_.cp, sizing_);
  }

  StaticOptions options_;
  RingSizing sizing_;
};

/// `static: {cp: auto | N, packing: WORD, order: data | descending, max_sequences: N, group: N, window: N}`.
struct StaticPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;  ///< Ranks of a group; if empty, the smallest number that holds the context.
  const Packer* packing = &packers().front();
  DealOrder order = DealOrder::data;
  PackBounds bounds;  ///< As stated.

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const PlanningContext& context = pool.context();
    const std::int64_t degree = pool.degree_of(cp);
    PackRules rules{context.context, context.ranks / degree, degree, packing->defaults};
    for (const PackBound& option : pack_bounds()) put(option, pool, rules.bounds);
    if (packing->pack == nullptr) return make_static(context, {.cp = degree, .order = order});
    if (order == DealOrder::descending) {
      pool.error(pool.where("order"),
                 fmt::format("'order' is descending, but {} has an order of packs of its own", packing->name),
                 "remove 'order', or write packing: best_fit");
    }
    const auto pack = [packer = packing, rules](const Batch& batch) { return packer->pack(batch, rules); };
    return std::make_unique<StaticMesh>("static", context, degree, pack);
  }

 private:
  void put(const PackBound& option, PoolFit& pool, PackBounds& used) const {
    const std::optional<std::int64_t>& stated = bounds.*option.bound;
    if (!stated) return;
    used.*option.bound = stated;
    if (packing->has(option.name)) return;
    pool.error(pool.where(option.name),
               fmt::format("'{}' is {}, but packing: {} has no such option", option.name, *stated, packing->name),
               fmt::format("remove it, or pack as one of {}", joined(packers_with(option.name), ", ")));
  }

  static std::vector<std::string> packers_with(std::string_view option) {
    std::vector<std::string> names;
    for (const Packer& packer : packers()) {
      if (packer.has(option)) names.push_back(packer.name);
    }
    return names;
  }
};

// The numbers of packs from the last one back to `first`.
std::vector<std::size_t> backwards(const Packs& packs, std::size_t first) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = packs.size(); i > first; --i) numbers.push_back(i - 1);
  return numbers;
}

/// Whose DpBalancedScheduler.
enum class DpBalancedRelease : std::uint8_t {
  dev,   ///< That of the branch dev at d48bd6be.
  main,  ///< That of main at d98e8a64 (pull request 6684): the first pack is never split, and packs have no most
         ///< sequences.
};

/// `megatron-dp-balanced: {cp: auto | N, max_sequences: N, micro_batches_divided_by: N, release: dev | main}`:
/// Megatron-LM's packing on a static mesh (megatron/core/datasets/data_schedule.py, DpBalancedScheduler): next fit in
/// the order of the data; packs are split until all replicas get the same number.
struct DpBalancedPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;             ///< Ranks of a replica, which share each of its sequences.
  std::optional<std::int64_t> max_sequences;  ///< Of a pack.
  std::int64_t multiple = 1;                  ///< The number of micro-batches of a replica is a multiple of this.
  DpBalancedRelease release = DpBalancedRelease::dev;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const PlanningContext& context = pool.context();
    const std::int64_t degree = pool.degree_of(cp);
    const bool is_main = release == DpBalancedRelease::main;
    if (is_main && max_sequences) {
      pool.error(pool.where("max_sequences"),
                 fmt::format("'max_sequences' is {}, which Megatron-LM's main does not have", *max_sequences),
                 "remove it, or write release: dev");
    }
    const auto pack = [room = context.capacity * degree, most = max_sequences, position = pool.position(),
                       whole = std::size_t{is_main ? 1U : 0U},
                       multiple_of_all =
                           static_cast<std::size_t>(context.ranks / degree * multiple)](const Batch& batch) {
      Packs packs = next_fit(batch, in_data_order(batch), room, most);
      const std::size_t made = packs.size();
      split_off(packs, backwards(packs, whole), multiple_of_all, batch);
      if (packs.size() % multiple_of_all == 0) return packs;
      throw InputError(position,
                       fmt::format("megatron-dp-balanced makes {} packs, which it cannot split into a multiple of {}",
                                   made, multiple_of_all),
                       "use larger batches, or fewer replicas (a larger 'cp')");
    };
    return std::make_unique<StaticMesh>("megatron-dp-balanced", context, degree, pack, OffloadRule{}, true);
  }
};

/// `flexsp-homogeneous: {cp: auto | N}`: FlexSP's baseline of one degree: best-fit decreasing, as many packs a
/// micro-batch as there are groups (Hetu-Galvatron, homo_sp_baseline_ffd_bfd_globalbatch).
struct HomogeneousPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const PlanningContext& context = pool.context();
    const std::int64_t degree = pool.degree_of(cp);
    const auto pack = [degree, ranks = context.ranks, capacity = context.capacity](const Batch& batch) {
      constexpr double fill = 0.9;  // of what a group holds
      const auto room = static_cast<std::int64_t>(fill * static_cast<double>(capacity) * static_cast<double>(degree));
      return packs_of(batch, room, degree, static_cast<std::size_t>(ranks / degree));
    };
    return std::make_unique<StaticMesh>("flexsp-homogeneous", context, degree, pack);
  }

 private:
  static Packs packs_of(const Batch& batch, std::int64_t filled, std::int64_t degree, std::size_t groups) {
    // From this degree on, the tokens of the last micro-batch are evened out if some of its groups had none.
    constexpr std::int64_t evened_degree = 16;
    const SequenceList order = longest_first(batch);
    if (order.empty()) return {};
    const std::int64_t room = std::max(filled, batch.sequences[order.front()].tokens);
    Packs packs = best_fit(batch, order, room);
    for (SequencePack& pack : packs)
      std::sort(pack.sequences.begin(), pack.sequences.end());  // in the order of the data
    const std::size_t made = packs.size();
    // Groups that have no pack in the last micro-batch get sequences of others. If those are too few, some groups stay
    // idle. (The original fails here.)
    split_off(packs, backwards(packs, 0), groups, batch, Given::first);
    if (degree >= evened_degree && packs.size() > made && packs.size() % groups == 0) {
      even_out(batch, room, std::span(packs).last(groups));
    }
    return packs;
  }

  // A pack that has fewer tokens than the mean gets sequences of those before it that have more, in their order: never
  // the only one of a pack, and none for which it has no room. (The original fails where it has room for none of them.)
  static void even_out(const Batch& batch, std::int64_t room, std::span<SequencePack> packs) {
    std::int64_t mean = 0;
    for (const SequencePack& pack : packs) mean += pack.tokens;
    mean /= std::ssize(packs);
    for (std::size_t i = 1; i < packs.size(); ++i) {
      SequencePack& to = packs[i];
      for (SequencePack& from : packs.first(i)) {
        if (to.tokens < mean) move_some(from, to, mean, room, batch);
      }
      std::sort(to.sequences.begin(), to.sequences.end());
    }
  }

  static void move_some(SequencePack& from, SequencePack& to, std::int64_t mean, std::int64_t room,
                        const Batch& batch) {
    SequenceList kept;
    for (std::size_t left = from.sequences.size(); const std::size_t sequence : from.sequences) {
      const std::int64_t tokens = batch.sequences[sequence].tokens;
      if (to.tokens < mean && from.tokens > mean && left > 1 && to.tokens + tokens <= room) {
        to.add(sequence, tokens);
        from.tokens -= tokens;
        --left;
      } else {
        kept.push_back(sequence);
      }
    }
    from.sequences = std::move(kept);
  }
};

}  // namespace

std::unique_ptr<Planner> make_static(const PlanningContext& context, const StaticOptions& options) {
  return std::make_unique<BestFitMesh>(context, options);
}

std::unique_ptr<Planner> make_mesh_of_packs(std::string policy, const PlanningContext& context, std::int64_t cp,
                                            std::function<Packs(const Batch&)> pack) {
  return std::make_unique<StaticMesh>(std::move(policy), context, cp, std::move(pack), OffloadRule{}, true);
}

std::unique_ptr<Planner> make_uniform(PoolFit& pool, const OffloadRule& offload) {
  return make_static(pool.context(), {.cp = pool.least_degree_that_fits("groups", offload), .offload = offload});
}

PolicyKind static_policy() {
  KeyTable<StaticPolicy> keys("static");
  add_cp(keys);
  std::vector<std::pair<std::string, const Packer*>> words;
  std::vector<std::string> meanings;
  for (const Packer& packer : packers()) {
    words.emplace_back(packer.name, &packer);
    meanings.push_back(fmt::format("`{}`: {}", packer.name, packer.meaning));
  }
  keys.word("packing", "way to pack", words, at(&StaticPolicy::packing),
            fmt::format("how packs are filled. {}", joined(meanings, "; ")));
  add_order(keys);
  for (const PackBound& option : pack_bounds()) {
    std::vector<std::string> defaults;
    for (const Packer& packer : packers()) {
      if (!packer.has(option.name)) continue;
      const std::optional<std::int64_t>& bound = packer.defaults.*option.bound;
      defaults.push_back(fmt::format("{} {}", packer.name, bound ? fmt::to_string(*bound) : option.without));
    }
    keys.count(option.name, {1, limits::most_tokens_of_sequence},
               [bound = option.bound](StaticPolicy & policy) -> auto& { return policy.bounds.*bound; },
               fmt::format("{}: {}", option.meaning, joined(defaults, ", ")),
               {.unit = option.unit, .otherwise = "the packer's"});
  }
  return policy_kind(
      "static",
      "the static mesh: groups of `cp` consecutive ranks for the whole run; sequences are packed up to the "
      "context, and each is cut over all ranks of its group",
      std::move(keys));
}

PolicyKind megatron_dp_balanced_policy() {
  KeyTable<DpBalancedPolicy> keys("megatron-dp-balanced");
  add_cp(keys);
  keys.count("max_sequences", {1, limits::most_tokens_of_sequence}, at(&DpBalancedPolicy::max_sequences),
             "the most sequences of a pack", {.unit = "sequences", .otherwise = "any number"});
  add_micro_batch_multiple(keys);
  keys.word("release", "release", {{"dev", DpBalancedRelease::dev}, {"main", DpBalancedRelease::main}},
            at(&DpBalancedPolicy::release),
            "Megatron-LM's branch: that of main (pull request 6684) never splits the first pack, and has no "
            "`max_sequences`");
  return policy_kind(
      "megatron-dp-balanced",
      "Megatron-LM's dp_balanced: the static mesh with packs filled in the order of the data, split until "
      "replicas have as many",
      std::move(keys));
}

PolicyKind flexsp_homogeneous_policy() {
  KeyTable<HomogeneousPolicy> keys("flexsp-homogeneous");
  add_cp(keys);
  return policy_kind(
      "flexsp-homogeneous",
      "FlexSP's baseline: groups of `cp` ranks, packs by best-fit decreasing up to 0.9 of what they hold",
      std::move(keys));
}

}  // namespace hdpsim
