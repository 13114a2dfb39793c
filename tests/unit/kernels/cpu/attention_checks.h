#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/catch.h"
#include "tests/unit/kernels/cpu/attention_problem.h"

/// Forward and backward of attention on a CPU, held against fp64.
namespace hdpsim::test {

// fp32 sums of up to a few hundred products. LSE: relative.
inline constexpr double output_error = 2e-6;
inline constexpr double lse_error = 2e-6;
inline constexpr double gradient_error = 5e-6;
// Of one key the gradients are sums over queries of differences of equal terms: no smaller scale fits their errors.
inline constexpr double gradient_terms = 4;

/// Heads of 192 have values of 128.
inline kernels::AttentionHeads heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  const std::int64_t value_dim = dim == 192 ? 128 : dim;
  return {heads, kv_heads, dim, static_cast<float>(1 / std::sqrt(static_cast<double>(dim))), value_dim};
}

inline std::string describe(const AttentionProblem& problem, const kernels::AttentionBlock& block) {
  return std::to_string(problem.heads.heads) + "/" + std::to_string(problem.heads.kv_heads) + " heads of " +
         std::to_string(problem.heads.dim) + ", " + std::to_string(block.queries) + " queries, " +
         std::to_string(block.keys) + " keys, " + (block.mask == kernels::Mask::causal ? "causal" : "full") +
         ", window " + std::to_string(block.window) + ", lead " + std::to_string(block.lead);
}

inline void check_block(const AttentionProblem& problem, const AttentionRun& run, const AttentionTruth& truth,
                        const kernels::AttentionBlock& block) {
  INFO(describe(problem, block));
  const auto of_queries = [&](const std::vector<double>& dense, std::int64_t width) {
    return rows_of(dense, block.query_begin, block.queries, width);
  };
  const auto of_keys = [&](const std::vector<double>& dense, std::int64_t width) {
    return rows_of(dense, block.key_begin, block.keys, width);
  };
  CHECK(relative_error(run.o.dense(block.query_begin, block.queries),
                       of_queries(truth.forward.o, problem.output_width())) <= output_error);
  CHECK(relative_error(run.lse_of(block), lse_of(truth, problem, block)) <= lse_error);
  CHECK(relative_error(run.d_q.dense(block.query_begin, block.queries),
                       of_queries(truth.gradients.d_q, problem.query_width()), gradient_terms) <= gradient_error);
  CHECK(relative_error(run.d_k.dense(block.key_begin, block.keys), of_keys(truth.gradients.d_k, problem.key_width()),
                       gradient_terms) <= gradient_error);
  CHECK(relative_error(run.d_v.dense(block.key_begin, block.keys), of_keys(truth.gradients.d_v, problem.value_width()),
                       gradient_terms) <= gradient_error);
}

/// Forward and backward on every instruction set of this machine against fp64.
inline void check_problem(const AttentionProblem& problem) {
  const AttentionTruth truth(problem);
  for (const kernels::InstructionSet set : kernels::instruction_sets()) {
    INFO(kernels::name_of(set));
    const auto backend = kernels::make_cpu_backend(set);
    AttentionRun run(problem);
    run.forward(*backend);
    run.backward(*backend);
    for (const kernels::AttentionBlock& block : problem.blocks) check_block(problem, run, truth, block);
    CHECK(relative_error(run.d_sinks, truth.gradients.d_sinks, gradient_terms) <= gradient_error);
    CHECK(run.kept_to_its_rows());
  }
}

}  // namespace hdpsim::test
