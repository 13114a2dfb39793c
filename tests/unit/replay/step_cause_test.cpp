#include "sim/replay/step_cause.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

MicroBatch micro_batch(const std::vector<std::size_t>& ranks, std::vector<Span> spans) {
  MicroBatch made;
  for (const std::size_t rank : ranks) made.group.emplace_back(rank);
  made.spans = std::move(spans);
  return made;
}

/// Rank 0 runs A alone for 6 s, then B with rank 1 for 4 s; rank 2 runs C and is done early.
struct Step {
  Batch batch{{{4000, 10}, {100, 11}, {300, 12}, {50, 13}}};
  Plan plan;
  std::vector<ChainLink> chain{{MicroBatchId(0), 6_s}, {MicroBatchId(1), 4_s}};
  WorkModel work;

  Step() {
    plan.micro_batches = {micro_batch({0}, {{SequenceId(0), 0, 4000}}),
                          micro_batch({1, 0}, {{SequenceId(1), 0, 100}, {SequenceId(2), 0, 300}}),
                          micro_batch({2}, {{SequenceId(3), 0, 50}})};
    plan.schedule = {{MicroBatchId(0), MicroBatchId(1)}, {MicroBatchId(1)}, {MicroBatchId(2)}};
    work.per_token = 1;  // B's four seconds are dealt by tokens: 1 to 3
  }
  [[nodiscard]] StepCause cause() const {
    StepRow row;
    row.time_s = 10;
    row.busy_mean_s = 7;
    row.busy_max_s = 10;
    row.breakdown_s[index_of(Activity::group_wait)] = 3;
    row.batch = figures_of(batch);
    return cause_of(plan, chain, work, batch, row);
  }
};

TEST_CASE("the sequences of a micro-batch share its time on the chain by their work", "[replay]") {
  const StepCause cause = Step().cause();
  CHECK(cause.chain == 2);
  CHECK(cause.chain_sequences == 3);
  CHECK(cause.least_group == 1);
  CHECK(cause.most_group == 2);
  REQUIRE(cause.sequences.size() == 3);
  const SequenceShare& first = cause.sequences[0];
  CHECK(first.sequence == 0);
  CHECK(first.document == 10);
  CHECK(first.group == 1);
  CHECK(first.of_chain == Approx(6.0 / 10));
  CHECK(first.of_tokens == Approx(4000.0 / 4450));
  const double pairs = causal_pairs(4000) + causal_pairs(100) + causal_pairs(300) + causal_pairs(50);
  CHECK(first.of_attention == Approx(causal_pairs(4000) / pairs));
  CHECK(cause.sequences[1].sequence == 2);
  CHECK(cause.sequences[1].of_chain == Approx(3.0 / 10));
  CHECK(cause.sequences[1].group == 2);
  CHECK(cause.sequences[2].of_chain == Approx(1.0 / 10));
}

TEST_CASE("a micro-batch that stands on the chain twice, forward and backward, is one", "[replay]") {
  Step step;
  step.chain = {{MicroBatchId(2), 1_s}, {MicroBatchId(2), 2_s}};
  const StepCause cause = step.cause();
  CHECK(cause.chain == 1);
  REQUIRE(cause.sequences.size() == 1);
  CHECK(cause.sequences[0].sequence == 3);
  CHECK(cause.sequences[0].of_chain == 1);
}

TEST_CASE("a slow step is explained in words", "[replay]") {
  CHECK(
      text_of(Step().cause(), 8, 1e7) ==
      "step 0: 10.0 s, 1.25 times the mean step; sum of squared lengths 1.61 times the mean step's. Ranks work 7.00 s "
      "on average, the busiest 10.0 s; 30% of their time is group wait. 60% of the critical path (2 micro-batches with "
      "3 sequences) is sequence 0 of 4 (4000 tokens of document 10: 90% of the step's "
      "tokens, 99% of its attention) on 1 rank, 30% sequence 2 (300 tokens), 10% sequence 1 (100 tokens). Groups have "
      "1 to 2 ranks.");
}

TEST_CASE("documents of a trace that begins again are numbered as in the file, with the reading", "[replay]") {
  StepCause cause = Step().cause();
  cause.sequences[0].document = 66'741;
  count_readings(20'000, cause);
  CHECK(cause.sequences[0].document == 6'741);
  CHECK(cause.sequences[0].reading == 4);
  CHECK_THAT(text_of(cause, 8, 1e7), Catch::Contains("document 6741 of the trace, read for the 4th time: "));
}

TEST_CASE("where no sequence stands out, that is what is said", "[replay]") {
  Step step;
  step.batch.sequences.clear();
  step.plan.micro_batches[0].spans.clear();
  for (std::size_t i = 0; i < 40; ++i) {
    step.batch.sequences.push_back({100, static_cast<std::int64_t>(i)});
    step.plan.micro_batches[i < 20 ? 0 : 1].spans.push_back({SequenceId(i), 0, 100});
  }
  step.plan.micro_batches[1].spans.erase(step.plan.micro_batches[1].spans.begin(),
                                         step.plan.micro_batches[1].spans.begin() + 2);
  CHECK_THAT(text_of(step.cause(), 8, 1e7),
             Catch::Contains("No sequence has more than 3% of the critical path (2 "
                             "micro-batches with 40 sequences); the largest share has sequence 0 of 40"));
}

}  // namespace
}  // namespace hdpsim
