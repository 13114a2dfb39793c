#include <algorithm>

#include "sim/model/impl/sharing_forms.h"
#include "sim/model/shares.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

// PyTorch's gradients in fp32 (sim/program/impl/gathered_chunks.h): those of a rank's own keys and values that arrive,
// their sums, and those that leave; and the sums of those of queries with the copy that a step makes of them.
Bytes gradients_of_chunks(const SharingLoad& load) {
  const Bytes keys = kv_bytes(load.model, load.tokens, load.tp);
  const Bytes queries = query_bytes(load.model, load.tokens, load.tp);
  return (keys * 3 + queries * 2) * load.recipe.dkv_bytes_per_element / load.model.element_bytes;
}

// Every rank has the keys and values of the whole group, or at most these.
class Gathered : public SharingForm {
 public:
  [[nodiscard]] std::string_view word() const override { return "all_gather"; }
  [[nodiscard]] std::string_view sentence() const override {
    return "each rank gathers all of them before attention, which is the default of models whose queries choose keys";
  }
  [[nodiscard]] std::string problem(const Transformer&, const Recipe&) const override { return ""; }
  // It has the adaptive cut, too.
  [[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const Transformer& model,
                                                      const Recipe& recipe) const override {
    return SharingForm::cut_problem(cut.value_or(TokenCut::per_pack), model, recipe);
  }
  [[nodiscard]] std::int64_t hops(const GroupSharing&) const override { return 0; }
  [[nodiscard]] ExchangeCost cost(const GroupSharing&) const override { return ExchangeCost::per_other_rank; }
  [[nodiscard]] Bytes buffers(const SharingLoad& load) const override {
    const Bytes all = kv_bytes(load.model, load.tokens * load.sharing.ranks(), load.tp);
    return load.recipe.is_pytorch() ? all + gradients_of_chunks(load) : with_gradients(all, load);
  }
  // The smallest group of several ranks, or the one that gathers the keys of the longest sequence.
  [[nodiscard]] std::int64_t fullest_group(const GroupSharing& pool, std::int64_t tokens,
                                           std::int64_t longest) const override {
    const std::int64_t of_longest = std::min(pool.ranks(), divided(longest, std::max<std::int64_t>(1, tokens)));
    return std::max(SharingForm::fullest_group(pool, tokens, longest), of_longest);
  }
};

class Cast final : public Gathered {
 public:
  [[nodiscard]] std::string_view word() const override { return "group_cast"; }
  [[nodiscard]] std::string_view sentence() const override {
    return "each rank gets the keys that its tokens see, and no others (MagiAttention)";
  }
  [[nodiscard]] std::string problem(const Transformer& model, const Recipe& recipe) const override {
    return SharingForm::problem(model, recipe);
  }
  [[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const Transformer& model,
                                                      const Recipe& recipe) const override {
    return SharingForm::cut_problem(cut, model, recipe);
  }
  [[nodiscard]] TokenCut usual_cut() const override { return TokenCut::dispatch; }
};

}  // namespace

const SharingForm& gathered_sharing() {
  static const Gathered form;
  return form;
}

const SharingForm& cast_sharing() {
  static const Cast form;
  return form;
}

}  // namespace hdpsim
