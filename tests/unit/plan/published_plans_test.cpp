// Plans that other systems' own schedulers made, on batches drawn for the purpose: published/POLICY.json.

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "sim/plan/impl/attention_servers.h"
#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/impl/packers.h"
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

// Micro-batches and their contents in any order.
std::vector<Placed> in_order(std::vector<Placed> all) {
  for (Placed& each : all)
    std::sort(std::get<std::vector<std::int64_t>>(each).begin(), std::get<std::vector<std::int64_t>>(each).end());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<Placed> by_length_of(std::vector<Placed> all, const std::vector<std::int64_t>& lengths) {
  for (Placed& each : all) {
    for (std::int64_t& sequence : std::get<std::vector<std::int64_t>>(each))
      sequence = lengths[static_cast<std::size_t>(sequence)];
  }
  return in_order(std::move(all));
}

std::vector<std::vector<std::int64_t>> lists(const Value& value) {
  std::vector<std::vector<std::int64_t>> all;
  for (const Value& list : value.items) all.push_back(numbers(list));
  return all;
}

std::optional<std::int64_t> stated(const Value& one, const std::string& key) {
  return one.find(key) == nullptr ? std::nullopt : std::optional(number(*one.find(key)));
}

// A case may have the first packs only, where the original leaves the others out or for a later step, and the lengths
// in place of the sequences, where it does not tell equal ones apart.
void check_packs(const Value& one) {
  INFO(one.find("case")->text);
  const auto packer = std::find_if(packers().begin(), packers().end(),
                                   [&](const Packer& each) { return each.name == one.find("packer")->text; });
  REQUIRE(packer != packers().end());
  PackRules rules{number(*one.find("room")), stated(one, "replicas").value_or(1), stated(one, "cp").value_or(1),
                  packer->defaults};
  for (const PackBound& option : pack_bounds()) {
    if (const auto bound = stated(one, option.name)) rules.bounds.*option.bound = bound;
  }
  const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
  const Value* by_length = one.find("packs_of_lengths");
  std::vector<std::vector<std::int64_t>> packs;
  for (const SequencePack& pack : packer->pack(batch_of(lengths), rules)) {
    std::vector<std::int64_t>& list = packs.emplace_back(pack.sequences.begin(), pack.sequences.end());
    if (by_length == nullptr) continue;
    for (std::int64_t& sequence : list) sequence = lengths[static_cast<std::size_t>(sequence)];
  }
  const auto published = lists(by_length == nullptr ? *one.find("packs") : *by_length);
  if (one.find("left_out") != nullptr) packs.resize(std::min(packs.size(), published.size()));
  CHECK(packs == published);
}

void check_case(const Value& one) {
  PlanningContext context = small_pool(number(*one.find("ranks")));
  context.capacity = number(*one.find("capacity"));
  const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
  context.context = stated(one, "context").value_or(*std::max_element(lengths.begin(), lengths.end()));
  context.work.per_token = static_cast<double>(stated(one, "per_token").value_or(1));
  context.work.per_area = static_cast<double>(stated(one, "per_pair").value_or(0));
  context.tp = stated(one, "tp").value_or(context.tp);
  if (const Value* flops = one.find("flops")) context.counted_flops = {numbers(*flops)[0], numbers(*flops)[1]};
  const std::string& policy = one.find("policy")->text;
  INFO(policy << " on " << context.ranks << " ranks of " << context.capacity << ", case " << one.find("case")->text);
  if (one.find("refused") != nullptr) {
    CHECK_THROWS_AS(planner(policy, context)->plan(batch_of(lengths), 0), InputError);
  } else if (const Value* by_length = one.find("micro_batches_of_lengths")) {
    std::vector<Placed> expected;
    add_published(0, *by_length, expected);
    CHECK(by_length_of(placed(plan_of(policy, context, lengths)), lengths) == in_order(std::move(expected)));
  } else {
    const Plan plan = plan_of(policy, context, lengths);
    CHECK(placed(plan) == published(one));
    if (const Value* widths = one.find("widths")) CHECK(widths_of(plan) == numbers(*widths));
  }
}

}  // namespace

TEST_CASE("policies of other systems make the plans that the systems' own code makes", "[plan][published]") {
  const char* const policy =
      GENERATE("megatron-dp-balanced", "megatron-hybrid-cp", "megatron-dynamic-cp", "megatron-hybrid-cp-packing",
               "megatron-dp-balanced-main", "flexsp-homogeneous", "verl", "openrlhf", "verl-mini-batches",
               "verl-dynamic-cp", "slime", "miles", "nemo-rl", "roll", "skyrl", "areal", "prime-rl");
  for (const Value& one : cases_of(policy)) check_case(one);
}

TEST_CASE("packers make the packs that the trainers' own code makes", "[plan][published]") {
  for (const Value& one : cases_of("packers")) check_packs(one);
}

TEST_CASE("DistCA's planner moves the queries that its own code moves", "[plan][published][distca]") {
  const auto shares_of = [](const Value& list) {
    std::vector<ServedShare> shares;
    for (const Value& one : list.items) {
      const auto document = static_cast<std::size_t>(number(one.items[0]));
      ServedShare& share = shares.emplace_back();
      share.holder = static_cast<std::size_t>(number(one.items[1]));
      share.server = static_cast<std::size_t>(number(one.items[2]));
      for (const std::vector<std::int64_t>& piece : lists(one.items[3])) {  // queries, and the key of the last one
        share.pieces.push_back({document, piece[1] - piece[0], piece[0]});
      }
    }
    return shares;
  };
  for (const Value& one : cases_of("distca")) {
    INFO("case " << one.find("case")->text);
    ServerRules rules{number(*one.find("servers")), number(*one.find("query_bytes")), number(*one.find("key_bytes"))};
    rules.tolerance = static_cast<double>(number(*one.find("tolerance_in_percent"))) / 100;
    std::vector<ServedShare> shares = shares_of(*one.find("placed"));
    balance_shares(numbers(*one.find("lengths")), rules, shares);
    CHECK(shares == shares_of(*one.find("planned")));
  }
}

TEST_CASE("WLB-LLM without delay packs as the baseline of DistCA's own code does, by length", "[plan][published]") {
  for (const Value& one : cases_of("wlb-without-delay")) {
    INFO("case " << one.find("case")->text);
    const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
    const auto breakpoint = static_cast<double>(number(*one.find("breakpoint")));
    const auto price = [&](std::int64_t tokens) {
      const double share = static_cast<double>(tokens) / breakpoint;
      return share * share + share;
    };
    const auto published = lists(*one.find("packs_of_lengths"));
    std::vector<std::vector<std::int64_t>> packs;
    for (const SequencePack& pack :
         pack_all_by_work(batch_of(lengths), published.size(), number(*one.find("room")), price)) {
      std::vector<std::int64_t>& list = packs.emplace_back();
      for (const std::size_t sequence : pack.sequences) list.push_back(lengths[sequence]);
    }
    CHECK(packs == published);
  }
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
