#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/base/units.h"
#include "sim/model/recipe.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// How the ranks of a group share the attention of their micro-batch. Consecutive ranks of the group form parties of
/// `inner` ranks, within which heads are traded; what joins the parties, the exchange says (SharingForm::hops).
struct GroupSharing {
  KeyExchange exchange = KeyExchange::ring;
  std::int64_t inner = 1;
  std::int64_t parties = 1;

  [[nodiscard]] std::int64_t ranks() const { return inner * parties; }
  /// The consecutive ranks of the group that run its collectives together: a party of several, or all.
  [[nodiscard]] std::int64_t party() const { return inner > 1 ? inner : parties; }
  /// The rank of the group to which rank `index` sends in its ring: the one in the same place of the next party.
  [[nodiscard]] std::size_t next(std::size_t index) const {
    return (index + static_cast<std::size_t>(inner)) % static_cast<std::size_t>(ranks());
  }
  /// The rank from which rank `index` receives.
  [[nodiscard]] std::size_t before(std::size_t index) const {
    return (index + static_cast<std::size_t>(ranks() - inner)) % static_cast<std::size_t>(ranks());
  }
  friend bool operator==(const GroupSharing&, const GroupSharing&) = default;
};

/// The key-value heads of one of `tp` devices that all kinds of layers with attention have in common: their greatest
/// common divisor, at least 1. O(kinds of layers).
[[nodiscard]] std::int64_t common_kv_heads(const Transformer& model, std::int64_t tp);

/// The sharing of a group of `ranks` ranks, in every layer alike. `kv_heads` are common_kv_heads(). A group of one rank
/// is a ring of one, whatever the exchange.
[[nodiscard]] GroupSharing group_sharing(KeyExchange exchange, std::int64_t kv_heads, const Recipe& recipe,
                                         std::int64_t ranks);
/// The same in the recipe's way, for ranks of `tp` devices each.
[[nodiscard]] inline GroupSharing group_sharing(const Transformer& model, const Recipe& recipe, std::int64_t tp,
                                                std::int64_t ranks) {
  return group_sharing(recipe.key_exchange, common_kv_heads(model, tp), recipe, ranks);
}

/// The ranks of a group of `ranks` that trade tokens for heads with each other: the largest divisor of the group that
/// divides the `heads` of a device and is at most `most`, unless that is 0.
[[nodiscard]] std::int64_t ranks_that_trade(std::int64_t ranks, std::int64_t heads, std::int64_t most);

/// Bytes of the queries, or of attention's outputs, of `tokens` tokens on one of `tp` devices.
[[nodiscard]] Bytes query_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp);
[[nodiscard]] Bytes attention_output_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp);

}  // namespace hdpsim
