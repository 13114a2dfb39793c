#include "sim/study/state_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/layers.h"
#include "sim/model/lora.h"
#include "sim/model/number_type.h"
#include "sim/model/product_format.h"

namespace hdpsim {
namespace {

/// Reports problems at the keys that state what does not suit.
class StateChecks {
 public:
  StateChecks(const Value& training, const PointSpec& point, Diagnostics& diagnostics)
      : training_(training), point_(point), recipe_(point.recipe), diagnostics_(diagnostics) {}

  void run() const {
    check_types();
    if (recipe_.lora.is_on()) check_adapters();
    check_host();
  }

 private:
  void error(std::string_view key, const std::string& message, const std::string& help) const {
    diagnostics_.error(place(key), message, help);
  }
  void unsupported(std::string_view key, const std::string& message, const std::string& help) const {
    diagnostics_.unsupported(place(key), message, help);
  }

  [[nodiscard]] Position place(std::string_view key) const {
    const Value* stated = training_.find(key);
    return stated == nullptr ? training_.position : stated->position;
  }

  void check_types() const {
    const bool has_one_scale = in_fp8(recipe_.products) && recipe_.products != ProductFormat::mxfp8;
    const bool in_few_bits = recipe_.parameters == NumberType::fp8 || recipe_.gathered == NumberType::fp8;
    if (in_few_bits && !has_one_scale) {
      error(recipe_.parameters == NumberType::fp8 ? "parameters" : "gather",
            "parameters in fp8 are what products in fp8 read: those of 'kernels.linear' fp8, fp8_current or fp8_blocks",
            "add kernels: {linear: fp8_current}, or leave this out");
    }
    if (recipe_.gathered != NumberType::none && recipe_.zero != 3) {
      error("gather", "shards of parameters are gathered with zero: 3 alone", "write mesh: {zero: 3}, or leave it out");
    }
    if (recipe_.gathered == NumberType::bf16 && recipe_.parameters == NumberType::fp8) {
      error("gather", "parameters that are kept in fp8 are gathered as they are", "leave 'gather' out");
    }
    if (recipe_.reduces_fp32 && recipe_.zero < 2 && !recipe_.parameter_shards) {
      error("reduce", "below zero: 2 gradients are reduced as they are summed", "write gradients: fp32 in its place");
    }
    if (point_.model.moe && recipe_.autocast()) {
      unsupported("parameters", fmt::format("experts under autocast, as of {}, are not known", point_.model.name),
                  "write parameters: bf16, or with zero: 3 add gather: bf16");
    }
    if (recipe_.parameters == NumberType::fp8 && recipe_.master == NumberType::none) {
      error("master", "updates are lost in parameters of 8 bits", "leave 'master' out");
    }
  }

  void check_adapters() const {
    const Lora& lora = recipe_.lora;
    if (recipe_.optimizer == Optimizer::muon) {
      unsupported("optimizer", "what Muon makes of adapters is not known", "write optimizer: adam");
    }
    if (lora.dequantizes() && is_narrow(recipe_.products)) {
      unsupported("lora", "weights in 4 bits are made elements, which products in fewer bits do not read",
                  "leave kernels.linear out, or write base: bf16");
    }
    if (recipe_.overlap_tp) {
      unsupported("tp_comm_overlap", "which products overlap with collectives beside adapters is not known",
                  "write tp_comm_overlap: false");
    }
    if (recipe_.gathered != NumberType::none || recipe_.parameters == NumberType::fp8) {
      unsupported("lora", "frozen parameters are kept and gathered as 'base' says",
                  "leave 'gather' and 'parameters' out");
    }
    if (lora.targets.intersects({AdapterTarget::q_proj, AdapterTarget::k_proj, AdapterTarget::v_proj}) &&
        lora.targets.has(AdapterTarget::linear_qkv)) {
      error("lora", "linear_qkv is q_proj, k_proj and v_proj together", "leave one or the other out");
    }
    if (lora.targets.intersects({AdapterTarget::gate_proj, AdapterTarget::up_proj}) &&
        lora.targets.has(AdapterTarget::linear_fc1)) {
      error("lora", "linear_fc1 is gate_proj and up_proj together", "leave one or the other out");
    }
    if (point_.model.layers > 0) check_layers();
  }

  void check_layers() const {
    constexpr AdapterTargets of_mlp{AdapterTarget::gate_proj, AdapterTarget::up_proj, AdapterTarget::down_proj,
                                    AdapterTarget::linear_fc1};
    const std::vector<Transformer> kinds = of_each_kind(point_.model);
    const bool has_others = std::any_of(kinds.begin(), kinds.end(), [](const Transformer& kind) {
      return kind.latent || kind.linear || kind.query_latent > 0;
    });
    if (has_others) {
      unsupported("lora",
                  fmt::format("adapters of latents or linear mixing, as in {}, are not known", point_.model.name),
                  "leave 'lora' out");
    }
    if (point_.model.moe && recipe_.lora.targets.intersects(of_mlp)) {
      unsupported("lora", fmt::format("adapters of experts, as in {}, are not known", point_.model.name),
                  "write targets: [q_proj, k_proj, v_proj, o_proj]");
    }
  }

  void check_host() const {
    const HostStates& host = recipe_.host;
    if (host.parameters && recipe_.zero != 3) {
      error("host", "shards of parameters are in host memory with zero: 3 alone",
            "write mesh: {zero: 3}, or parameters: false");
    }
    if (host.optimizer > 0 && recipe_.optimizer != Optimizer::adam) {
      unsupported("host", "hosts update by Adam", "write optimizer: adam");
    }
  }

  const Value& training_;
  const PointSpec& point_;
  const Recipe& recipe_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_states(const Value& training, const PointSpec& point, Diagnostics& diagnostics) {
  StateChecks(training, point, diagnostics).run();
}

}  // namespace hdpsim
