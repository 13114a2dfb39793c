#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/exec/executor.h"
#include "kernels/transport/in_process.h"
#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/document/document.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/planner.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/support/planner_of.h"

namespace hdpsim::kernels::exec {

/// Two query heads that share a key-value head, sizes that no tile divides.
inline Transformer tiny_model(std::int64_t layers = 2) {
  Transformer model;
  model.name = "tiny";
  model.layers = layers;
  model.hidden = 72;
  model.heads = 2;
  model.kv_heads = 1;
  model.head_dim = 64;
  model.ffn_hidden = 100;
  model.vocabulary = 61;
  return model;
}

/// Four heads, and a vocabulary and hidden size that four devices do not divide.
inline Transformer four_heads(std::int64_t layers = 2) {
  Transformer model = tiny_model(layers);
  model.heads = model.kv_heads = 4;
  return model;
}

/// Four query heads of which two share a key-value head each: two ranks trade heads, and of more a ring joins pairs.
inline Transformer grouped_heads(std::int64_t layers = 2) {
  Transformer model = tiny_model(layers);
  model.heads = 4;
  model.kv_heads = 2;
  return model;
}

/// A dot product of K terms in fp32 is off by about sqrt(K) 2^-24 of its size, and sums behind each other add up in
/// squares. Here K is at most a few hundred (tokens, widths) and a gradient has some tens of products behind it:
/// sqrt(300 x 30) 2^-24 = 6e-6.
inline constexpr double rounding = 6e-6;

/// The lengths of a batch.
inline const std::vector<std::int64_t> mixed_lengths = {66, 7, 34, 1, 33, 16, 2, 50, 5, 21};

/// A micro-batch by hand: its ranks in ring order, and its sequences.
struct HandMicroBatch {
  std::vector<std::size_t> group;
  std::vector<std::size_t> sequences;
};

/// A plan in which every rank runs its micro-batches in the given order.
inline Plan hand_plan(std::int64_t ranks, std::int64_t layers, std::vector<std::int64_t> lengths,
                      const std::vector<HandMicroBatch>& micro_batches) {
  Plan plan;
  plan.policy = "by hand";
  plan.ranks = ranks;
  plan.capacity = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{1});
  plan.layers = layers;
  plan.sequence_tokens = std::move(lengths);
  plan.schedule.resize(static_cast<std::size_t>(ranks));
  for (const HandMicroBatch& wanted : micro_batches) {
    MicroBatch& micro_batch = plan.micro_batches.emplace_back();
    for (const std::size_t rank : wanted.group) {
      micro_batch.group.emplace_back(rank);
      plan.schedule[rank].emplace_back(plan.micro_batches.size() - 1);
    }
    for (const std::size_t s : wanted.sequences) {
      micro_batch.spans.push_back({SequenceId(s), 0, plan.sequence_tokens[s]});
    }
  }
  const std::vector<std::string> problems = check_plan(plan);
  HDPSIM_CHECK(problems.empty(), "a plan by hand: {}", problems.front());
  return plan;
}

/// A plan for mixed_lengths: rings of both ranks and packs on one; on a single rank, two packs.
inline Plan packs_and_rings(std::int64_t hdp, std::int64_t layers) {
  if (hdp == 1) return hand_plan(1, layers, mixed_lengths, {{{0}, {0, 1, 2, 3}}, {{0}, {4, 5, 6, 7, 8, 9}}});
  return hand_plan(2, layers, mixed_lengths, {{{0, 1}, {0}}, {{1}, {1, 2, 3}}, {{1, 0}, {7, 8, 4}}, {{0}, {5, 6, 9}}});
}

/// All sequences on one rank, in one micro-batch.
inline Plan one_rank_plan(std::int64_t layers, const std::vector<std::int64_t>& lengths) {
  std::vector<std::size_t> all(lengths.size());
  std::iota(all.begin(), all.end(), 0);
  return hand_plan(1, layers, lengths, {{{0}, all}});
}

/// The plan that a policy makes of a batch, on ranks that hold `capacity` tokens.
inline Plan policy_plan(const std::string& entry, std::int64_t ranks, std::int64_t layers, std::int64_t capacity,
                        const std::vector<std::int64_t>& lengths) {
  PlanningContext context;
  context.ranks = ranks;
  context.capacity = capacity;
  context.context = ranks * capacity;
  context.layers = layers;
  context.work = {.per_area = 1e-9, .per_token = 1e-7, .per_micro_batch = 1e-6};
  Diagnostics diagnostics;
  const auto planner = test::planner_of(parse_document("entry", entry, diagnostics), context, diagnostics);
  diagnostics.throw_if_any();
  Batch batch;
  for (const std::int64_t length : lengths) {
    batch.sequences.push_back({length, static_cast<std::int64_t>(batch.sequences.size())});
  }
  return planner->plan(batch, 0);
}

/// Sequences dealt to micro-batches of random groups in random ring orders: as many on a rank as it happens.
inline Plan random_plan(RandomStream& random, std::int64_t ranks, std::int64_t layers,
                        const std::vector<std::int64_t>& lengths) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random.below(bound)); };
  std::vector<HandMicroBatch> micro_batches(1 + below(lengths.size()));
  for (HandMicroBatch& micro_batch : micro_batches) {
    std::vector<std::size_t> pool(static_cast<std::size_t>(ranks));
    std::iota(pool.begin(), pool.end(), 0);
    for (std::size_t i = pool.size(); i > 1; --i) std::swap(pool[i - 1], pool[below(i)]);
    pool.resize(1 + below(pool.size()));
    micro_batch.group = pool;
  }
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const std::size_t at = s < micro_batches.size() ? s : below(micro_batches.size());
    micro_batches[at].sequences.push_back(s);
  }
  return hand_plan(ranks, layers, lengths, micro_batches);
}

struct Training {
  std::vector<double> losses;     ///< By step.
  std::vector<float> gradients;   ///< Gradients of the last step.
  std::vector<float> parameters;  ///< After the last step.
  std::vector<Timeline> timelines;
};

/// How the programs of the plans run.
struct Way {
  int tp = 1;
  Recompute recompute = {};
  int pp = 1;
  PipelineOptions pipeline = {};
  KeyExchange key_exchange = KeyExchange::ring;
  std::int64_t a2a_ranks = 0;
  [[nodiscard]] Recipe recipe() const {
    return {.recompute = recompute, .key_exchange = key_exchange, .a2a_ranks = a2a_ranks};
  }
  [[nodiscard]] Mesh mesh(std::int64_t hdp) const { return {.hdp = hdp, .tp = tp, .pp = pp}; }
};

/// `options` for the mesh of `way`.
inline TrainingOptions options_for(const Way& way, TrainingOptions options = {}) {
  options.tp = way.tp;
  options.pp = way.pp;
  options.pipeline = way.pipeline;
  return options;
}

/// A plan with its layers counted for a pipeline of `way`.
inline Plan planned_for(const Way& way, Plan plan) {
  plan.layers = ChunkMap(way.pipeline, way.pp).deal().typical(plan.layers);
  return plan;
}

/// Trains for as many steps as there are plans, which are made for pipelines of one stage, on devices that are threads.
inline Training train(const Transformer& model, const std::vector<Plan>& plans, const TokenSource& tokens,
                      const TrainingOptions& options = {}, std::chrono::milliseconds limit = default_time_limit,
                      const Way& way = {}) {
  Training result;
  run_ranks(
      static_cast<int>(way.mesh(plans.front().ranks).devices()),
      [&](Transport& transport) {
        const auto backend = make_cpu_backend();
        Executor executor(*backend, transport, model, options_for(way, options));
        Training own;
        for (const Plan& whole : plans) {
          const Plan plan = planned_for(way, whole);
          const LoweringOptions lowering =
              lowering_for(*backend, model, way.mesh(plan.ranks), way.recipe(), way.pipeline);
          StepOutcome outcome = executor.run_step(Program(plan, lowering), tokens);
          own.losses.push_back(outcome.loss);
          if (outcome.timeline) own.timelines.push_back(std::move(*outcome.timeline));
        }
        own.gradients = executor.gradients();
        own.parameters = executor.parameters();
        if (transport.rank() == 0) result = std::move(own);
      },
      limit);
  return result;
}

inline Training train(const Transformer& model, const Plan& plan, const TokenSource& tokens, const Way& way) {
  return train(model, std::vector<Plan>{plan}, tokens, {}, default_time_limit, way);
}

/// Loss and gradients of one step are those of another training, but for rounding.
inline void check_same(const Training& found, const Training& expected) {
  CHECK(found.losses[0] == Approx(expected.losses[0]).epsilon(1e-6));
  CHECK(test::relative_rms_error(found.gradients, expected.gradients) <= rounding);
}

}  // namespace hdpsim::kernels::exec
