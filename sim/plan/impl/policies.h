#pragma once

#include <vector>

#include "sim/plan/impl/policy_kind.h"

namespace hdpsim {

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
                                              openrlhf_policy()};
  return all;
}

}  // namespace hdpsim
