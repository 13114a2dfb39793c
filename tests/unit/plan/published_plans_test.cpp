// Plans that other systems' own schedulers made, on batches drawn for the purpose: published/POLICY.json.

#include <string>
#include <tuple>

#include "sim/plan/impl/bin_exchange.h"
#include "tests/unit/plan/plan_cases.h"
#include "tests/unit/plan/published_cases.h"

namespace hdpsim {
namespace {

// Update, first rank, ranks, sequences.
using Placed = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::vector<std::int64_t>>;

void add_published(std::int64_t update, const Value& micro_batches, std::vector<Placed>& all) {
  for (const Value& it : micro_batches.items) {
    all.emplace_back(update, number(it.items[0]), number(it.items[1]), numbers(it.items[2]));
  }
}

// The micro-batches of a case, or of each of its `updates`.
std::vector<Placed> published(const Value& one) {
  std::vector<Placed> all;
  if (const Value* updates = one.find("updates")) {
    for (const Value& update : updates->items) add_published(&update - updates->items.data(), update, all);
  } else {
    add_published(0, *one.find("micro_batches"), all);
  }
  return all;
}

// Micro-batches in the order of their ids, which every rank's schedule must follow; groups must be consecutive ranks.
std::vector<Placed> placed(const Plan& plan) {
  std::vector<Placed> all;
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    const std::vector<std::size_t> ranks = ranks_of(micro_batch);
    CHECK(ranks.back() - ranks.front() + 1 == ranks.size());
    std::vector<std::int64_t> sequences;
    for (const std::size_t sequence : sequences_of(micro_batch)) sequences.push_back(std::int64_t(sequence));
    all.emplace_back(micro_batch.update, std::int64_t(ranks.front()), std::ssize(ranks), std::move(sequences));
  }
  for (const auto& list : plan.schedule) CHECK(std::is_sorted(list.begin(), list.end()));
  return all;
}

// The length to which the sequences of each micro-batch are padded, as if they were its only rows.
std::vector<std::int64_t> widths_of(const Plan& plan) {
  std::vector<std::int64_t> widths;
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    widths.push_back(micro_batch.spans.front().tokens);
    CHECK(micro_batch.tokens() == std::ssize(micro_batch.spans) * widths.back());
  }
  return widths;
}

void check_case(const Value& one) {
  PlanningContext context = small_pool(number(*one.find("ranks")));
  context.capacity = number(*one.find("capacity"));
  const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
  context.context = *std::max_element(lengths.begin(), lengths.end());
  if (const Value* tp = one.find("tp")) context.tp = number(*tp);
  if (const Value* flops = one.find("flops")) context.counted_flops = {numbers(*flops)[0], numbers(*flops)[1]};
  const std::string& policy = one.find("policy")->text;
  INFO(policy << " on " << context.ranks << " ranks of " << context.capacity << ", case " << one.find("case")->text);
  if (one.find("refused") != nullptr) {
    CHECK_THROWS_AS(planner(policy, context)->plan(batch_of(lengths), 0), InputError);
  } else {
    const Plan plan = plan_of(policy, context, lengths);
    CHECK(placed(plan) == published(one));
    if (const Value* widths = one.find("widths")) CHECK(widths_of(plan) == numbers(*widths));
  }
}

}  // namespace

TEST_CASE("policies of other systems make the plans that the systems' own code makes", "[plan][published]") {
  const char* const policy =
      GENERATE("megatron-dp-balanced", "megatron-hybrid-cp", "megatron-dynamic-cp", "flexsp-homogeneous", "verl",
               "openrlhf", "verl-mini-batches", "verl-dynamic-cp", "slime", "miles", "nemo-rl", "roll");
  for (const Value& one : cases_of(policy)) check_case(one);
}

TEST_CASE("largest differencing makes the parts that verl's own code makes", "[plan][published]") {
  for (const Value& one : cases_of("largest-differencing")) {
    INFO("case " << one.find("case")->text);
    std::vector<ExactWork> values;
    for (const std::int64_t value : numbers(*one.find("values"))) values.push_back(static_cast<ExactWork>(value));
    std::vector<std::vector<std::size_t>> parts;
    for (const Value& part : one.find("parts")->items) {
      const std::vector<std::int64_t> places = numbers(part);
      parts.emplace_back(places.begin(), places.end());
    }
    CHECK(largest_differencing(values, parts.size(), one.find("equal_sizes")->text == "true") == parts);
  }
}

}  // namespace hdpsim
