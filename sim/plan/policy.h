#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// The order in which a policy that ignores loads deals out its micro-batches.
enum class DealOrder : std::uint8_t {
  data,        ///< By the place in the batch of the sequence that opened the micro-batch.
  descending,  ///< By the longest sequence: the order in which best-fit decreasing opened them.
};

/// The part of the activations that a policy moves to host memory.
struct OffloadRule {
  enum class Mode : std::uint8_t { none, automatic, fixed, token_wise };
  Mode mode = Mode::none;
  double ratio = 0;  ///< Ratio of a fixed rule.
};

/// How a policy sizes the groups of ranks that share a sequence.
enum class GroupSizes : std::uint8_t {
  by_length,  ///< By the length of each sequence.
  uniform,    ///< Each sequence gets the ranks of the longest one, which makes the policy `static`.
};

/// How `hdp-balance` evens out loads; see BalanceOptions.
enum class BalanceRule : std::uint8_t {
  automatic,  ///< `pp` in pipelines of more than one stage and with expert groups over several ranks, otherwise `dp`.
  dp,
  pp,
  none,  ///< No balancing, which makes the policy hdp-naive with the same offload.
};

/// `static: {cp: auto | N, order: data | descending}`.
struct StaticPolicy {
  std::optional<std::int64_t> cp;  ///< Ranks of a group; if empty, the smallest number that holds the context.
  DealOrder order = DealOrder::data;
};

/// `hdp-naive: {order: data | descending, offload: none | auto | ratio | token-wise, groups: by_length | uniform}`.
struct NaivePolicy {
  DealOrder order = DealOrder::data;
  OffloadRule offload;
  GroupSizes groups = GroupSizes::by_length;
};

/// `hdp-balance`; see BalanceOptions for its options.
struct BalancePolicy {
  std::int64_t buckets = 16;
  double delta = 0.01;
  OffloadRule offload;
  BalanceRule balance = BalanceRule::automatic;
  bool node_first = true;
  bool pack_groups = true;
  bool widen = false;
  GroupSizes groups = GroupSizes::by_length;
  bool fallback = true;
  double margin = 0.01;
  double spread = 0.03;
};

/// A policy with its options as stated. Whether they fit a pool and a context is checked when the planner is made.
struct Policy {
  std::string name;
  std::variant<StaticPolicy, NaivePolicy, BalancePolicy> options;
  Value stated;  ///< The map of its options, empty for a bare word; it gives the positions of problems.
};

/// Names of all policies: `static`, `hdp-naive`, `hdp-balance`.
[[nodiscard]] const std::vector<std::string>& policy_names();
/// Every policy with the declarations of its options.
[[nodiscard]] const std::vector<std::pair<std::string, std::vector<KeyText>>>& policy_options();
/// True if the policy exists and has the option.
[[nodiscard]] bool has_option(std::string_view policy, std::string_view option);
/// The shape of an entry of `plans`.
[[nodiscard]] KeyShape plan_shape();

/// Reads an entry of `plans`: a bare word (`hdp-naive`) or a map of one policy to its options. All unknown policies,
/// unknown options and values that are valid for no pool are reported; the result is then empty.
[[nodiscard]] std::optional<Policy> read_policy(const Value& entry, Diagnostics& diagnostics);

}  // namespace hdpsim
