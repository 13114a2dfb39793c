#include "sim/import/impl/torchtitan_places.h"

#include <array>
#include <string_view>

#include "sim/import/impl/torchtitan_rules.h"

namespace hdpsim {
namespace {

/// A key of a study, and a key of a file that states it. Of several the first that is there counts.
struct StatedByKey {
  std::string_view path;
  std::string_view table;
  std::string_view key;
};

constexpr auto stated_by_keys = std::to_array<StatedByKey>({
    {"cluster", "parallelism", "data_parallel_shard_degree"},
    {"cluster", "parallelism", "data_parallel_replicate_degree"},
    {"model", "model", "flavor"},
    {"model", "model", "name"},
    {"data.lengths", "training", "seq_len"},
    {"data.context", "training", "local_batch_size"},
    {"data.context", "training", "seq_len"},
    {"data.tokens_per_step", "training", "global_batch_size"},
    {"data.tokens_per_step", "training", "local_batch_size"},
    {"mesh.tp", "parallelism", "tensor_parallel_degree"},
    {"mesh.pp", "parallelism", "pipeline_parallel_degree"},
    {"mesh.ep", "parallelism", "expert_parallel_degree"},
    {"mesh.capacity", "training", "seq_len"},
    {"mesh.schedule", "parallelism", "pipeline_parallel_schedule"},
    {"mesh.schedule", "parallelism", "pipeline_parallel_degree"},
    {"mesh.virtual_stages", "parallelism", "pipeline_parallel_layers_per_stage"},
    {"mesh.virtual_stages", "parallelism", "pipeline_parallel_schedule"},
    {"mesh.account_for_embedding", "parallelism", "pipeline_parallel_first_stage_less_layers"},
    {"mesh.account_for_loss", "parallelism", "pipeline_parallel_last_stage_less_layers"},
    {"mesh.recompute", "activation_checkpoint", "mode"},
    {"mesh.zero", "parallelism", "fsdp_reshard_after_forward"},
    {"mesh.zero", "parallelism", "data_parallel_shard_degree"},
    {"mesh.shard_ranks", "parallelism", "data_parallel_replicate_degree"},
    {"mesh.gradients", "training", "dtype"},
    {"mesh.moments", "training", "dtype"},
    {"mesh.cp_comm_type", "parallelism", "context_parallel_rotate_method"},
    {"mesh.tp_comm_overlap", "parallelism", "enable_async_tensor_parallel"},
    {"mesh", "parallelism", "tensor_parallel_degree"},
    {"mesh", "parallelism", "pipeline_parallel_degree"},
    {"kernels.linear", "model", "converters"},
    {"memory.loss", "compile", "enable"},
    {"moe", "parallelism", "expert_parallel_degree"},
    {"plans", "parallelism", "context_parallel_degree"},
});

const Value* value_in(const Value& root, std::string_view table, std::string_view key) {
  const Value* section = root.find(table);
  return section == nullptr ? nullptr : section->find(key);
}

}  // namespace

std::map<std::string, Position> places_of_torchtitan(const Value& root) {
  std::map<std::string, Position> places;
  for (const auto& [path, table, key] : stated_by_keys) {
    const Value* value = value_in(root, table, key);
    for (const std::string_view home : homes_of_degrees()) {
      if (value == nullptr && table == homes_of_degrees().front()) value = value_in(root, home, key);
    }
    if (value != nullptr) places.emplace(path, value->position);
  }
  return places;
}

}  // namespace hdpsim
