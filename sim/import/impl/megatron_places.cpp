#include "sim/import/impl/megatron_places.h"

#include <array>
#include <string_view>

namespace hdpsim {
namespace {

/// A key of a study, and an argument that states it. Of several the first that is there counts.
struct StatedKey {
  std::string_view path;
  std::string_view argument;
};

constexpr auto stated_keys = std::to_array<StatedKey>({
    {"cluster", "nnodes"},
    {"cluster", "nproc_per_node"},
    {"cluster", "world_size"},
    {"model", "num_layers"},
    {"model", "hybrid_layer_pattern"},
    {"data.lengths", "seq_length"},
    {"data.lengths", "encoder_seq_length"},
    {"data.context", "seq_length"},
    {"data.context", "encoder_seq_length"},
    {"data.tokens_per_step", "global_batch_size"},
    {"mesh.tp", "tensor_model_parallel_size"},
    {"mesh.pp", "pipeline_model_parallel_size"},
    {"mesh.ep", "expert_model_parallel_size"},
    {"mesh.capacity", "seq_length"},
    {"mesh.capacity", "encoder_seq_length"},
    {"mesh.schedule", "pipeline_model_parallel_size"},
    {"mesh.virtual_stages", "num_virtual_stages_per_pipeline_rank"},
    {"mesh.virtual_stages", "num_layers_per_virtual_pipeline_stage"},
    {"mesh.virtual_stages", "virtual_pipeline_model_parallel_size"},
    {"mesh.overlap_p2p_comm", "overlap_p2p_comm"},
    {"mesh.first_stage_layers", "decoder_first_pipeline_num_layers"},
    {"mesh.last_stage_layers", "decoder_last_pipeline_num_layers"},
    {"mesh.account_for_embedding", "account_for_embedding_in_pipeline_split"},
    {"mesh.account_for_loss", "account_for_loss_in_pipeline_split"},
    {"mesh.recompute", "recompute_modules"},
    {"mesh.recompute", "recompute_granularity"},
    {"mesh.recompute", "recompute_activations"},
    {"mesh.zero", "data_parallel_sharding_strategy"},
    {"mesh.zero", "use_torch_fsdp2"},
    {"mesh.zero", "use_megatron_fsdp"},
    {"mesh.zero", "use_distributed_optimizer"},
    {"mesh.shard_ranks", "num_distributed_optimizer_instances"},
    {"mesh.optimizer", "optimizer"},
    {"mesh.moments", "exp_avg_dtype"},
    {"mesh.gradients", "grad_reduce_in_bf16"},
    {"mesh.gradients", "accumulate_allreduce_grads_in_fp32"},
    {"mesh.gradient_accumulation_fusion", "gradient_accumulation_fusion"},
    {"mesh.overlap_grad_reduce", "overlap_grad_reduce"},
    {"mesh.overlap_param_gather", "overlap_param_gather"},
    {"mesh.bucket_parameters", "ddp_bucket_size"},
    {"mesh.cp_comm_type", "cp_comm_type"},
    {"mesh.a2a_ranks", "hierarchical_context_parallel_sizes"},
    {"mesh.sequence_parallel", "sequence_parallel"},
    {"mesh.tp_comm_overlap", "tp_comm_overlap"},
    {"mesh.dropout", "hidden_dropout"},
    {"mesh.activation_input", "activation_func_fp8_input_store"},
    {"mesh", "tensor_model_parallel_size"},
    {"mesh", "pipeline_model_parallel_size"},
    {"kernels.linear", "fp8_recipe"},
    {"kernels.linear", "fp8"},
    {"kernels.attention", "attention_backend"},
    {"kernels.launch", "cuda_graph_impl"},
    {"memory.loss", "cross_entropy_loss_fusion"},
    {"moe.capacity_factor", "moe_expert_capacity_factor"},
    {"moe.dispatch", "moe_token_dispatcher_type"},
    {"moe", "num_experts"},
    {"plans", "context_parallel_size"},
});

}  // namespace

std::map<std::string, Position> places_of(const MegatronArguments& arguments) {
  std::map<std::string, Position> places;
  for (const auto& [path, argument] : stated_keys) {
    if (arguments.has(argument)) places.emplace(path, arguments.position(argument));
  }
  return places;
}

}  // namespace hdpsim
