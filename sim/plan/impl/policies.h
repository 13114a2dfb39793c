#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/document/key_table.h"
#include "sim/plan/impl/packs.h"
#include "sim/plan/impl/pool_fit.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// The options of a policy as stated.
class PolicyOptions {
 public:
  virtual ~PolicyOptions() = default;
  /// The policy's planner for a pool. Options that do not fit the pool are reported through `pool`; the result is then
  /// ignored.
  [[nodiscard]] virtual std::unique_ptr<Planner> planner(PoolFit& pool) const = 0;

 protected:
  PolicyOptions() = default;
  PolicyOptions(const PolicyOptions&) = default;
  PolicyOptions& operator=(const PolicyOptions&) = default;
};

/// A policy that studies can name.
struct PolicyKind {
  std::string name;
  std::string meaning;           ///< A sentence for the reference page.
  std::vector<KeyText> options;  ///< The declarations of its options.
  std::function<std::shared_ptr<const PolicyOptions>(const Value& stated, Diagnostics& diagnostics)> read;
  /// A plan takes it tens of milliseconds also where there is little to decide.
  bool takes_long = false;
};

/// Declares the policy whose options `keys` reads; `Options` is a PolicyOptions.
template <class Options>
[[nodiscard]] PolicyKind policy_kind(std::string name, std::string meaning, KeyTable<Options> keys) {
  const auto table = std::make_shared<const KeyTable<Options>>(std::move(keys));
  const auto read = [table](const Value& stated, Diagnostics& diagnostics) {
    auto options = std::make_shared<Options>();
    (void)table->read(stated, *options, diagnostics);
    return std::shared_ptr<const PolicyOptions>(std::move(options));
  };
  return {std::move(name), std::move(meaning), table->texts(), read, false};
}

[[nodiscard]] PolicyKind static_policy();
[[nodiscard]] PolicyKind hdp_naive_policy();
[[nodiscard]] PolicyKind hdp_balance_policy();
[[nodiscard]] PolicyKind megatron_dp_balanced_policy();
[[nodiscard]] PolicyKind megatron_hybrid_cp_policy();
[[nodiscard]] PolicyKind megatron_dynamic_cp_policy();
[[nodiscard]] PolicyKind flexsp_policy();
[[nodiscard]] PolicyKind flexsp_homogeneous_policy();
[[nodiscard]] PolicyKind hydraulis_policy();
[[nodiscard]] PolicyKind wlb_policy();
[[nodiscard]] PolicyKind skrull_policy();
[[nodiscard]] PolicyKind chunkflow_policy();
[[nodiscard]] PolicyKind distca_policy();
[[nodiscard]] PolicyKind zeppelin_policy();
[[nodiscard]] PolicyKind verl_policy();
[[nodiscard]] PolicyKind openrlhf_policy();
[[nodiscard]] PolicyKind slime_policy();
[[nodiscard]] PolicyKind miles_policy();
[[nodiscard]] PolicyKind nemo_rl_policy();
[[nodiscard]] PolicyKind roll_policy();
[[nodiscard]] PolicyKind skyrl_policy();
[[nodiscard]] PolicyKind areal_policy();
[[nodiscard]] PolicyKind prime_rl_policy();

/// All policies. Their names, options, schema, reference page and planners follow from this table.
[[nodiscard]] inline const std::vector<PolicyKind>& policies() {
  static const std::vector<PolicyKind> all = {static_policy(),
                                              hdp_naive_policy(),
                                              hdp_balance_policy(),
                                              megatron_dp_balanced_policy(),
                                              megatron_hybrid_cp_policy(),
                                              megatron_dynamic_cp_policy(),
                                              flexsp_policy(),
                                              flexsp_homogeneous_policy(),
                                              hydraulis_policy(),
                                              wlb_policy(),
                                              skrull_policy(),
                                              chunkflow_policy(),
                                              distca_policy(),
                                              zeppelin_policy(),
                                              verl_policy(),
                                              openrlhf_policy(),
                                              slime_policy(),
                                              miles_policy(),
                                              nemo_rl_policy(),
                                              roll_policy(),
                                              skyrl_policy(),
                                              areal_policy(),
                                              prime_rl_policy()};
  return all;
}

// Planners that other policies fall back to, or are with some of their options.

/// The static mesh, `static`: ranks = dp x cp, and cp consecutive ranks form a group for the whole run. Sequences are
/// packed up to the context, here by best fit; every sequence of a pack is cut over all cp ranks; packs go to the dp
/// groups in turn, so that their counts differ by at most one.
struct StaticOptions {
  std::int64_t cp = 1;  ///< Divides the ranks; cp x capacity >= context. `auto`: the smallest such number.
  DealOrder order = DealOrder::data;
  OffloadRule offload = {};  ///< Of every micro-batch. What pays (`auto`) is only what the ranks cannot hold.
};
[[nodiscard]] std::unique_ptr<Planner> make_static(const PlanningContext& context, const StaticOptions& options);
/// The static mesh with the degree that the longest sequence needs: other policies with `groups: uniform`. `offload`:
/// their rule, as PoolFit::fitting() has it.
[[nodiscard]] std::unique_ptr<Planner> make_uniform(PoolFit& pool, const OffloadRule& offload);

/// A static mesh whose packs `pack` makes of a batch, or refuses it, in the order in which they go to the groups of
/// `cp` ranks in turn; an empty pack leaves its group out.
[[nodiscard]] std::unique_ptr<Planner> make_mesh_of_packs(std::string policy, const PlanningContext& context,
                                                          std::int64_t cp,
                                                          std::function<std::vector<SequencePack>(const Batch&)> pack);

/// `hdp-naive`: ByteScale (arXiv 2502.21231), Algorithm 1. Sequences of at least C tokens get (r, D) from eq. 3,
/// shorter ones are packed to C by best fit with D = 1. The paper says only that they are then assigned to ranks. Here
/// micro-batches fill consecutive ranks wave by wave (FirstFit), whatever the ranks' loads are. Their order is either
/// that of the loop over the batch, in which the long sequences come first, as it meets them, and then the packs, which
/// exist only at its end; or longest first.
struct NaiveOptions {
  DealOrder order = DealOrder::data;
  /// `auto` lets no micro-batch take longer than the mean one, because nothing balances long ones. `auto` and
  /// `token-wise` also try the sizes of offloaded_tokens() for all long sequences, and no offload; the work model
  /// selects the best.
  OffloadRule offload;
};
[[nodiscard]] std::unique_ptr<Planner> make_hdp_naive(const PlanningContext& context, const NaiveOptions& options);

}  // namespace hdpsim
