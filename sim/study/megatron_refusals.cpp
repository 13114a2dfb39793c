#include "sim/study/megatron_refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/model/sharing_form.h"
#include "sim/program/chunk_map.h"

namespace hdpsim {
namespace {

// Whether stages have chunks that are interleaved.
bool is_interleaved(std::string_view schedule) {
  return schedule == "interleaved" || schedule == "combined-1f1b";
}

// The stages that are not stated have as many layers each: nothing may be left over.
std::string left_over_layers(const PointSpec& point) {
  const LayerSplit& split = point.pipeline.split;
  if (!split.layout.empty()) return "";
  const std::int64_t counted = (split.counts_embedding ? 1 : 0) + (split.counts_loss ? 1 : 0);
  const std::int64_t stated = (split.first_stage > 0 ? 1 : 0) + (split.last_stage > 0 ? 1 : 0);
  const std::int64_t layers = point.model.layers + counted - split.first_stage - split.last_stage;
  const std::int64_t chunks = (point.mesh.pp - stated) * point.pipeline.virtual_stages;
  if (chunks == 0 || layers % chunks == 0) return "";
  const std::string of_chunks =
      point.pipeline.virtual_stages > 1 ? fmt::format(" of {} chunks", point.pipeline.virtual_stages) : "";
  return fmt::format("{} layers{} on {} stages{}, as nothing may be left over", layers,
                     counted > 0 ? ", counting embedding or loss," : "", point.mesh.pp - stated, of_chunks);
}

std::string unhidden_messages(const PointSpec& point) {
  if (!is_interleaved(point.pipeline.schedule) || point.mesh.pp != 2 || point.pipeline.overlaps_messages()) return "";
  return "the interleaved schedule on 2 stages without overlap_p2p_comm";
}

// What it refuses of the group that a micro-batch has, of so many ranks.
std::string group_problem(const PointSpec& point, std::int64_t ranks) {
  const std::int64_t heads = common_kv_heads(point.model, point.mesh.tp);
  return sharing_form(point.recipe.key_exchange).megatron_problem(heads, point.recipe, ranks);
}

std::string refused_group(const PointSpec& point, const Plan& plan) {
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    std::string problem = group_problem(point, std::ssize(micro_batch.group));
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string uneven_micro_batches(const PointSpec& point, const Plan& plan) {
  const std::int64_t stages = point.mesh.pp;
  if (!is_interleaved(point.pipeline.schedule) || stages == 1) return "";
  for (std::size_t rank = 0; rank < plan.schedule.size(); ++rank) {
    const std::string problem = interleaving_problem(std::ssize(plan.schedule[rank]), stages, stages);
    if (!problem.empty()) return fmt::format("{} (rank {} of step {})", problem, rank, plan.step);
  }
  return "";
}

std::vector<std::string> those(std::initializer_list<std::string> problems) {
  std::vector<std::string> found(problems);
  std::erase(found, "");
  return found;
}

}  // namespace

std::string interleaving_problem(std::int64_t micro_batches, std::int64_t stages, std::int64_t group) {
  const std::int64_t last = micro_batches % group;
  if (micro_batches >= group && (last == 0 || last >= stages)) return "";
  const std::string rule =
      group == stages ? fmt::format("must be a multiple of the {} stages", stages)
                      : fmt::format("must be whole groups of {}, or leave one of at least {} over", group, stages);
  return fmt::format("{} micro-batches of a replica under the interleaved schedule, which {}", micro_batches, rule);
}

std::vector<std::string> megatron_mesh_problems(const PointSpec& point) {
  const std::string_view schedule = point.pipeline.schedule;
  if (point.mesh.pp == 1 || (schedule != "1f1b" && !is_interleaved(schedule))) return {};
  return those({left_over_layers(point), unhidden_messages(point)});
}

bool may_refuse_plans(const PointSpec& point) {
  if (point.mesh.pp > 1 && point.pipeline.virtual_stages > 1) return true;
  for (std::int64_t ranks = 2; ranks <= point.mesh.hdp; ++ranks) {
    if (!group_problem(point, ranks).empty()) return true;
  }
  return false;
}

std::vector<std::string> megatron_plan_problems(const PointSpec& point, const Plan& plan) {
  return those({uneven_micro_batches(point, plan), refused_group(point, plan)});
}

}  // namespace hdpsim
