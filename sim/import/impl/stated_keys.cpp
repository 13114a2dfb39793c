#include "sim/import/impl/stated_keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "sim/import/impl/torchtitan_keys.h"

namespace hdpsim {
namespace {

/// A key of a study, and the names of what states it, with blanks between them: the first that is there counts.
struct StatedKey {
  std::string_view path;
  std::string_view names;
};

constexpr auto by_arguments = std::to_array<StatedKey>({
    {"cluster", "nnodes nproc_per_node world_size"},
    {"model", "num_layers hybrid_layer_pattern"},
    {"data.lengths", "seq_length encoder_seq_length"},
    {"data.context", "seq_length encoder_seq_length"},
    {"data.tokens_per_step", "global_batch_size"},
    {"mesh.tp", "tensor_model_parallel_size"},
    {"mesh.pp", "pipeline_model_parallel_size"},
    {"mesh.ep", "expert_model_parallel_size"},
    {"mesh.etp", "expert_tensor_parallel_size"},
    {"mesh.capacity", "seq_length encoder_seq_length"},
    {"mesh.schedule", "pipeline_model_parallel_size"},
    {"mesh.virtual_stages",
     "num_virtual_stages_per_pipeline_rank num_layers_per_virtual_pipeline_stage "
     "virtual_pipeline_model_parallel_size"},
    {"training.overlap_p2p_comm", "overlap_p2p_comm"},
    {"mesh.first_stage_layers", "decoder_first_pipeline_num_layers"},
    {"mesh.last_stage_layers", "decoder_last_pipeline_num_layers"},
    {"mesh.account_for_embedding", "account_for_embedding_in_pipeline_split"},
    {"mesh.account_for_loss", "account_for_loss_in_pipeline_split"},
    {"training.recompute", "recompute_modules recompute_granularity recompute_activations"},
    {"mesh.zero", "data_parallel_sharding_strategy use_torch_fsdp2 use_megatron_fsdp use_distributed_optimizer"},
    {"mesh.shard_ranks", "num_distributed_optimizer_instances"},
    {"training.optimizer", "optimizer"},
    {"training.moments", "exp_avg_dtype"},
    {"training.gradients", "grad_reduce_in_bf16 accumulate_allreduce_grads_in_fp32"},
    {"training.gradient_accumulation_fusion", "gradient_accumulation_fusion"},
    {"training.overlap_grad_reduce", "overlap_grad_reduce"},
    {"training.overlap_param_gather", "overlap_param_gather"},
    {"training.bucket_parameters", "ddp_bucket_size"},
    {"mesh.cp_comm_type", "cp_comm_type"},
    {"mesh.a2a_ranks", "hierarchical_context_parallel_sizes"},
    {"training.sequence_parallel", "sequence_parallel"},
    {"training.tp_comm_overlap", "tp_comm_overlap"},
    {"training.dropout", "hidden_dropout"},
    {"training.activation_input", "activation_func_fp8_input_store"},
    {"mesh", "tensor_model_parallel_size pipeline_model_parallel_size"},
    {"kernels.linear", "fp4 fp8_recipe fp8"},
    {"kernels.attention", "attention_backend"},
    {"kernels.launch", "cuda_graph_impl"},
    {"training.loss", "cross_entropy_loss_fusion"},
    {"moe.capacity_factor", "moe_expert_capacity_factor"},
    {"moe.dispatch", "moe_token_dispatcher_type"},
    {"moe", "num_experts"},
    {"plans", "context_parallel_size"},
});

// Keys of `parallelism`, and those of other tables with their names in front.
constexpr auto by_torchtitan = std::to_array<StatedKey>({
    {"cluster", "data_parallel_shard_degree data_parallel_replicate_degree"},
    {"model", "model.flavor model.name"},
    {"data.lengths", "training.seq_len"},
    {"data.context", "training.local_batch_size training.seq_len"},
    {"data.tokens_per_step", "training.global_batch_size training.local_batch_size"},
    {"mesh.tp", "tensor_parallel_degree"},
    {"mesh.pp", "pipeline_parallel_degree"},
    {"mesh.ep", "expert_parallel_degree"},
    {"mesh.capacity", "training.seq_len"},
    {"mesh.schedule", "pipeline_parallel_schedule pipeline_parallel_degree"},
    {"mesh.virtual_stages", "pipeline_parallel_layers_per_stage pipeline_parallel_schedule"},
    {"mesh.account_for_embedding", "pipeline_parallel_first_stage_less_layers"},
    {"mesh.account_for_loss", "pipeline_parallel_last_stage_less_layers"},
    {"training.recompute", "activation_checkpoint.mode"},
    {"training.early_stop", "activation_checkpoint.early_stop activation_checkpoint.mode"},
    {"mesh.zero", "fsdp_reshard_after_forward data_parallel_shard_degree"},
    {"mesh.shard_ranks", "data_parallel_replicate_degree"},
    {"training.gradients", "training.dtype"},
    {"training.moments", "training.dtype"},
    {"mesh.cp_comm_type", "context_parallel_rotate_method"},
    {"training.tp_comm_overlap", "enable_async_tensor_parallel"},
    {"mesh", "tensor_parallel_degree pipeline_parallel_degree"},
    {"kernels.linear", "model.converters"},
    {"training.loss", "compile.enable training.compile"},
    {"kernels.layers", "compile.enable training.compile"},
    {"training.reduction", "training.mixed_precision_reduce"},
    {"training.gather", "float8.enable_fsdp_float8_all_gather"},
    {"moe", "expert_parallel_degree"},
    {"plans", "context_parallel_degree"},
});

// `position_of`: of a name; empty if it is not there.
template <class PositionOf>
std::map<std::string, Position> places_in(std::span<const StatedKey> keys, const PositionOf& position_of) {
  std::map<std::string, Position> places;
  for (const auto& [path, names] : keys) {
    for (std::size_t at = 0; at < names.size() && places.count(std::string(path)) == 0;) {
      const std::size_t end = std::min(names.find(' ', at), names.size());
      const std::optional<Position> position = position_of(names.substr(at, end - at));
      if (position) places.emplace(path, *position);
      at = end + 1;
    }
  }
  return places;
}

std::optional<Position> position_in(const Value& root, std::string_view table, std::string_view key) {
  const Value* section = root.find(table);
  const Value* value = section == nullptr ? nullptr : section->find(key);
  return value == nullptr ? std::nullopt : std::optional(value->position);
}

}  // namespace

std::map<std::string, Position> places_of(const MegatronArguments& arguments) {
  return places_in(by_arguments, [&](std::string_view name) {
    return arguments.has(name) ? std::optional(arguments.position(name)) : std::nullopt;
  });
}

std::map<std::string, Position> places_of_torchtitan(const Value& root) {
  return places_in(by_torchtitan, [&](std::string_view name) -> std::optional<Position> {
    const std::size_t dot = name.find('.');
    if (dot != std::string_view::npos) return position_in(root, name.substr(0, dot), name.substr(dot + 1));
    for (const std::string_view home : homes_of_degrees()) {
      if (const auto position = position_in(root, home, name)) return position;
    }
    return std::nullopt;
  });
}

}  // namespace hdpsim
