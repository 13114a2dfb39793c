#include "sim/model/group_sharing.h"

#include <algorithm>
#include <numeric>

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

// The largest divisor of `ranks` that divides `heads` and is at most `most`, unless that is 0.
std::int64_t party_of(std::int64_t ranks, std::int64_t heads, std::int64_t most) {
  std::int64_t party = std::gcd(ranks, heads);
  if (most == 0) return party;
  while (party > most || ranks % party != 0 || heads % party != 0) --party;
  return party;
}

}  // namespace

std::int64_t common_kv_heads(const Transformer& model, std::int64_t tp) {
  std::int64_t common = 0;  // gcd(0, n) is n
  const auto add = [&](const Layer& layer) {
    if (layer.heads > 0) common = std::gcd(common, std::max<std::int64_t>(1, layer.kv_heads / tp));
  };
  add(model);
  for (const Layer& layer : model.others) add(layer);
  return std::max<std::int64_t>(1, common);
}

GroupSharing group_sharing(std::int64_t kv_heads, const Recipe& recipe, std::int64_t ranks) {
  if (ranks == 1) return {};
  if (recipe.key_exchange == KeyExchange::ring) return {.parties = ranks};
  if (recipe.key_exchange == KeyExchange::all_gather) return {.parties = ranks, .gathers = true};
  if (recipe.key_exchange == KeyExchange::group_cast) return {.parties = ranks, .gathers = true, .needed = true};
  const std::int64_t inner = party_of(ranks, kv_heads, recipe.a2a_ranks);
  return {.inner = inner, .parties = ranks / inner};
}

Bytes query_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  return Bytes(tokens * divided(query_width(model), tp) * model.element_bytes);
}

Bytes attention_output_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  return Bytes(tokens * divided(output_width(model), tp) * model.element_bytes);
}

}  // namespace hdpsim
