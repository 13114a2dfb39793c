#include "sim/model/impl/sharing_forms.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

class QueryRing final : public SharingForm {
 public:
  [[nodiscard]] std::string_view word() const override { return "burst"; }
  [[nodiscard]] std::string_view sentence() const override {
    return "as `p2p`, but in backward queries pass around the ring with the gradients of outputs, and keys and values "
           "stay (BurstEngine): fewer bytes where heads have keys of their own, more where several share them";
  }
  [[nodiscard]] std::vector<std::string_view> keys() const override { return {"ring_nics"}; }
  // Searches compare what frameworks have that studies can name.
  [[nodiscard]] bool is_tried() const override { return false; }
  [[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const Transformer&,
                                                      const Recipe&) const override {
    if (cut == TokenCut::per_document) return std::nullopt;
    return CutProblem{"where queries pass around a ring, it is not known which of unequal ranks is the busiest",
                      "write cp_cut: per_document, or cp_comm_type: p2p"};
  }
  /// Queries, gradients of attention's outputs and two fp32 numbers a head, the log-sum-exp and the sum of output times
  /// gradient; and the gradients of the queries. With h heads of width d these are 3 h d + 2 h numbers of a token,
  /// where keys, values and their gradients are 4 h d (Sun et al. 2025, arXiv 2509.19836).
  [[nodiscard]] RingTensors passing(const Transformer& model, const Recipe& recipe, std::int64_t tokens,
                                    std::int64_t devices) const override {
    const Bytes queries = query_bytes(model, tokens, devices);
    const Bytes statistics(2 * tokens * divided(model.heads, devices) * fp32_bytes);
    return {queries + attention_output_bytes(model, tokens, devices) + statistics,
            queries * recipe.dkv_bytes_per_element / model.element_bytes};
  }
  [[nodiscard]] Bytes buffers(const SharingLoad& load) const override { return ring_buffers(load); }
};

}  // namespace

const SharingForm& query_ring_sharing() {
  static const QueryRing form;
  return form;
}

}  // namespace hdpsim
