#include "sim/profiler/kernel_class.h"

#include <array>
#include <string_view>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using enum KernelClass;

struct Named {
  std::string_view name;
  KernelClass kind;
};

// Names as profilers of training show them, their template arguments shortened where they are long.
constexpr auto known = std::to_array<Named>({
    // FlashAttention 2
    {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>, false, true>",
     attention_forward},
    {"void pytorch_flash::flash_fwd_splitkv_combine_kernel<pytorch_flash::Flash_fwd_kernel_traits<128>>",
     attention_forward},
    {"void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<128, 64, 128, 8, 4, 4, 4, false, false>>",
     attention_backward},
    {"void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128>>", attention_backward},
    {"void pytorch_flash::flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<128>>", attention_backward},
    // FlashAttention 3
    {"void "
     "cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>>",
     attention_forward},
    {"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnBwdSm90<flash::CollectiveMainloopBwdSm90>>>",
     attention_backward},
    {"void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<cute::C<80>>>>", attention_backward},
    {"void cutlass::device_kernel<flash::FlashAttnBwdPostprocessConvertdQ<cute::tuple<cute::C<80>>>>",
     attention_backward},
    // cuDNN
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0",
     attention_forward},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x4x1_kernel0_0",
     attention_backward},
    {"void cudnn::fusion::compute_dot_do_o_specialized<true, __nv_bfloat16, 128, 128>", attention_backward},
    {"void cudnn::fusion::convert_dq_to_16bits<true, __nv_bfloat16, 128, 2>", attention_backward},
    // Others
    {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
     attention_forward},
    {"fmha_cutlassB_bf16_aligned_128x128_k128_sm80(PyTorchMemEffAttention::AttentionBackwardKernel)",
     attention_backward},
    {"_attn_fwd", attention_forward},
    {"_attn_bwd", attention_backward},
    {"_attn_bwd_preprocess", attention_backward},
    {"triton_tem_fused_flex_attention_1", attention_forward},
    {"triton_tem_fused_flex_attention_backward_3", attention_backward},
    {"void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::TileFmhaShape>>", attention_forward},
    {"void ck_tile::kentry<256, 1, ck_tile::FmhaBwdDQDKDVKernel<ck_tile::BlockFmhaBwd>>", attention_backward},
    // Products
    {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_"
     "cublas",
     product},
    {"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", product},
    {"nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", product},
    {"nvjet_qqtst_128x256_128x4_2x1_v_bz_TNT", product},
    {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true>", product},
    {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>", product},
    {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>>>", product},
    {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<int>>>",
     product},
    {"ampere_sgemm_128x64_tn", product},
    {"void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false>", product},
    {"triton_tem_fused_mm_2", product},
    {"_grouped_gemm_forward_kernel", product},
    {"void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u, 1u, 128u, 128u>", product},
    {"Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1", product},
    // NCCL
    {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", collective},
    {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", collective},
    {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", collective},
    {"ncclSymDevKernel_AllGather_ST(ncclSymDevArgs)", collective},
    {"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)", collective},
    // Memory-bound: PyTorch
    {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>", memory_bound},
    {"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>",
     memory_bound},
    {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float>>>",
     memory_bound},
    {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>", memory_bound},
    {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>", memory_bound},
    {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float>", memory_bound},
    {"void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>",
     memory_bound},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::TensorListMetadata<4>, "
     "at::native::FusedAdamMathFunctor<float>>",
     memory_bound},
    {"void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<unsigned short>", memory_bound},
    {"void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int>", memory_bound},
    {"void at::native::embedding_backward_feature_kernel<c10::BFloat16, float, long>", memory_bound},
    {"triton_poi_fused_mul_silu_3", memory_bound},
    {"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", memory_bound},
    {"void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::AgentScanPolicy<128>>", memory_bound},
    // Memory-bound: Apex, Transformer Engine, Megatron-LM, Liger
    {"void (anonymous namespace)::cuApplyLayerNorm<float, float, c10::BFloat16>", memory_bound},
    {"void (anonymous namespace)::cuComputePartGradGammaBeta<c10::BFloat16, float, c10::BFloat16>", memory_bound},
    {"void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamCapturableFunctor<float, float>>", memory_bound},
    {"void transformer_engine::normalization::(anonymous namespace)::rmsnorm_fwd_tuned_kernel<Kernel_traits>",
     memory_bound},
    {"void transformer_engine::detail::cast_transpose_fused_kernel<false, false, float, 8, 4>", memory_bound},
    {"void transformer_engine::fused_rope_forward_kernel<__nv_bfloat16>", memory_bound},
    {"void transformer_engine::gated_act_kernel<float, transformer_engine::silu>", memory_bound},
    {"void scaled_upper_triang_masked_softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 11>", memory_bound},
    {"liger_cross_entropy_kernel", memory_bound},
    {"_rms_norm_forward_kernel", memory_bound},
    {"triton__0d1d2d3d", memory_bound},
    // Convolutions
    {"cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", product},
    {"cudnn_infer_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", product},
    {"void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", product},
    {"sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16", product},
    {"void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x128_32x3_nhwc_align4>", product},
    {"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>", memory_bound},
    {"void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>", memory_bound},
});

TEST_CASE("kernels of the libraries that train are told by their names", "[profiler]") {
  for (const Named& kernel : known) {
    INFO(kernel.name);
    CHECK(kernel_class_name(kernel_kind(kernel.name).kind) == kernel_class_name(kernel.kind));
  }
}

TEST_CASE("a name that says nothing known is unclassified", "[profiler]") {
  for (const char* name :
       {"", "my_kernel", "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16>>(SSMParamsBase)"}) {
    CHECK(kernel_kind(name).kind == unknown);
  }
}

TEST_CASE("classified kernels have a word for their kind", "[profiler]") {
  for (const Named& kernel : known) CHECK_FALSE(kernel_kind(kernel.name).word.empty());
  CHECK(kernel_kind("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT").word == "cuBLAS (nvjet)");
  CHECK(kernel_kind("_rms_norm_forward_kernel").word == "norm");
}

TEST_CASE("the kind of a collective is in the name of NCCL's kernel and of PyTorch's operation", "[profiler]") {
  CHECK(message_kind_of("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)") ==
        MessageKind::all_gather);
  CHECK(message_kind_of("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL") == MessageKind::reduce_scatter);
  CHECK(message_kind_of("ncclDevKernel_AllReduce_Sum_f32_TREE_LL") == MessageKind::all_reduce);
  CHECK(message_kind_of("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)") == MessageKind::send_recv);
  CHECK(message_kind_of("_allgather_base") == MessageKind::all_gather);
  CHECK(message_kind_of("reduce_scatter_tensor_coalesced") == MessageKind::reduce_scatter);
  CHECK(message_kind_of("all_to_allv") == MessageKind::all_to_all);
  CHECK_FALSE(message_kind_of("ncclDevKernel_Broadcast_RING_LL").has_value());
  CHECK_FALSE(message_kind_of("ncclDevKernel_Reduce_Sum_f32_RING_LL").has_value());
}

}  // namespace
}  // namespace hdpsim
