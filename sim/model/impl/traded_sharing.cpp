#include <fmt/format.h>

#include <algorithm>

#include "sim/model/impl/sharing_forms.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

class Traded final : public SharingForm {
 public:
  [[nodiscard]] std::string_view word() const override { return "a2a"; }
  [[nodiscard]] std::string_view sentence() const override {
    return "ranks exchange tokens for heads (Ulysses): as many consecutive ranks as divide the group and the key-value "
           "heads of a device, and where a group has more, a ring joins these";
  }
  [[nodiscard]] std::vector<std::string_view> keys() const override { return {"a2a_ranks", "ring_nics"}; }
  [[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const Transformer&,
                                                      const Recipe&) const override {
    if (cut == TokenCut::per_document) return std::nullopt;
    return CutProblem{"with cp_comm_type: a2a ranks compute their heads of all tokens, whoever holds these",
                      "write cp_cut: per_document, or another cp_comm_type"};
  }
  // Ranks that trade heads have whole ones, of keys and values too.
  [[nodiscard]] std::string megatron_problem(std::int64_t kv_heads, const Recipe& recipe,
                                             std::int64_t ranks) const override {
    const std::int64_t wanted = recipe.a2a_ranks > 0 ? std::min(recipe.a2a_ranks, ranks) : ranks;
    if (ranks == 1 || kv_heads % wanted == 0) return "";
    const std::int64_t traded = over(ranks, kv_heads, recipe).inner;
    return fmt::format(
        "{} ranks that trade heads (cp_comm_type: a2a), as they do not divide the {} key-value heads of a "
        "device; simulated are {} of them, in a ring of {}",
        wanted, kv_heads, traded, ranks / traded);
  }
  /// Heads are traded among as many ranks as divide the group and the heads, but no more than Recipe::a2a_ranks.
  [[nodiscard]] GroupSharing over(std::int64_t ranks, std::int64_t kv_heads, const Recipe& recipe) const override {
    const std::int64_t inner = ranks_that_trade(ranks, kv_heads, recipe.a2a_ranks);
    return {.inner = inner, .parties = ranks / inner};
  }
  [[nodiscard]] ExchangeCost cost(const GroupSharing& sharing) const override {
    return sharing.parties > 1 ? ExchangeCost::per_step : ExchangeCost::per_own_share;
  }
  // All that can trade heads; a ring that joins ranks which trade is left out.
  [[nodiscard]] std::int64_t probed_ranks(std::int64_t kv_heads, const Recipe& recipe,
                                          std::int64_t pool) const override {
    for (std::int64_t ranks = std::min(pool, kv_heads); ranks > 1; --ranks) {
      if (over(ranks, kv_heads, recipe).inner == ranks) return ranks;
    }
    return SharingForm::probed_ranks(kv_heads, recipe, pool);
  }
  // The gradients of what is traded, as they come and in the order in which they go.
  [[nodiscard]] Bytes buffers(const SharingLoad& load) const override {
    Bytes traded;
    if (keeps_traded(load.sharing) && load.model.heads > 0) {
      traded = query_bytes(load.model, load.tokens, load.tp) + kv_bytes(load.model, load.tokens, load.tp) +
               attention_output_bytes(load.model, load.tokens, load.tp);
    }
    return traded + ring_buffers(load);
  }
  [[nodiscard]] bool keeps_traded(const GroupSharing& sharing) const override { return sharing.inner > 1; }
  // The largest group, which may have a ring as well.
  [[nodiscard]] std::int64_t fullest_group(const GroupSharing& pool, std::int64_t tokens,
                                           std::int64_t longest) const override {
    return keeps_traded(pool) ? pool.ranks() : SharingForm::fullest_group(pool, tokens, longest);
  }
};

}  // namespace

const SharingForm& traded_sharing() {
  static const Traded form;
  return form;
}

}  // namespace hdpsim
