#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/local_gpu_transport.h"
#include "kernels/cuda/offload.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/support/reference_transformer.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr std::int64_t layers = 3;
// As in tests/unit/kernels/exec_device: so many roundings to eight bits, which add up like their square root.
const double bf16_rounding = std::sqrt(24.0 * layers + 8) / 512;

// Virtual ranks on the first GPU.
Training train_on_gpu(const Transformer& model, const Plan& plan, const TokenSource& tokens, const Way& way) {
  const int ranks = static_cast<int>(way.mesh(plan.ranks).devices());
  auto hosts = make_in_process_transports(ranks);
  Training result;
  run_local_gpu_ranks(ranks, [&](Backend& backend, Transport& transport) {
    const auto host = std::move(hosts[static_cast<std::size_t>(transport.rank())]);
    const auto copies = make_host_copies(backend);
    Executor executor({backend, transport, *host, copies.get()}, model, options_for(way));
    const LoweringOptions lowering = lowering_for(backend, model, way.mesh(plan.ranks), way.recipe());
    StepOutcome outcome = executor.run_step(Program(plan, lowering), tokens);
    Training own;
    own.losses.push_back(outcome.loss);
    if (outcome.timeline) own.timelines.push_back(std::move(*outcome.timeline));
    own.gradients = executor.gradients();
    own.parameters = executor.parameters();
    if (host->rank() == 0) result = std::move(own);
  });
  return result;
}

TEST_CASE("training on a GPU: loss and gradients are those of fp64 but for bf16's rounding", "[gpu][exec]") {
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  for (float& value : start) value = cuda::to_float(cuda::to_bf16(value));
  const auto expected = ReferenceTransformer(model, start).step(mixed_lengths, 0, *tokens);
  for (const int tp : {1, 2}) {
    for (const std::int64_t hdp : {1, 2}) {
      for (const double offload : {0.0, 1.0}) {
        INFO("tp " << tp << ", hdp " << hdp << ", offload " << offload);
        Plan plan = packs_and_rings(hdp, layers);
        for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.offload = offload;
        const Training trained = train_on_gpu(model, plan, *tokens, {.tp = tp});
        CHECK(std::abs(trained.losses[0] - expected.loss) <= bf16_rounding);
        CHECK(test::relative_rms_error(trained.gradients, expected.gradients) <= bf16_rounding);
      }
    }
  }
}

TEST_CASE("the timeline of a GPU has every instruction in order, and sums to the step", "[gpu][exec]") {
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Timeline timeline = train_on_gpu(model, packs_and_rings(2, layers), *tokens, {}).timelines.at(0);
  const auto slack = Duration::seconds(2e-5);  // what marks are known to, and their differences
  for (const Breakdown& rank : timeline.ranks) {
    CHECK(rank.total() == timeline.step_time);
    CHECK(rank[Activity::attention] > Duration{});
    CHECK(rank[Activity::linear] > Duration{});
  }
  for (std::size_t i = 1; i < timeline.instructions.size(); ++i) {
    const InstructionRecord& before = timeline.instructions[i - 1];
    const InstructionRecord& next = timeline.instructions[i];
    CHECK(next.begin <= next.end + slack);
    if (before.rank != next.rank || before.stream != Stream::compute || next.stream != Stream::compute) continue;
    CHECK(before.end <= next.begin + slack);
  }
}

}  // namespace
}  // namespace hdpsim::kernels::exec
