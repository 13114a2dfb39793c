#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>

#include "sim/base/units.h"
#include "sim/model/graph_scope.h"
#include "sim/model/key_exchange.h"
#include "sim/model/layer_kernels.h"
#include "sim/model/lora.h"
#include "sim/model/loss_form.h"
#include "sim/model/number_type.h"
#include "sim/model/product_format.h"
#include "sim/model/recompute.h"

namespace hdpsim {

/// How the ranks of a group share the linear mixing of their micro-batch.
enum class MixingExchange : std::uint8_t {
  /// Heads are traded among as many ranks as move the fewest bytes, which may be one; states pass among the rest.
  fewest_bytes,
  /// The states at the ends of all parts of the group's sequences reach every rank (LASP-2, Sun et al. 2025).
  states,
  /// As many ranks as divide the group and the heads of a device trade tokens for heads before mixing, and back behind
  /// it (Megatron-LM, core/ssm/mamba_context_parallel.py).
  heads,
};

/// What turns gradients into new parameters; optimizer_work() and optimizer_bytes() have its costs.
enum class Optimizer : std::uint8_t {
  adam,
  lamb,  ///< You et al. 2020.
  muon,  ///< Jordan et al. 2024, for matrices; vectors and tables keep Adam.
};

/// What of a job's states is in host memory. A host's processors update what they have there (ZeRO-Offload, Ren et al.
/// 2021, arXiv 2101.06840; Megatron-LM, core/optimizer/cpu_offloading): gradients are copied to the host, with ZeRO
/// stages 2 and 3 behind each reduction and below at the end of the step, and updated parameters back. The device
/// updates its own share at the same time.
struct HostStates {
  double optimizer = 0;     ///< The share of parameters that the host updates, with its fp32 gradients and states.
  bool parameters = false;  ///< ZeRO stage 3: shards are in host memory, and copied to the device for each gather.
  bool overlaps = false;    ///< Copies at the end of a step overlap with the update.
  /// Parameters that a host updates a second. DeepSpeed's CPU-Adam: 10 billion in 2.57 s on the two Xeon 8168 of a
  /// DGX-2 (Ren et al. 2021, table 4).
  double updates_per_s = 3.9e9;
  std::int64_t devices = 1;  ///< That share a host, and its rate; as the cluster says.
};

/// How a framework trains: what decides the kernels of a step, its collectives and its memory, besides the model, the
/// mesh and the schedule. Prices, memory, the lowering and the executor all read it. The defaults are those of
/// Megatron-LM with Transformer Engine.
struct Recipe {
  /// What backward recomputes, layer by layer: modules of the MLP's half before the MLP's backward, and modules of
  /// attention's half before attention's backward. With the projection, whose output the MLP's half needs, everything
  /// is recomputed before the layer's backward.
  Recompute recompute = {};
  /// A layer of eager PyTorch that is computed again ends when backward has what it needs (torch/utils/checkpoint.py,
  /// set_checkpoint_early_stop), not behind its last product.
  bool early_stop = true;

  // ---- What is sharded over the data-parallel group, and when it is gathered and reduced

  /// ZeRO stage (Rajbhandari et al. 2020). 0: nothing is sharded; 1: the optimizer; 2: gradients too; 3: parameters
  /// too. From 2 on, every micro-batch reduces the gradients of each layer after the layer's backward, and with 3 it
  /// gathers the parameters of each layer while the previous layer computes, forward and backward (FSDP, Zhao et al.
  /// 2023). Whole experts are sharded, gathered and reduced over the devices that hold the same ones. Both move the
  /// model's elements, not fp32 (but see reduces_fp32, parameters and gathered). Below 2, gradients are reduced and
  /// parameters gathered once per step. Sharded gradients and parameters exist in full for two layers: the one that
  /// computes and its neighbour.
  std::int64_t zero = 1;
  std::int64_t gradient_bytes = 4;  ///< Bytes per element of gradients that are summed over micro-batches and ranks.
  /// In which parameters are kept: bf16 (elements), fp32, or fp8 for the weights of layers' products.
  NumberType parameters = NumberType::bf16;
  /// ZeRO stage 3: in which shards are gathered; fp8: the weights of layers' products, and elements otherwise. none: as
  /// they are kept.
  NumberType gathered = NumberType::none;
  /// ZeRO stages 2 and 3: a micro-batch's gradients are reduced in fp32 in place of elements.
  bool reduces_fp32 = false;
  /// Each parameter is sharded by itself (PyTorch's fully_shard, FSDP2), not the flat parameter of a layer: what is
  /// gathered is copied to the parameters, and gradients are copied to what is reduced (ZeRO stages 2 and 3).
  bool parameter_shards = false;
  Optimizer optimizer = Optimizer::adam;
  /// The copy of parameters that the optimizer updates, besides parameters in fewer bits than fp32: fp32, or bf16 for
  /// two bytes. none: parameters themselves are updated, rounded stochastically or not.
  NumberType master = NumberType::fp32;
  NumberType moments = NumberType::fp32;  ///< Of the optimizer.
  /// ZeRO stage 1: each rank updates whole parameters in place of an equal part of all. Gradients are all-reduced, and
  /// the ranks broadcast what they have updated one after another (InternEvo, hybrid_zero_optim.py, broadcast_params;
  /// PyTorch's ZeroRedundancyOptimizer). Ranks are taken to have equally many parameters.
  bool whole_parameters = false;
  Lora lora = {};
  HostStates host = {};
  /// Parameters of one of the collectives that overlap, see bucket_parameters(); 0: as many as Megatron-LM takes.
  std::int64_t bucket = 0;
  /// Gradients of a step are in one buffer that the framework clears, looks through for NaN and scales by 1 over the
  /// ranks before it reduces them; of the reduced ones the optimizer takes the norm, and it copies fp32 weights to the
  /// parameters behind Adam: see optimizer_work() (ZeRO stages 0 and 1).
  bool gradient_buffer = false;
  /// The reduction of gradients, per bucket or in a pipeline per chunk, overlaps with a rank's last passes instead of
  /// following them (ZeRO stages 0 and 1).
  bool overlap_grad_reduce = false;
  /// The all-gather of parameters, per bucket or per chunk, overlaps with a rank's first passes instead of preceding
  /// them (ZeRO stages 1 and 2).
  bool overlap_param_gather = false;

  // ---- Tensor parallelism

  bool sequence_parallel = true;  ///< Norms and residuals on tokens / tp (Korthikanti et al. 2022), or on all tokens.
  bool overlap_tp = false;        ///< Tensor-parallel collectives overlap with their products in chunks.
  /// In the backward of QKV, of the MLP's first products and of the head, the reduction of the input's gradient
  /// overlaps with the product for the weight's gradient. Under sequence parallelism these products keep their input
  /// sharded, and backward all-gathers it again, overlapping with the product for the input's gradient (Megatron-LM,
  /// tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication; Korthikanti et al. 2022, section
  /// 4.2.2). Experts, routed and shared, do not use this. Without this option, gathered inputs are kept, as in the
  /// executor.
  bool overlap_tp_gradients = false;

  // ---- Kernels

  /// What the products of layers multiply; in fp8 with the casts that they need. The head's product is of elements
  /// (Transformer Engine).
  ProductFormat products = ProductFormat::elements;
  /// Layers keep what the activation of an MLP or of experts reads in fp8: a kernel casts it in forward, another casts
  /// it back in backward (Megatron-LM, --activation-func-fp8-input-store; DeepSeek-AI 2024, arXiv 2412.19437, section
  /// 3.3.3).
  bool fp8_activation_input = false;
  /// The product that computes a weight's gradient adds it to the gradients of earlier micro-batches. Otherwise a
  /// separate kernel does, as in Megatron-LM before gradient_accumulation_fusion (megatron/model/distributed.py,
  /// main_grad.add_).
  bool accumulation_fusion = true;
  /// The activation of an MLP or of experts is one kernel, which also multiplies by the router's probabilities.
  /// Otherwise PyTorch's kernels run one after another, the product with the probabilities in fp32 (Megatron-Core,
  /// bias_activation_fusion: transformer/moe/experts.py, bias_act_func).
  bool activation_fusion = true;
  /// The router's choice of experts and its balancing loss are a kernel each. Otherwise PyTorch's kernels run one after
  /// another (Megatron-Core, moe_router_fusion: transformer/moe/moe_utils.py and router.py).
  bool router_fusion = true;
  Loss loss = Loss::fused;
  LayerKernels layers = LayerKernels::fused;
  bool fused_norms = false;  ///< RMSNorm is one kernel in eager layers, too.
  /// Keys and values are repeated for the heads of queries that read them, before attention and its exchange between
  /// ranks (repeat_kv of torchtitan until January 2026, and of HuggingFace before attention with a mask).
  bool repeats_keys = false;
  bool flash_attention = true;  ///< A layer keeps q, k, v, o and the log-sum-exp; otherwise the score matrices.
  /// Dropout of scores, of the embedding and of both residual branches, with a mask of one byte per element.
  bool dropout = false;
  /// A separate kernel merges a ring step's output with the previous ones; otherwise the attention kernel accumulates
  /// it.
  bool separate_merge = true;
  /// Bytes per element of the gradients that the backward ring sends, of keys and values or of queries: bf16 2, fp32 4.
  std::int64_t dkv_bytes_per_element = 2;
  KeyExchange key_exchange = KeyExchange::ring;
  std::int64_t a2a_ranks = 0;  ///< The most ranks that trade heads with all_to_all; 0: as many as can.
  MixingExchange mixing_exchange = MixingExchange::fewest_bytes;
  bool host_issues = false;  ///< The host issues kernels one by one, and the device may have to wait for it ...
  GraphScope graphs = {};    ///< ... but for these modules, each of which is one CUDA graph.

  // ---- Memory

  /// Gaps of the allocator, as a share of the allocated memory. 4.7 % is the median of reserved over allocated memory
  /// of the 15 Llama runs that SimuMax v1.2 publishes (docs/b200/b200_release_v1.2_summary.json; 2.8 to 9.3 %).
  double fragmentation = 0.047;
  /// Memory outside the allocator; default_reserve() if empty.
  std::optional<Bytes> reserve = {};

  // ---- What follows from these

  [[nodiscard]] bool has_gradient_buffer() const { return gradient_buffer && zero < 2; }
  [[nodiscard]] bool updates_whole() const { return whole_parameters && zero == 1; }
  /// Gradients are all-reduced; otherwise reduce-scattered.
  [[nodiscard]] bool reduces_all() const { return zero == 0 || updates_whole(); }
  /// Every pass needs these collectives layer by layer: they are instructions of the pass.
  [[nodiscard]] bool reduces_in_pass() const { return zero >= 2; }
  [[nodiscard]] bool gathers_in_pass() const { return zero == 3; }
  /// They copy shards from or to host memory, which a rank alone does, too.
  [[nodiscard]] bool copies_in_pass() const {
    return (gathers_in_pass() && host.parameters) || (reduces_in_pass() && host.optimizer > 0);
  }
  /// These collectives overlap with a rank's last backward and with its first forward, too. In a pipeline they then run
  /// between its passes (Program::pool_work).
  [[nodiscard]] bool reduces_by_layer(bool last) const { return reduces_in_pass() || (overlap_grad_reduce && last); }
  [[nodiscard]] bool gathers_by_layer(bool first) const {
    return gathers_in_pass() || (overlap_param_gather && zero > 0 && first);
  }
  /// The parameters of one of these collectives where they are not in every pass, if the model has as many: those of
  /// several layers, so that large groups do not pay for many messages. Megatron-LM takes the larger of 40 million and
  /// a million for each of the `pool` ranks (core/distributed/distributed_data_parallel.py).
  [[nodiscard]] std::int64_t bucket_parameters(std::int64_t pool) const {
    constexpr std::int64_t least = 40'000'000;
    constexpr std::int64_t of_rank = 1'000'000;
    return bucket > 0 ? bucket : std::max(least, of_rank * pool);
  }
  /// Backward all-gathers the inputs of products again, because they were kept sharded.
  [[nodiscard]] bool gathers_inputs_again() const { return overlap_tp_gradients && sequence_parallel; }
  /// Parameters are fp32 and products run under autocast of PyTorch (FSDP without a param_dtype): each product casts
  /// its weight to bf16, and the weight's gradient to fp32 and, for a reduction of elements, back. The residual stream
  /// is fp32, as the embedding leaves it: norms cast it to bf16, and outputs of products are added to it in fp32.
  [[nodiscard]] bool autocast() const {
    return parameters == NumberType::fp32 && gathered == NumberType::none && !lora.is_on();
  }
  /// Bytes of an element of the residual stream, and of what products read of parameters.
  [[nodiscard]] std::int64_t parameter_bytes(std::int64_t element_bytes) const {
    return autocast() ? 4 : element_bytes;
  }
  /// The type of the weights of layers' products where they are whole; NumberType::bf16 stands for elements.
  [[nodiscard]] NumberType gathered_type() const { return gathered == NumberType::none ? parameters : gathered; }
  /// The optimizer updates a copy of the parameters.
  [[nodiscard]] bool has_master() const { return parameters != NumberType::fp32 && master != NumberType::none; }
  /// Weights are views of a layer's flat parameter, so that their gradients are copied into a flat one, which is
  /// divided before ranks sum it in elements (FSDP of PyTorch 2.0: flat_param.py, _get_unflat_views; _runtime_utils.py,
  /// _div_if_needed).
  [[nodiscard]] bool flat_gradients() const { return zero == 3 && !parameter_shards; }
  /// What is gathered and reduced is copied from and to single parameters (torch/distributed/fsdp/_fully_shard,
  /// _fsdp_collectives.py: foreach_all_gather_copy_out, foreach_reduce_scatter_copy_in), on the stream of kernels.
  [[nodiscard]] bool copies_shards() const { return zero == 3 && parameter_shards; }
  /// Products in fp8 are torchao's (float8/float8_linear.py): each casts what it reads, forward and backward, and keeps
  /// it in elements.
  [[nodiscard]] bool casts_in_products() const { return is_pytorch() && is_narrow(products); }
  /// Bytes of an element of the gradients that ranks sum in every pass.
  [[nodiscard]] std::int64_t reduction_bytes(std::int64_t element_bytes) const {
    return reduces_fp32 ? 4 : element_bytes;
  }
  /// Bytes of an element of the accumulated gradients if a separate kernel adds each weight's gradient to them; 0 if
  /// the product does.
  [[nodiscard]] std::int64_t added_bytes() const { return fuses_sums() ? 0 : gradient_bytes; }
  /// Bytes of such an element if the product for the weight's gradient adds to it; 0 also if every micro-batch reduces
  /// its own gradients.
  [[nodiscard]] std::int64_t summed_bytes() const { return fuses_sums() && !reduces_in_pass() ? gradient_bytes : 0; }
  /// Autograd sums gradients of fp32 parameters itself.
  [[nodiscard]] bool fuses_sums() const { return accumulation_fusion && (!autocast() || reduces_in_pass()); }
  /// Layers are PyTorch modules: each weight has a product of its own, positions, attention and the activation are
  /// operators.
  [[nodiscard]] bool is_pytorch() const { return layers != LayerKernels::fused; }
  [[nodiscard]] const ElementwiseKernels& elementwise() const {
    return elementwise_kernels[static_cast<std::size_t>(layers)];
  }
  /// RMSNorm is several kernels, between which it has numbers in fp32.
  [[nodiscard]] bool splits_norms() const { return layers == LayerKernels::eager && !fused_norms; }
  /// Layers of PyTorch are computed again up to their last product; torch.compile leaves out what nobody reads.
  [[nodiscard]] bool stops_early() const {
    return layers == LayerKernels::compiled || (layers == LayerKernels::eager && early_stop);
  }
  /// Whether layers with experts are known under this recipe: every member of dense_only_members has its default, or
  /// one device has each rank's stage, where tokens are not cut anyway.
  [[nodiscard]] bool suits_experts(std::int64_t tp) const;
};

/// What is known for dense layers alone: under tensor parallelism experts need sequence parallelism (Megatron-LM,
/// training/arguments.py, refuses to train them without). This is the only statement of it: the reader of a study, its
/// reference page and the lowering ask it.
inline constexpr std::tuple dense_only_members{
    &Recipe::sequence_parallel,
};

/// Whether other values of a member than its default are known for dense layers alone.
template <class Value>
[[nodiscard]] constexpr bool is_for_dense_layers(Value Recipe::*member) {
  return std::apply(
      [member](auto... each) {
        const auto is_it = [member](auto other) {
          if constexpr (std::is_same_v<decltype(other), Value Recipe::*>) return other == member;
          return false;
        };
        return (is_it(each) || ...);
      },
      dense_only_members);
}

inline bool Recipe::suits_experts(std::int64_t tp) const {
  const Recipe usual;
  return tp == 1 ||
         std::apply([&](auto... member) { return ((this->*member == usual.*member) && ...); }, dense_only_members);
}

}  // namespace hdpsim
