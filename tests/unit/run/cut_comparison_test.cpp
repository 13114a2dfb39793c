// The comparison of WLB-LLM (Wang et al., OSDI 2025): LLaMA-7B at 128K on TP 8, CP 2, PP 4, where per-document sharding
// makes a layer 1.07 times as fast as per-sequence sharding, and the adaptive choice is faster than both.

#include <string>
#include <vector>

#include "sim/run/step.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr std::int64_t steps = 4;

// The steps of one plan under a cut.
std::vector<StepResult> steps_of(const std::string& lengths, const std::string& cut) {
  const std::string text =
      "name: cuts\ncluster: {preset: h100-rail, gpus: 64}\nmodel: {preset: llama-7b}\n"
      "profile: h100-published\ndata: {lengths: {preset: " +
      lengths +
      "}, context: 128Ki, tokens_per_step: 512Ki, steps: 4, seed: 1}\n"
      "mesh: {tp: 8, pp: 4, capacity: 64Ki, cp_comm_type: all_gather, cp_cut: " +
      cut + "}\nplans: [{static: {cp: 2}}]\n";
  Catalog catalog{HDPSIM_SOURCE_DIR};
  const Study study = parse_study("cuts.yaml", text, {}, catalog);
  const auto world = study.points.at(0).make_world();
  std::vector<StepResult> results;
  for (std::int64_t step = 0; step < steps; ++step) {
    results.push_back(simulate_step(study.points[0], 0, step, *world).result);
  }
  return results;
}

Duration whole(const std::vector<StepResult>& results) {
  Duration sum;
  for (const StepResult& step : results) sum += step.time;
  return sum;
}

TEST_CASE("7B at 128K: the adaptive cut is never slower than either that it chooses from", "[cut][published]") {
  for (const std::string lengths : {"github", "byted"}) {
    CAPTURE(lengths);
    const std::vector<StepResult> document = steps_of(lengths, "per_document");
    const std::vector<StepResult> pack = steps_of(lengths, "per_pack");
    const std::vector<StepResult> adaptive = steps_of(lengths, "adaptive");
    for (std::size_t step = 0; step < document.size(); ++step) {
      CHECK(adaptive[step].time <= document[step].time);
      CHECK(adaptive[step].time <= pack[step].time);
      CHECK(document[step].model_flops == pack[step].model_flops);
    }
    CHECK(whole(adaptive) < whole(document));
    CHECK(whole(document) < whole(pack));
  }
}

TEST_CASE("what ranks wait for the busiest of their group is imbalance, and less where the cut evens it out", "[cut]") {
  const auto waits = [](const std::string& cut) {
    Duration sum;
    for (const StepResult& step : steps_of("github", cut)) sum += step.mean[Activity::group_wait];
    return sum;
  };
  const Duration least = waits("per_document");  // for other groups at the end of a step
  const Duration most = waits("per_pack");
  CHECK(waits("dispatch") > least);
  CHECK(most > 2 * waits("dispatch"));
  CHECK(most > 2 * waits("adaptive"));
}

}  // namespace
}  // namespace hdpsim
