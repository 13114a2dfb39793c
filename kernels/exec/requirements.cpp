#include "kernels/exec/requirements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/exec/impl/executed_sharing.h"
#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/impl/layer_mixing.h"
#include "kernels/spec/error.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/product_format.h"
#include "sim/plan/updates.h"
#include "sim/program/streamed_schedule.h"

namespace hdpsim::kernels::exec {
namespace {

/// What layers may have, and the executor has not.
struct NotExecuted {
  bool (*has)(const Layer& layer, std::int64_t devices);
  std::string_view what;
};

constexpr NotExecuted not_executed[] = {
    {[](const Layer& l, std::int64_t) { return l.linear && !is_lightning(*l.linear); },
     "its tokens are mixed in linear time, and not by lightning attention"},
    {[](const Layer& l, std::int64_t) { return !mixes_tokens(l); }, "it has layers without attention"},
    {[](const Layer& l, std::int64_t) { return !has_mlp(l); }, "it has layers without an MLP"},
    {[](const Layer& l, std::int64_t) { return l.gated_output || l.output_bias; },
     "its attention's output has a gate or a bias"},
    {[](const Layer& l, std::int64_t) { return l.query_latent > 0; }, "its queries are made through a latent alone"},
    {[](const Layer& l, std::int64_t) { return l.sinks; }, "its attention has sinks"},
    {[](const Layer& l, std::int64_t) { return l.joins; }, "it has layers that predict further tokens"},
    {[](const Layer& l, std::int64_t) { return l.norms == 1; }, "its layers have one norm"},
    {[](const Layer& l, std::int64_t) { return l.norms == 4; }, "its layers have four norms"},
    {[](const Layer& l, std::int64_t) { return l.qkv_biases; }, "its queries, keys and values have biases"},
    {[](const Layer& l, std::int64_t) { return l.indexer.has_value(); },
     "an indexer chooses the keys that its tokens see"},
    {[](const Layer& l, std::int64_t) { return l.qk_norm; }, "its queries and keys have norms"},
    {[](const Layer& l, std::int64_t) { return l.biases; }, "it has biases"},
    {[](const Layer& l, std::int64_t) { return !l.gated_mlp; }, "its MLP has no gate"},
    {[](const Layer& l, std::int64_t) { return l.moe && l.moe->latent > 0; }, "its experts work in a latent"},
    {[](const Layer& l, std::int64_t) { return l.moe && l.moe->groups > 1; },
     "its router chooses groups of experts first"},
    {[](const Layer& l, std::int64_t) { return l.moe && l.moe->shared_gate; }, "its shared experts have a gate"},
    {[](const Layer& l, std::int64_t) { return l.moe && l.moe->biases; }, "its experts have biases"},
    {[](const Layer& l, std::int64_t tp) { return l.moe && tp > 1; }, "its experts are executed with tp 1 alone"},
    {[](const Layer& l, std::int64_t tp) { return l.latent && tp > 1; }, "its latents are executed with tp 1 alone"},
    {[](const Layer& l, std::int64_t tp) { return l.linear && tp > 1; },
     "its linear mixing is executed with tp 1 alone"},
};

bool has_kernels(const AttentionHeads& heads) {
  const bool alike = heads.value_width() == heads.dim;
  return alike ? heads.dim == 64 || heads.dim == 128 || heads.dim == 256
               : heads.dim == 192 && heads.value_width() == 128;
}

// Of layers of one kind.
std::vector<std::string> problems_of(const Transformer& kind, std::int64_t devices) {
  std::vector<std::string> problems;
  for (const NotExecuted& each : not_executed) {
    if (each.has(kind, devices)) problems.emplace_back(each.what);
  }
  if (const AttentionHeads heads = heads_of(kind); heads.heads > 0 && !has_kernels(heads)) {
    problems.push_back(fmt::format("its heads have dimension {}, and values of {}: not 64, 128, 256, or 192 and 128",
                                   heads.dim, heads.value_width()));
  }
  for (const auto& [what, count] : cut_parts(kind, false)) {
    if (count % devices == 0) continue;
    problems.push_back(fmt::format("its {} {} do not divide among {} devices", count, what, devices));
  }
  return problems;
}

// The reasons why a model cannot be executed on so many tensor-parallel devices, over all kinds of its layers.
std::vector<std::string> execution_problems(const Transformer& model, std::int64_t devices) {
  std::vector<std::string> problems;
  const auto add = [&](std::string problem) {
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) problems.push_back(std::move(problem));
  };
  for (const Transformer& kind : of_each_kind(model)) {
    for (std::string& problem : problems_of(kind, devices)) add(std::move(problem));
  }
  if (model.predictions > 1) add("it predicts several tokens");
  if (model.learned_positions > 0) add("its positions are learned");
  if (problems.empty()) return problems;
  return {fmt::format("model '{}' cannot be executed: {}", model.name, fmt::join(problems, ", "))};
}

bool splits_backward(const PipelineOptions& pipeline, std::int64_t stages) {
  const auto kinds = make_schedule(pipeline, stages)->kinds();
  return std::find(kinds.begin(), kinds.end(), PassKind::weight_gradient) != kinds.end();
}

// Whether queries, keys and values are products of a layer's input, and there are no experts.
bool is_plain(const Transformer& model) {
  const std::vector<Transformer> kinds = of_each_kind(model);
  return std::none_of(kinds.begin(), kinds.end(),
                      [](const Transformer& kind) { return kind.latent || kind.linear || kind.moe; });
}

void refuse_if(std::string_view reason) {
  if (!reason.empty()) throw UnsupportedInput(std::string(reason));
}

}  // namespace

void require_executable(const Transformer& model, std::int64_t devices) {
  for (const std::string& problem : execution_problems(model, devices)) throw UnsupportedInput(problem);
}

void require_executable(const Transformer& model, const Mesh& mesh, const PipelineOptions& pipeline) {
  std::vector<std::string> problems = execution_problems(model, mesh.tp);
  const LayerDeal deal = ChunkMap(pipeline, mesh.pp).deal();
  const std::string of_pipeline = deal.problem(model.layers);
  if (!of_pipeline.empty()) {
    problems.push_back(fmt::format("its {} layers make no such pipeline: {}", model.layers, of_pipeline));
  } else if (deal.layers(model.layers, 0).count == 0 || deal.layers(model.layers, deal.chunks() - 1).count == 0) {
    problems.emplace_back(
        "an embedding or a loss is a chunk without a layer, which is simulated, and not executed: leave "
        "account_for_embedding and account_for_loss out, or choose fewer stages");
  }
  if (is_streamed(pipeline)) {
    problems.push_back(fmt::format("weights are not streamed from the host: the schedule '{}' is simulated alone",
                                   pipeline.schedule));
  }
  if (of_pipeline.empty() && splits_backward(pipeline, mesh.pp) && !is_plain(model)) {
    problems.emplace_back(
        "latents, linear mixing and experts are executed by schedules whose backward is one pass: choose 1f1b or "
        "interleaved");
  }
  if (!problems.empty()) throw UnsupportedInput(fmt::format("{}", fmt::join(problems, "; ")));
}

void require_executable_on_gpu(const Transformer& model) {
  const std::vector<Transformer> kinds = of_each_kind(model);
  if (kinds.size() == 1 && is_plain(model) && attention_reach(model) == 0) return;
  throw UnsupportedInput(
      "layers of several kinds, windows, latents, linear mixing and experts are executed on CPUs alone");
}

void require_executable(const Recipe& recipe) {
  if (recipe.optimizer != Optimizer::adam) {
    throw UnsupportedInput("other optimizers than Adam are simulated, and not executed: leave 'optimizer' out");
  }
  if (is_narrow(recipe.products)) {
    throw UnsupportedInput("products in fp8 or fewer bits are simulated, and not executed: leave kernels.linear out");
  }
  if (recipe.lora.is_on()) {
    throw UnsupportedInput("adapters of frozen models are simulated, and not executed: leave 'lora' out");
  }
  if (recipe.host.optimizer > 0 || recipe.host.parameters) {
    throw UnsupportedInput("states in host memory are simulated, and not executed: leave 'host' out");
  }
  if (recipe.recompute == Recompute::per_operation || recipe.layers == LayerKernels::compiled) {
    throw UnsupportedInput(
        "what PyTorch saves operation by operation is simulated, and not executed: list modules in "
        "'recompute', and leave kernels.layers out");
  }
  refuse_if(executed_sharing(recipe.key_exchange).refused);
}

void require_executable_on_gpu(KeyExchange key_exchange) {
  refuse_if(executed_sharing(key_exchange).refused_on_gpus);
}

void require_executable_on_gpu(const Plan& plan) {
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    if (const auto own = own_exchange(micro_batch)) refuse_if(executed_sharing(*own).refused_on_gpus);
  }
}

namespace {

[[noreturn]] void refuse(const std::string& reason) {
  throw UnsupportedInput(reason);
}

template <class Is>
bool has_micro_batch(const Plan& plan, Is is) {
  return std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), is);
}

bool is_shared(const MicroBatch& micro_batch) {
  return micro_batch.group.size() > 1;
}

bool is_cut_otherwise(const MicroBatch& micro_batch) {
  return is_shared(micro_batch) && micro_batch.cut != TokenCut::per_document;
}

// How groups share sequences.
void require_executable_groups(const Plan& plan, KeyExchange key_exchange) {
  if (plan.expert_ranks != 1) refuse("the plan has expert groups over several ranks, which cannot be executed");
  if (has_micro_batch(plan, [](const MicroBatch& micro_batch) { return micro_batch.token_wise; })) {
    refuse("the plan offloads token-wise, which cannot be executed: choose offload: auto or a ratio");
  }
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    if (const auto own = own_exchange(micro_batch)) refuse_if(executed_sharing(*own).refused);
  }
  const ExecutedSharing sharing = executed_sharing(key_exchange);
  if (has_micro_batch(plan, is_cut_otherwise)) refuse_if(sharing.refused_cuts);
  const auto has_local = [](const MicroBatch& micro_batch) { return !micro_batch.local.empty(); };
  if (has_micro_batch(plan, has_local)) refuse_if(sharing.refused_local);
}

// What is there beside one optimizer step on whole tokens of the data.
void require_executable_data(const Plan& plan) {
  if (update_count(plan) > 1) {
    refuse(
        fmt::format("the plan takes {} optimizer steps from one batch, which is simulated, and not executed: leave "
                    "out the policy's options that cut a batch into mini-batches",
                    update_count(plan)));
  }
  if (has_micro_batch(plan, [](const MicroBatch& micro_batch) { return micro_batch.padded; })) {
    refuse("the plan pads sequences, which is simulated, and not executed: choose packed batches, and no rounding");
  }
}

// What layers that are not plain attention to all tokens are not executed with.
void require_executable_layers(const Plan& plan, const Transformer& model, KeyExchange key_exchange) {
  const std::vector<Transformer> kinds = of_each_kind(model);
  const auto has_kind = [&](auto is) { return std::any_of(kinds.begin(), kinds.end(), is); };
  const bool in_chunks = has_kind([](const Transformer& kind) { return kind.attention_chunk > 0; });
  const std::string_view refused = executed_sharing(key_exchange).refused_chunks;
  if (in_chunks && !refused.empty() && has_micro_batch(plan, is_shared)) {
    refuse(fmt::format("tokens of '{}' see those of their chunk, {}", model.name, refused));
  }
  const bool mixes = has_kind([](const Transformer& kind) { return kind.linear.has_value(); });
  if (mixes && has_micro_batch(plan, is_cut_otherwise)) {
    refuse(
        fmt::format("tokens of '{}' are mixed in linear time, which is executed for documents that are cut over their "
                    "group alone: choose cp_cut: per_document",
                    model.name));
  }
  if (mixes && has_chunks_in_order(plan)) {
    refuse(
        fmt::format("tokens of '{}' are mixed in linear time, which is not executed for chunks of a sequence in order",
                    model.name));
  }
  const auto offloads = [](const MicroBatch& micro_batch) { return micro_batch.offloads(); };
  if (kinds.size() > 1 && has_micro_batch(plan, offloads)) {
    refuse(
        fmt::format("the plan offloads, which is not executed for layers of several kinds as '{}' has: choose "
                    "offload: none",
                    model.name));
  }
}

}  // namespace

void require_executable(const Plan& plan, const Transformer& model, const TokenSource& tokens, std::int64_t ranks,
                        const LayerDeal& deal, KeyExchange key_exchange) {
  if (plan.ranks != ranks) refuse(fmt::format("the plan is for {} ranks, but there are {}", plan.ranks, ranks));
  require_executable_data(plan);
  require_executable_groups(plan, key_exchange);
  require_executable_layers(plan, model, key_exchange);
  if (plan.layers != deal.typical(model.layers)) {
    const std::string where = deal.chunks() == 1 ? "" : fmt::format(" in each of {} parts", deal.chunks());
    refuse(fmt::format("the plan is for a model of {} layers, '{}' has {}{}", plan.layers, model.name,
                       deal.typical(model.layers), where));
  }
  if (tokens.vocabulary() > model.vocabulary) {
    refuse(fmt::format("the data have a vocabulary of {}, '{}' has one of {}", tokens.vocabulary(), model.name,
                       model.vocabulary));
  }
}

}  // namespace hdpsim::kernels::exec
