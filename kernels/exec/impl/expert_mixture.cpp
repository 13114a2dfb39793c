#include "kernels/exec/impl/expert_mixture.h"

#include "kernels/spec/expert_routing.h"

namespace hdpsim::kernels::exec {
namespace {

// That of one of all experts, whose weights follow each other.
Linear one_of(const Linear& all, std::int64_t expert) {
  return all.rows(expert * all.out, all.out);
}

}  // namespace

CopiesOfTokens ExpertMixture::of_tokens(const float* weights) const {
  return {.tokens = work_.kernels.rows().all,
          .chosen = moe_.experts_per_token,
          .width = work_.kind.hidden,
          .rows = work_.layer.expert_rows,
          .weights = weights};
}

template <class Visit>
void ExpertMixture::for_each_expert(Visit visit) {
  for (std::int64_t expert = 0; expert < moe_.experts; ++expert) {
    const std::int64_t begin = work_.layer.expert_begins[expert];
    const std::int64_t count = work_.layer.expert_begins[expert + 1] - begin;
    if (count == 0) continue;
    visit(work_.kernels.of_rows(count), one_of(work_.tensors.product(DensePart::experts, 0), expert),
          one_of(work_.tensors.product(DensePart::experts, 1), expert), Rows{begin, count});
  }
}

void ExpertMixture::router() {
  const std::int64_t tokens = work_.kernels.rows().all;
  work_.kernels.forward(scores(), work_.layer.mlp_normed, work_.shared.scores);
  work_.kernels.backend().run(RouteForward{.tokens = tokens,
                                           .experts = moe_.experts,
                                           .chosen = moe_.experts_per_token,
                                           .scores = work_.shared.scores,
                                           .ids = work_.layer.expert_ids,
                                           .weights = work_.layer.expert_weights});
}

void ExpertMixture::copies() {
  Backend& backend = work_.kernels.backend();
  backend.run(SortCopies{.tokens = work_.kernels.rows().all,
                         .experts = moe_.experts,
                         .chosen = moe_.experts_per_token,
                         .ids = work_.layer.expert_ids,
                         .rows = work_.layer.expert_rows,
                         .begins = work_.layer.expert_begins});
  backend.run(SpreadTokens{of_tokens(nullptr), work_.layer.mlp_normed, work_.layer.copies});
}

void ExpertMixture::experts() {
  const LayerActivations& layer = work_.layer;
  const std::int64_t hidden = work_.kind.hidden;
  const std::int64_t inner = moe_.expert_hidden;
  for_each_expert([&](DenseKernels kernels, const Linear& gate_up, const Linear& down, const Rows& rows) {
    void* const both = at(layer.expert_gate_up, rows.begin, 2 * inner);
    void* const activated = at(layer.expert_inner, rows.begin, inner);
    kernels.forward(gate_up, at(layer.copies, rows.begin, hidden), both);
    kernels.swiglu_forward(inner, both, activated);
    kernels.forward(down, activated, at(layer.expert_outputs, rows.begin, hidden));
  });
}

void ExpertMixture::activation() {
  const std::int64_t copies = work_.kernels.rows().all * moe_.experts_per_token;
  work_.kernels.of_rows(copies).swiglu_forward(moe_.expert_hidden, work_.layer.expert_gate_up,
                                               work_.layer.expert_inner);
}

// The shared experts, if there are any, have written their output there.
void ExpertMixture::sum_of_copies() {
  work_.kernels.backend().run(SumCopies{of_tokens(work_.layer.expert_weights), work_.layer.expert_outputs,
                                        work_.shared.d_normed, moe_.shared_hidden > 0});
}

void ExpertMixture::sum_of_copies_back() {
  Backend& backend = work_.kernels.backend();
  backend.run(
      WeightGradients{of_tokens(nullptr), work_.shared.d_x, work_.layer.expert_outputs, work_.shared.d_expert_weights});
  backend.run(SpreadTokens{of_tokens(work_.layer.expert_weights), work_.shared.d_x, work_.shared.d_copies});
}

// The gradient of an expert's output is needed no more when that of its input takes its place.
void ExpertMixture::experts_back() {
  const LayerActivations& layer = work_.layer;
  const std::int64_t hidden = work_.kind.hidden;
  const std::int64_t inner = moe_.expert_hidden;
  for_each_expert([&](DenseKernels kernels, const Linear& gate_up, const Linear& down, const Rows& rows) {
    void* const d_copies = at(work_.shared.d_copies, rows.begin, hidden);
    void* const d_inner = at(work_.shared.d_expert_inner, rows.begin, inner);
    void* const both = at(layer.expert_gate_up, rows.begin, 2 * inner);
    kernels.backward(down, at(layer.expert_inner, rows.begin, inner), d_copies, d_inner);
    kernels.swiglu_backward(inner, both, d_inner);
    kernels.backward(gate_up, at(layer.copies, rows.begin, hidden), both, d_copies);
  });
}

void ExpertMixture::copies_back() {
  work_.kernels.backend().run(SumCopies{of_tokens(nullptr), work_.shared.d_copies, work_.shared.d_normed});
}

void ExpertMixture::router_back() {
  work_.kernels.backend().run(RouteBackward{.tokens = work_.kernels.rows().all,
                                            .experts = moe_.experts,
                                            .chosen = moe_.experts_per_token,
                                            .ids = work_.layer.expert_ids,
                                            .weights = work_.layer.expert_weights,
                                            .d_weights = work_.shared.d_expert_weights,
                                            .d_scores = work_.shared.scores});
  work_.kernels.backward(scores(), work_.layer.mlp_normed, work_.shared.scores, work_.shared.d_normed, true);
}

}  // namespace hdpsim::kernels::exec
