#include <algorithm>

#include "sim/model/impl/sharing_forms.h"
#include "sim/model/mixing.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

class Ring final : public SharingForm {
 public:
  [[nodiscard]] std::string_view word() const override { return "p2p"; }
  [[nodiscard]] std::string_view sentence() const override {
    return "keys and values pass around a ring, overlapped with attention";
  }
  [[nodiscard]] std::vector<std::string_view> keys() const override { return {"ring_nics"}; }
  [[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const Transformer& model,
                                                      const Recipe& recipe) const override {
    if (cut != TokenCut::dispatch) return SharingForm::cut_problem(cut, model, recipe);
    return CutProblem{"keys of dispatched chunks do not pass around a ring",
                      "write cp_comm_type: group_cast, or all_gather"};
  }
  [[nodiscard]] Bytes buffers(const SharingLoad& load) const override { return ring_buffers(load); }
};

}  // namespace

Bytes ring_buffers(const SharingLoad& load) {
  if (load.sharing.parties == 1) return {};
  if (const std::int64_t reach = attention_reach(load.model); reach > 0) {  // on both sides of a rank's two parts
    return with_gradients(kv_bytes(load.model, std::min(load.tokens, 2 * reach), load.tp) * 2, load);
  }
  const RingTensors all = form_of(load.sharing).passing(load.model, load.recipe, load.tokens, load.tp);
  return all.tensors * 2 + all.gradients * 2;
}

const SharingForm& ring_sharing() {
  static const Ring form;
  return form;
}

}  // namespace hdpsim
