#include <fmt/format.h>

#include "sim/model/impl/sharing_forms.h"
#include "sim/model/layers.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

class Served final : public SharingForm {
 public:
  [[nodiscard]] std::string problem(const Transformer& model, const Recipe& recipe) const override {
    if (has_layers_of_few_keys(model)) {
      return fmt::format("{} has layers that do not see all tokens before", model.name);
    }
    if (model.moe || !model.others.empty() || !has_mlp(model) || !mixes_tokens(model)) {
      return fmt::format("not all layers of {} have attention and a dense MLP", model.name);
    }
    return recipe.recompute == Recompute{} ? "" : "backward recomputes activations, write recompute: none";
  }
  [[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut>, const Transformer& model,
                                                      const Recipe& recipe) const override {
    const std::string reason = problem(model, recipe);
    if (reason.empty()) return std::nullopt;
    return CutProblem{fmt::format("ranks cannot attend for each other: {}", reason), "use another plan"};
  }
  [[nodiscard]] TokenCut usual_cut() const override { return TokenCut::served; }
  [[nodiscard]] std::int64_t hops(const GroupSharing&) const override { return 0; }
  // Of both halves that are under way, a server has what came (queries, keys and values, outputs and their gradients)
  // and the gradients that go back.
  [[nodiscard]] Bytes buffers(const SharingLoad& load) const override {
    const Bytes of_queries = query_bytes(load.model, load.received_queries, load.tp) * 2 +
                             attention_output_bytes(load.model, load.received_queries, load.tp) * 2;
    return (of_queries + with_gradients(kv_bytes(load.model, load.received_keys, load.tp), load)) * 2;
  }
};

}  // namespace

const SharingForm& served_sharing() {
  static const Served form;
  return form;
}

}  // namespace hdpsim
