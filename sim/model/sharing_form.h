#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/group_sharing.h"

namespace hdpsim {

/// Why the tokens of a group cannot be cut in a way, and what to write instead.
struct CutProblem {
  std::string message;
  std::string help;
};

/// What the time that a rank spends in exchanges grows with.
enum class ExchangeCost : std::uint8_t {
  per_step,        ///< The steps of a ring, each of which overlaps with attention.
  per_other_rank,  ///< The other ranks of the group.
  per_own_share,   ///< What the rank keeps of its own tensors is not exchanged: 1 - 1/ranks of a constant.
};

/// What a step of a backward ring passes on, and one step behind the gradients of it.
struct RingTensors {
  Bytes tensors;
  Bytes gradients;
};

/// A micro-batch on a device of a rank, in the layers of one kind.
struct SharingLoad {
  const Transformer& model;  ///< With all layers of the kind.
  const Recipe& recipe;
  GroupSharing sharing;
  std::int64_t tp = 1;
  std::int64_t tokens = 0;            ///< Of the rank.
  std::int64_t received_queries = 0;  ///< Of other ranks, where queries come with the keys that they see, ...
  std::int64_t received_keys = 0;     ///< ... and these keys.
};

/// A way in which the ranks of a group share a sequence (KeyExchange), as far as no instruction is needed to tell it:
/// whom it serves, who exchanges with whom, what it keeps in memory. Each is in a file of its own in impl/.
class SharingForm {
 public:
  virtual ~SharingForm() = default;

  // ---- In studies

  /// Its word of `mesh.cp_comm_type`, and what the page of keys says of it. Empty if plans ask for it and studies
  /// cannot.
  [[nodiscard]] virtual std::string_view word() const { return ""; }
  [[nodiscard]] virtual std::string_view sentence() const { return ""; }
  /// Other keys of `mesh` that matter to it and not to all.
  [[nodiscard]] virtual std::vector<std::string_view> keys() const { return {}; }
  /// Whether advice and the searches for meshes try it without being asked to.
  [[nodiscard]] virtual bool is_tried() const { return !word().empty(); }
  /// Why groups of several ranks cannot share the layers of a model in this way. Empty: they can.
  [[nodiscard]] virtual std::string problem(const Transformer& model, const Recipe& recipe) const;
  /// Whether its ranks can hold tokens by this cut; empty: by the faster of per_document and per_pack.
  [[nodiscard]] virtual std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const Transformer& model,
                                                              const Recipe& recipe) const;
  /// The cut that it is made for.
  [[nodiscard]] virtual TokenCut usual_cut() const { return TokenCut::per_document; }
  /// What Megatron-LM refuses of a group of so many ranks. Empty: nothing.
  [[nodiscard]] virtual std::string megatron_problem(std::int64_t kv_heads, const Recipe& recipe,
                                                     std::int64_t ranks) const;

  // ---- Who exchanges with whom

  /// The parties of a group of several ranks.
  [[nodiscard]] virtual GroupSharing over(std::int64_t ranks, std::int64_t kv_heads, const Recipe& recipe) const;
  /// The ranks that send to the next one of a ring (GroupSharing::next): all of the group, or none.
  [[nodiscard]] virtual std::int64_t hops(const GroupSharing& sharing) const;
  [[nodiscard]] virtual ExchangeCost cost(const GroupSharing& sharing) const;
  /// The largest group of up to `pool` ranks from whose costs those of all groups of several ranks are read off.
  [[nodiscard]] virtual std::int64_t probed_ranks(std::int64_t kv_heads, const Recipe& recipe, std::int64_t pool) const;

  /// What the backward ring passes on of `tokens` tokens, whose heads are cut over `devices`: keys and values.
  [[nodiscard]] virtual RingTensors passing(const Transformer& model, const Recipe& recipe, std::int64_t tokens,
                                            std::int64_t devices) const;

  // ---- Memory

  /// Buffers of a layer's backward, when they are largest.
  [[nodiscard]] virtual Bytes buffers(const SharingLoad& load) const = 0;
  /// Whether layers keep queries, keys, values and outputs of traded heads besides those of a rank's own tokens.
  [[nodiscard]] virtual bool keeps_traded(const GroupSharing& sharing) const;
  /// Among groups of up to all ranks of the pool, which share `pool`, the one whose ranks with `tokens` tokens each
  /// need most memory; the longest sequence has `longest` tokens.
  [[nodiscard]] virtual std::int64_t fullest_group(const GroupSharing& pool, std::int64_t tokens,
                                                   std::int64_t longest) const;
};

/// The only home of all forms.
[[nodiscard]] const SharingForm& sharing_form(KeyExchange exchange);
[[nodiscard]] inline const SharingForm& form_of(const GroupSharing& sharing) {
  return sharing_form(sharing.exchange);
}

/// All exchanges, in their order.
[[nodiscard]] const std::vector<KeyExchange>& all_key_exchanges();

/// The way to share that a cut asks for, whatever the recipe. Empty: the recipe's.
[[nodiscard]] std::optional<KeyExchange> exchange_of(std::optional<TokenCut> cut);

/// Whether what a group exchanges is the same for any spans of as many tokens, in layers that see all of a sequence.
[[nodiscard]] bool passes_all(KeyExchange exchange);

/// Whether some layers mix tokens linearly or see a part of the tokens before each.
[[nodiscard]] bool has_layers_of_few_keys(const Transformer& model);

}  // namespace hdpsim
