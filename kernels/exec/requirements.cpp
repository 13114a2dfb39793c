#include "kernels/exec/requirements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/exec/parameters.h"
#include "kernels/spec/error.h"
#include "sim/model/layers.h"

namespace hdpsim::kernels::exec {

void require_executable(const Transformer& model, const Mesh& mesh, const PipelineOptions& pipeline) {
  std::vector<std::string> problems;
  const std::vector<std::string> of_model = execution_problems(model, static_cast<int>(mesh.tp));
  if (!of_model.empty()) {
    problems.push_back(fmt::format("model '{}' cannot be executed: {}", model.name, fmt::join(of_model, ", ")));
  }
  const std::string of_pipeline = ChunkMap(pipeline, mesh.pp).deal().problem(model.layers);
  if (!of_pipeline.empty()) {
    problems.push_back(fmt::format("its {} layers make no such pipeline: {}", model.layers, of_pipeline));
  }
  if (!problems.empty()) throw UnsupportedInput(fmt::format("{}", fmt::join(problems, "; ")));
}

void require_executable(const Recipe& recipe) {
  if (recipe.optimizer != Optimizer::adam) {
    throw UnsupportedInput("other optimizers than Adam are simulated, and not executed: leave 'optimizer' out");
  }
  if (recipe.key_exchange != KeyExchange::group_cast) return;
  throw UnsupportedInput(
      "ranks that get the keys that their tokens see alone (cp_comm_type: group_cast) are simulated, and not executed: "
      "use cp_comm_type: all_gather, a2a or p2p");
}

void require_executable(const Plan& plan, const Transformer& model, const TokenSource& tokens, std::int64_t ranks,
                        const LayerDeal& deal, KeyExchange key_exchange) {
  const auto refuse = [](const std::string& reason) { throw UnsupportedInput(reason); };
  if (plan.ranks != ranks) refuse(fmt::format("the plan is for {} ranks, but there are {}", plan.ranks, ranks));
  if (plan.expert_ranks != 1) refuse("the plan has expert groups over several ranks, which cannot be executed");
  const auto splits = [](const MicroBatch& micro_batch) { return micro_batch.token_wise; };
  if (std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), splits)) {
    refuse("the plan offloads token-wise, which cannot be executed: choose offload: auto or a ratio");
  }
  const auto is_cut_otherwise = [](const MicroBatch& micro_batch) {
    return micro_batch.group.size() > 1 && micro_batch.cut != TokenCut::per_document;
  };
  if (key_exchange != KeyExchange::all_gather &&
      std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), is_cut_otherwise)) {
    refuse(
        "the plan does not cut every document over its group, which is executed with gathered keys alone: choose "
        "cp_cut: per_document, or cp_comm_type: all_gather");
  }
  const auto in_chunks = [](const Transformer& kind) { return kind.attention_chunk > 0; };
  const std::vector<Transformer> kinds = of_each_kind(model);
  const auto is_shared = [](const MicroBatch& micro_batch) { return micro_batch.group.size() > 1; };
  if (key_exchange != KeyExchange::all_gather && std::any_of(kinds.begin(), kinds.end(), in_chunks) &&
      std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), is_shared)) {
    refuse(
        fmt::format("tokens of '{}' see those of their chunk, which ranks that share a sequence execute with gathered "
                    "keys alone: choose cp_comm_type: all_gather",
                    model.name));
  }
  const auto mixes = [](const Transformer& kind) { return kind.linear.has_value(); };
  const auto not_alike = [](const MicroBatch& micro_batch) {
    return micro_batch.continues || (micro_batch.group.size() > 1 && micro_batch.cut != TokenCut::per_document);
  };
  if (std::any_of(kinds.begin(), kinds.end(), mixes) &&
      std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), not_alike)) {
    refuse(
        fmt::format("tokens of '{}' are mixed in linear time, which is not executed for chunks of a sequence in order, "
                    "and in groups with cp_cut: per_document alone",
                    model.name));
  }
  const auto has_local = [](const MicroBatch& micro_batch) { return !micro_batch.local.empty(); };
  if (key_exchange == KeyExchange::all_to_all &&
      std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), has_local)) {
    refuse(
        "ranks hold sequences alone in groups that share others, which is not executed where ranks trade heads: choose "
        "cp_comm_type: p2p, or all_gather");
  }
  if (plan.layers != deal.typical(model.layers)) {
    const std::string where = deal.chunks() == 1 ? "" : fmt::format(" in each of {} parts", deal.chunks());
    refuse(fmt::format("the plan is for a model of {} layers, '{}' has {}{}", plan.layers, model.name,
                       deal.typical(model.layers), where));
  }
  if (!model.others.empty() && std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(),
                                           [](const MicroBatch& micro_batch) { return micro_batch.offloads(); })) {
    refuse(
        fmt::format("the plan offloads, which is not executed for layers of several kinds as '{}' has: choose "
                    "offload: none",
                    model.name));
  }
  if (tokens.vocabulary() > model.vocabulary) {
    refuse(fmt::format("the data have a vocabulary of {}, '{}' has one of {}", tokens.vocabulary(), model.name,
                       model.vocabulary));
  }
}

}  // namespace hdpsim::kernels::exec
