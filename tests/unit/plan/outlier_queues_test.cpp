#include "sim/plan/impl/outlier_queues.h"

#include <algorithm>
#include <map>

#include "sim/trace/trace_file.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using Tokens = std::vector<std::int64_t>;
using Documents = std::vector<std::int64_t>;

/// The same batches over and over; the document tells the step and the place in it.
class RepeatedBatches final : public BatchSource {
 public:
  explicit RepeatedBatches(std::vector<Tokens> steps) : steps_(std::move(steps)) {}

  [[nodiscard]] Batch step(std::int64_t k) const override {
    Batch batch = batch_of(steps_[static_cast<std::size_t>(k) % steps_.size()]);
    for (Sequence& sequence : batch.sequences) sequence.document += 1000 * k;
    return batch;
  }

 private:
  std::vector<Tokens> steps_;
};

Documents documents_of(const Batch& batch) {
  Documents documents;
  for (const Sequence& sequence : batch.sequences) documents.push_back(sequence.document);
  return documents;
}

/// Two replicas with 100 tokens a micro-batch; a pair of tokens is a second of work.
OutlierRules two_replicas(Tokens bounds) {
  OutlierRules rules{.bounds = std::move(bounds), .replicas = 2, .context = 100, .room = 100, .work = {}};
  rules.work.per_area = 1;
  return rules;
}

HeldBackBatches held_back(const BatchSource& data, const OutlierRules& rules, std::int64_t steps) {
  return {data, rules, [bounds = rules.bounds] { return bounds; }, steps};
}

/// Web documents up to the context, a million tokens a step.
BatchSourcePtr long_tailed(std::int64_t context) {
  return make_batches(load_preset("web", HDPSIM_SOURCE_DIR "/traces"),
                      {.context = context, .tokens_per_step = 16 * context, .seed = 7});
}

OutlierRules sixteen_micro_batches(std::int64_t context) {
  OutlierRules rules{.bounds = {}, .replicas = 16, .context = context, .room = 2 * context, .work = {}};
  rules.work.per_token = 1;
  rules.work.per_area = 8.0 / static_cast<double>(context);
  return rules;
}

double imbalance(const BatchSource& data, const OutlierRules& rules, std::int64_t steps) {
  HeldSequences held;
  double most = 0;
  double mean = 0;
  for (std::int64_t k = 0; k < steps; ++k) {
    const ReleasedBatch step = release(data.step(k), rules, held);
    if (k < steps / 2) continue;  // queues fill
    most += step.most_work;
    mean += step.mean_work;
  }
  return most / mean;
}

}  // namespace

TEST_CASE("outliers wait until every micro-batch gets one, and come out longest first", "[plan][wlb]") {
  const OutlierRules rules = two_replicas({50});
  HeldSequences held;
  CHECK(documents_of(release(batch_of({10, 60, 20}), rules, held).batch) == Documents{2, 0});
  CHECK(held.queues[0].sequences == std::vector<Sequence>{{60, 1}});
  Batch second = batch_of({30, 70});
  for (Sequence& sequence : second.sequences) sequence.document += 10;
  CHECK(documents_of(release(second, rules, held).batch) == Documents{11, 1, 10});  // 70, 60 and 30 tokens
  CHECK(held.queues[0].sequences.empty());
}

TEST_CASE("each sequence waits in the queue of the highest bound that it reaches", "[plan][wlb]") {
  OutlierRules rules = two_replicas({20, 40, 100});
  rules.context = 200;
  rules.room = 200;
  HeldSequences held;
  const ReleasedBatch step = release(batch_of({19, 20, 39, 40, 99}), rules, held);
  CHECK(documents_of(held.queues[0]).empty());  // two micro-batches: 20 and 39 are released,
  CHECK(documents_of(held.queues[1]).empty());  // as are 40 and 99
  CHECK(step.batch.sequences.size() == 5);
  (void)release(batch_of({10, 20, 40}), rules, held);
  CHECK(held.queues[0].sequences == std::vector<Sequence>{{20, 1}});
  CHECK(held.queues[1].sequences == std::vector<Sequence>{{40, 2}});
}

TEST_CASE("what finds no room is the first of the next step", "[plan][wlb]") {
  // 190 tokens in two micro-batches of 100: 70 + 30 and 50 leave no room for the second 40.
  const OutlierRules rules = two_replicas({});
  HeldSequences held;
  CHECK(documents_of(release(batch_of({70, 50, 40, 30}), rules, held).batch) == Documents{0, 1, 2, 3});
  CHECK(documents_of(release(batch_of({70, 60, 50}), rules, held).batch) == Documents{0, 1});
  CHECK(documents_of(release(batch_of({60}), rules, held).batch) == Documents{2, 0});
}

TEST_CASE("a step trains something even if all that came would wait", "[plan][wlb]") {
  HeldSequences held;
  CHECK(documents_of(release(batch_of({60, 90, 80}), two_replicas({50, 85}), held).batch) == Documents{2, 0});
  CHECK(documents_of(release(batch_of({95}), two_replicas({50, 85}), held).batch).size() == 2);
}

TEST_CASE("any step can be asked for in any order", "[plan][wlb]") {
  const RepeatedBatches data({{10, 60}, {20, 55, 30}, {70, 15, 25}});
  const OutlierRules rules = two_replicas({50});
  const HeldBackBatches in_order = held_back(data, rules, 40);
  std::vector<Batch> steps;
  for (std::int64_t k = 0; k < 40; ++k) steps.push_back(in_order.step(k));
  const HeldBackBatches jumping = held_back(data, rules, 40);
  for (const std::int64_t k : {39, 3, 17, 16, 3, 4, 0, 38, 39}) {
    CAPTURE(k);
    CHECK(jumping.step(k).sequences == steps[static_cast<std::size_t>(k)].sequences);
  }
}

TEST_CASE("steps of a long run come out the same after what was held before most of them is forgotten", "[plan][wlb]") {
  const RepeatedBatches data({{10, 60}, {20, 55, 30}, {70, 15, 25}});
  const OutlierRules rules = two_replicas({50});
  const HeldBackBatches batches = held_back(data, rules, 40);
  std::vector<Batch> steps;
  for (std::int64_t k = 0; k < 3000; ++k) steps.push_back(batches.step(k));
  for (const std::int64_t k : {2999, 17, 1500, 16, 2998, 0, 1}) {
    CAPTURE(k);
    CHECK(batches.step(k).sequences == steps[static_cast<std::size_t>(k)].sequences);
  }
}

TEST_CASE("a run trains each document of its steps once, what it holds back at its end being what it began with",
          "[plan][wlb]") {
  const RepeatedBatches data({{10, 60}, {20, 55, 30}, {70, 15, 25}});
  constexpr std::int64_t steps = 30;
  const HeldBackBatches batches = held_back(data, two_replicas({50}), steps);
  std::map<std::int64_t, int> trained;
  std::int64_t tokens = 0;
  for (std::int64_t k = 0; k < steps; ++k) {
    const Batch batch = batches.step(k);
    for (const Sequence& sequence : batch.sequences) ++trained[sequence.document];
    tokens += batch.tokens();
  }
  std::int64_t read = 0;
  for (std::int64_t k = 0; k < steps; ++k) read += data.step(k).tokens();
  CHECK(tokens == read);
  CHECK(std::all_of(trained.begin(), trained.end(), [](const auto& document) { return document.second == 1; }));
}

TEST_CASE("without bounds every batch is trained as it comes", "[plan][wlb]") {
  const RepeatedBatches data({{10, 60}, {20, 55, 30}});
  const HeldBackBatches batches(
      data, two_replicas({}), [] { return Tokens{}; }, 2);
  for (const std::int64_t k : {0, 1, 5}) CHECK(batches.step(k).sequences == data.step(k).sequences);
}

TEST_CASE("tuned queues halve by how much the busiest micro-batch of long-tailed data exceeds the mean one",
          "[plan][wlb]") {
  // Published are 1.41 where steps are packed one by one, 1.24 with one queue and 1.05 with two, on data of the
  // authors.
  constexpr std::int64_t context = 128 * 1024;
  constexpr std::int64_t steps = 32;
  const BatchSourcePtr data = long_tailed(context);
  OutlierRules rules = sixteen_micro_batches(context);
  const double as_it_comes = imbalance(*data, rules, steps);
  rules.bounds = tuned_bounds(*data, steps, rules);
  CAPTURE(as_it_comes, rules.bounds);
  REQUIRE_FALSE(rules.bounds.empty());
  CHECK(as_it_comes > 1.2);
  CHECK(imbalance(*data, rules, steps) - 1 < (as_it_comes - 1) / 2);
}

TEST_CASE("no queue is tuned that a run of a few steps would not fill", "[plan][wlb]") {
  constexpr std::int64_t context = 128 * 1024;
  const BatchSourcePtr data = long_tailed(context);
  CHECK(tuned_bounds(*data, 1, sixteen_micro_batches(context)).empty());
}

TEST_CASE("wlb: sequences are held back unless the study says otherwise", "[plan][wlb]") {
  const RepeatedBatches data({{10, 60}, {20, 55, 30}});
  PlanningContext pool = small_pool(2);
  pool.context = 100;
  const auto policy = [&](const char* entry) { return planner(entry, pool); };
  CHECK(policy("wlb")->held_back(data, 8) != nullptr);
  CHECK(policy("wlb: {outliers: none}")->held_back(data, 8) == nullptr);
  const auto held = policy("wlb: {outliers: [50]}")->held_back(data, 8);
  std::int64_t most = 0;
  for (std::int64_t k = 0; k < 8; ++k) most = std::max(most, std::ssize(held->step(k).sequences));
  CHECK(most > 3);  // a step with two outliers
  CHECK(policy("static")->held_back(data, 8) == nullptr);
}

}  // namespace hdpsim
