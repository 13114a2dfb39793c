#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/base/units.h"
#include "sim/model/recipe.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// How the ranks of a group share the attention of their micro-batch, by Recipe::key_exchange. Consecutive ranks of
/// the group form parties of `inner` ranks. Within a party an all-to-all gives each rank all tokens of the party for a
/// part of the heads; the `parties` pass keys and values around a ring, or all ranks all-gather them.
struct GroupSharing {
  std::int64_t inner = 1;
  std::int64_t parties = 1;
  bool gathers = false;  ///< All-gather or group-cast; every rank is then a party.
  bool needed = false;   ///< Group-cast: a rank gets the keys and values that its queries see alone.
  bool serves = false;   ///< Ranks attend for each other (TokenCut::served); every rank is then a party.

  [[nodiscard]] std::int64_t ranks() const { return inner * parties; }
  [[nodiscard]] bool trades_heads() const { return inner > 1; }
  [[nodiscard]] bool has_ring() const { return parties > 1 && !gathers && !serves; }
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

/// The sharing of a group of `ranks` ranks, in every layer alike. Heads are traded among as many ranks as divide the
/// group and `kv_heads`, which are common_kv_heads(), but among no more than Recipe::a2a_ranks.
[[nodiscard]] GroupSharing group_sharing(std::int64_t kv_heads, const Recipe& recipe, std::int64_t ranks);
/// The same for ranks of `tp` devices each.
[[nodiscard]] inline GroupSharing group_sharing(const Transformer& model, const Recipe& recipe, std::int64_t tp,
                                                std::int64_t ranks) {
  return group_sharing(common_kv_heads(model, tp), recipe, ranks);
}

/// The sharing of a group of `ranks` ranks that are attention servers for each other, whatever the recipe.
[[nodiscard]] inline GroupSharing served_sharing(std::int64_t ranks) {
  return {.parties = ranks, .serves = ranks > 1};
}

/// Bytes of the queries, or of attention's outputs, of `tokens` tokens on one of `tp` devices.
[[nodiscard]] Bytes query_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp);
[[nodiscard]] Bytes attention_output_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp);

}  // namespace hdpsim
