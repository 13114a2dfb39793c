#include "sim/profiler/kernel_class.h"

#include <algorithm>
#include <array>

namespace hdpsim {
namespace {

struct Row {
  std::string_view text;
  KernelClass kind;
  std::string_view word;
};

using enum KernelClass;

// In this order, because names of template kernels hold the names of much else: what is rare in other names comes
// first.
constexpr auto rows = std::to_array<Row>({
    // Collectives and messages.
    {"ncclDevKernel", collective, "NCCL"},
    {"ncclKernel", collective, "NCCL"},
    {"ncclSym", collective, "NCCL"},
    {"rcclGeneric", collective, "NCCL"},
    {"deep_ep::", collective, "DeepEP"},
    {"userbuffers", collective, "user buffers"},
    {"multimem_all", collective, "symmetric memory"},
    {"multimem_one_shot", collective, "symmetric memory"},
    {"one_shot_all_reduce", collective, "symmetric memory"},
    {"two_shot_all_reduce", collective, "symmetric memory"},
    {"cross_device_reduce", collective, "symmetric memory"},
    {"barrier_kernel", collective, "symmetric memory"},
    {"nvshmem", collective, "NVSHMEM"},

    // Attention backward: FlashAttention 2, 3 and later, cuDNN, memory-efficient, Composable Kernel, Triton.
    {"flash_bwd", attention_backward, "FlashAttention-2"},
    {"FlashAttnBwd", attention_backward, "FlashAttention-3"},
    {"FlashAttentionBackward", attention_backward, "FlashAttention-4"},
    {"flash_bprop", attention_backward, "cuDNN"},
    {"compute_dot_do_o", attention_backward, "cuDNN"},
    {"convert_dq_to_16bits", attention_backward, "cuDNN"},
    {"fmha_cutlassB", attention_backward, "memory-efficient"},
    {"FmhaBwd", attention_backward, "Composable Kernel"},
    {"fmha_bwd", attention_backward, "Composable Kernel"},
    {"_attn_bwd", attention_backward, "Triton"},
    {"flex_attention_backward", attention_backward, "Triton"},
    {"_bwd_preprocess_do_o_dot", attention_backward, "Triton"},
    {"_bwd_kernel_one_col_block", attention_backward, "Triton"},
    {"bwd_kernel_dk_dv", attention_backward, "Triton"},
    {"bwd_kernel_dq", attention_backward, "Triton"},
    {"bwd_preprocess", attention_backward, "Triton"},
    {"fmha_dgrad", attention_backward, "cuDNN"},

    // Attention forward.
    {"flash_fwd", attention_forward, "FlashAttention-2"},
    {"FlashAttnFwd", attention_forward, "FlashAttention-3"},
    {"prepare_varlen_num_blocks", attention_forward, "FlashAttention-3"},
    {"FlashAttentionForward", attention_forward, "FlashAttention-4"},
    {"flash_fprop", attention_forward, "cuDNN"},
    {"cudnn_generated_fort_native_sdpa", attention_forward, "cuDNN"},
    {"fmha_cutlassF", attention_forward, "memory-efficient"},
    {"FmhaFwd", attention_forward, "Composable Kernel"},
    {"fmha_fwd", attention_forward, "Composable Kernel"},
    {"fmha_v2", attention_forward, "cuDNN"},
    {"_attn_fwd", attention_forward, "Triton"},
    {"attn_fwd", attention_forward, "Triton"},
    {"flex_attention", attention_forward, "Triton"},

    // What models of pictures compute: cuDNN's convolutions are matrix products, and hold "gemm" or "cutlass".
    {"bn_fw_", memory_bound, "norm"},
    {"bn_bw_", memory_bound, "norm"},
    {"nchwToNhwc", memory_bound, "copy"},
    {"nhwcToNchw", memory_bound, "copy"},
    {"computeOffsetsKernel", memory_bound, "index"},
    {"implicit_gemm", product, "convolution"},
    {"ImplicitGemm", product, "convolution"},
    {"implicit_convolve", product, "convolution"},
    {"cutlass_cudnn", product, "convolution"},
    {"scudnn", product, "convolution"},
    {"dgrad_engine", product, "convolution"},
    {"wgrad_alg", product, "convolution"},
    {"winograd", product, "convolution"},

    // Norms before products: names of Transformer Engine hold "transformer_engine::normalization".
    {"rmsnorm", memory_bound, "norm"},
    {"rms_norm", memory_bound, "norm"},
    {"RMSNorm", memory_bound, "norm"},
    {"layer_norm", memory_bound, "norm"},
    {"layernorm", memory_bound, "norm"},
    {"LayerNorm", memory_bound, "norm"},
    {"ln_fwd", memory_bound, "norm"},
    {"ln_bwd", memory_bound, "norm"},
    {"ln_parallel_residual", memory_bound, "norm"},
    {"RowwiseMoments", memory_bound, "norm"},
    {"GammaBetaBackward", memory_bound, "norm"},
    {"GradGammaBeta", memory_bound, "norm"},
    {"cuComputeGradInput", memory_bound, "norm"},

    // Optimizers: their functors are part of the names of multi-tensor kernels.
    {"Adam", memory_bound, "optimizer"},
    {"adam", memory_bound, "optimizer"},
    {"multi_tensor_apply", memory_bound, "optimizer"},
    {"multi_tensor", memory_bound, "optimizer"},
    {"Muon", memory_bound, "optimizer"},

    // Losses, softmax, activations, positions.
    {"cross_entropy", memory_bound, "cross entropy"},
    {"CrossEntropy", memory_bound, "cross entropy"},
    {"online_softmax", memory_bound, "cross entropy"},
    {"nll_loss", memory_bound, "cross entropy"},
    {"softmax", memory_bound, "softmax"},
    {"SoftMax", memory_bound, "softmax"},
    {"Softmax", memory_bound, "softmax"},
    {"swiglu", memory_bound, "activation"},
    {"SwiGLU", memory_bound, "activation"},
    {"geglu", memory_bound, "activation"},
    {"silu", memory_bound, "activation"},
    {"gelu", memory_bound, "activation"},
    {"GELU", memory_bound, "activation"},
    {"GeluCUDA", memory_bound, "activation"},
    {"gated_act", memory_bound, "activation"},
    {"dgated", memory_bound, "activation"},
    {"dswiglu", memory_bound, "activation"},
    {"rope_", memory_bound, "rope"},
    {"_rope", memory_bound, "rope"},
    {"rotary", memory_bound, "rope"},
    {"Rotary", memory_bound, "rope"},

    // The sums of split products, before other reductions.
    {"splitKreduce", product, "cuBLAS"},
    {"splitk_reduce", product, "cuBLAS"},

    // What Inductor fused, and what PyTorch runs element by element, before products: both name types of tensors.
    {"triton_poi_", memory_bound, "fused by Inductor"},
    {"triton_red_", memory_bound, "fused by Inductor"},
    {"triton_per_", memory_bound, "fused by Inductor"},
    {"triton_for_", memory_bound, "fused by Inductor"},
    {"triton__", memory_bound, "fused by Inductor"},
    {"elementwise_kernel", memory_bound, "elementwise"},
    {"reduce_kernel", memory_bound, "reduction"},
    {"indexSelect", memory_bound, "embedding"},
    {"embedding", memory_bound, "embedding"},
    {"EmbeddingBackward", memory_bound, "embedding"},
    {"CatArrayBatchedCopy", memory_bound, "copy"},
    {"fused_dropout", memory_bound, "dropout"},
    {"dropout", memory_bound, "dropout"},

    // Products.
    {"nvjet", product, "cuBLAS (nvjet)"},
    {"GemmGrouped", product, "grouped"},
    {"grouped_gemm", product, "grouped"},
    {"grouped_mm", product, "grouped"},
    {"GroupProblemShape", product, "grouped"},
    {"group_gemm", product, "grouped"},
    {"moe_gemm", product, "grouped"},
    {"m_grouped", product, "grouped"},
    {"deep_gemm::", product, "DeepGEMM"},
    {"xmma_gemm", product, "cuBLAS"},
    {"gemm::", product, "CUTLASS"},
    {"cutlass3x", product, "CUTLASS"},
    {"cutlass::Kernel", product, "CUTLASS"},
    {"cutlass_80", product, "CUTLASS"},
    {"cutlass_75", product, "CUTLASS"},
    {"cutlass_70", product, "CUTLASS"},
    {"Cijk_", product, "Tensile"},
    {"triton_mm", product, "Triton"},
    {"triton_tem_", product, "Triton"},
    {"matmul", product, "Triton"},
    {"gemm", product, "cuBLAS"},
    {"Gemm", product, "cuBLAS"},
    {"GEMM", product, "cuBLAS"},
    {"gemv", product, "cuBLAS"},
    {"cublasLt", product, "cuBLAS"},
    {"bmm_", product, "Triton"},
    {"dot_kernel", product, "cuBLAS"},
    {"reduce_1Block", product, "cuBLAS"},
    {"_884", product, "cuBLAS"},
    {"s16816", product, "cuBLAS"},

    // The rest of what memory bounds.
    {"cast", memory_bound, "cast"},
    {"quantize", memory_bound, "cast"},
    {"amax", memory_bound, "cast"},
    {"transpose", memory_bound, "cast"},
    {"l2norm", memory_bound, "reduction"},
    {"L2Norm", memory_bound, "reduction"},
    {"Reduce", memory_bound, "reduction"},
    {"reduce", memory_bound, "reduction"},
    {"gather", memory_bound, "index"},
    {"scatter", memory_bound, "index"},
    {"index", memory_bound, "index"},
    {"Index", memory_bound, "index"},
    {"permute", memory_bound, "index"},
    {"topk", memory_bound, "index"},
    {"TopK", memory_bound, "index"},
    {"sort", memory_bound, "index"},
    {"Sort", memory_bound, "index"},
    {"kernel_scan", memory_bound, "index"},
    {"DeviceScan", memory_bound, "index"},
    {"cub::", memory_bound, "index"},
    {"compute_grad_weight", memory_bound, "embedding"},
    {"copy", memory_bound, "copy"},
    {"Copy", memory_bound, "copy"},
    {"thd_", memory_bound, "copy"},
    {"split_with_sizes", memory_bound, "copy"},
    {"elementwise", memory_bound, "elementwise"},
    {"element_mul", memory_bound, "elementwise"},
    {"fill_kernel", memory_bound, "elementwise"},
    {"scal_kernel", memory_bound, "elementwise"},
    {"FillFunctor", memory_bound, "elementwise"},
    {"vectorized_", memory_bound, "elementwise"},
    {"at::native::", memory_bound, "elementwise"},
});

struct MessageWord {
  std::string_view text;
  MessageKind kind;
};

// Without underscores and in lower case: NCCL writes ReduceScatter and PyTorch reduce_scatter.
constexpr auto message_words = std::to_array<MessageWord>({
    {"reducescatter", MessageKind::reduce_scatter},
    {"allgather", MessageKind::all_gather},
    {"allreduce", MessageKind::all_reduce},
    {"alltoall", MessageKind::all_to_all},
    {"sendrecv", MessageKind::send_recv},
    {"send", MessageKind::send_recv},
    {"recv", MessageKind::send_recv},
    {"p2p", MessageKind::send_recv},
});

std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '_') continue;
    text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

}  // namespace

std::string_view kernel_class_name(KernelClass kind) {
  constexpr std::array<std::string_view, kernel_classes> names = {
      "attention forward", "attention backward", "products", "collectives", "memory-bound", "copies", "fills",
      "unclassified"};
  return names.at(static_cast<std::size_t>(kind));
}

KernelKind kernel_kind(std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return name.find(row.text) != name.npos; });
  if (found == rows.end()) return {};
  return {found->kind, found->word};
}

std::optional<MessageKind> message_kind_of(std::string_view name) {
  const std::string text = plain(name);
  const auto found = std::find_if(message_words.begin(), message_words.end(),
                                  [&](const MessageWord& word) { return text.find(word.text) != text.npos; });
  if (found == message_words.end()) return std::nullopt;
  return found->kind;
}

}  // namespace hdpsim
