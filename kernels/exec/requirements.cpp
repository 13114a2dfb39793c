#include "kernels/exec/requirements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/exec/impl/sharing_forms.h"
#include "kernels/exec/parameters.h"
#include "kernels/spec/error.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"

namespace hdpsim::kernels::exec {

namespace {

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

void require_executable(const Transformer& model, const Mesh& mesh, const PipelineOptions& pipeline) {
  std::vector<std::string> problems;
  const std::vector<std::string> of_model = execution_problems(model, static_cast<int>(mesh.tp));
  if (!of_model.empty()) {
    problems.push_back(fmt::format("model '{}' cannot be executed: {}", model.name, fmt::join(of_model, ", ")));
  }
  const LayerDeal deal = ChunkMap(pipeline, mesh.pp).deal();
  const std::string of_pipeline = deal.problem(model.layers);
  if (!of_pipeline.empty()) {
    problems.push_back(fmt::format("its {} layers make no such pipeline: {}", model.layers, of_pipeline));
  } else if (deal.layers(model.layers, 0).count == 0 || deal.layers(model.layers, deal.chunks() - 1).count == 0) {
    problems.emplace_back(
        "an embedding or a loss is a chunk without a layer, which is simulated, and not executed: leave "
        "account_for_embedding and account_for_loss out, or choose fewer stages");
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
  refuse_if(executed_sharing(recipe.key_exchange).refused);
}

void require_executable_on_gpu(KeyExchange key_exchange) {
  refuse_if(executed_sharing(key_exchange).refused_on_gpus);
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
