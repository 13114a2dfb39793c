#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/plan_time.h"
#include "sim/plan/planner.h"
#include "tests/support/catch.h"
#include "tests/support/plain_rings.h"
#include "tests/support/planner_of.h"

namespace hdpsim {

/// A batch of one document for every length.
inline Batch batch_of(const std::vector<std::int64_t>& lengths) {
  Batch batch;
  for (const std::int64_t tokens : lengths) batch.sequences.push_back({tokens, std::ssize(batch.sequences)});
  return batch;
}

/// A pool of ranks in nodes of 4, 100 tokens a rank, in which a token costs 1 second and nothing else costs anything.
/// The longest sequence fills the pool.
inline PlanningContext small_pool(std::int64_t ranks = 8) {
  PlanningContext context;
  context.ranks = ranks;
  context.ranks_per_node = 4;
  context.capacity = 100;
  context.context = ranks * context.capacity;
  context.layers = 10;
  context.work.per_token = 1;
  return context;
}

/// The pool with a change.
inline PlanningContext with(PlanningContext context, const std::function<void(PlanningContext&)>& change) {
  change(context);
  return context;
}

/// The planner of a study's entry for a pool with plain rings; the entry must be right.
inline std::unique_ptr<Planner> planner(const std::string& entry, PlanningContext context) {
  Diagnostics diagnostics;
  context.work = test::with_plain_rings(context.work);
  auto made = test::planner_of(parse_document("study.yaml", entry, diagnostics), context, diagnostics);
  INFO(diagnostics.text());
  REQUIRE(made != nullptr);
  return made;
}

/// The text of all problems of a study's entry; there is no planner exactly if there are any.
inline std::string problems_of_entry(const std::string& entry, const PlanningContext& context = small_pool()) {
  Diagnostics diagnostics;
  const Value document = parse_document("study.yaml", entry, diagnostics);
  const auto made = test::planner_of(document, context, diagnostics);
  CHECK((made == nullptr) == !diagnostics.empty());
  return diagnostics.text();
}

/// The same problem by problem, without the lines that show the place: "14: 'cp' is 3, ...; it can be 1, 2, 4, 8", the
/// column, the message and what to do.
inline std::vector<std::string> problems_by_column(const std::string& entry,
                                                   const PlanningContext& context = small_pool()) {
  Diagnostics diagnostics;
  (void)test::planner_of(parse_document("study.yaml", entry, diagnostics), context, diagnostics);
  std::vector<std::string> problems;
  for (const Diagnostic& problem : diagnostics.sorted()) {
    const std::string help = problem.help.empty() ? "" : "; " + problem.help;
    problems.push_back(std::to_string(problem.position.column) + ": " + problem.message + help);
  }
  return problems;
}

/// The plan of an entry for one batch; it must have no problems.
inline Plan plan_of(const std::string& entry, const PlanningContext& context,
                    const std::vector<std::int64_t>& lengths) {
  Plan plan = planner(entry, context)->plan(batch_of(lengths), 0);
  const std::vector<std::string> problems = check_plan(plan);
  CAPTURE(problems);
  CHECK(problems.empty());
  return plan;
}

/// The planners' estimate of a plan for the pool.
inline PlanTime time_of(const Plan& plan, const PlanningContext& context) {
  return plan_time(plan, test::with_plain_rings(context.work));
}

inline std::vector<std::size_t> ranks_of(const MicroBatch& micro_batch) {
  std::vector<std::size_t> ranks;
  for (const HdpRank rank : micro_batch.group) ranks.push_back(rank.index());
  return ranks;
}

inline std::vector<std::size_t> sequences_of(const MicroBatch& micro_batch) {
  std::vector<std::size_t> sequences;
  for (const Span& span : micro_batch.spans) sequences.push_back(span.sequence.index());
  return sequences;
}

/// The micro-batches of a plan as its file has them, without the names of what every one has: `0-3: [1] | 4: [0, 2]`.
/// Every rank must run its own in this order.
inline std::string micro_batches_text(const Plan& plan) {
  for (const auto& list : plan.schedule) CHECK(std::is_sorted(list.begin(), list.end()));
  const std::string file = plan_text(plan);
  const std::size_t begin = file.find("\"micro_batches\": [") + 18;
  std::string text = file.substr(begin, file.find("  \"schedule\"") - begin);
  const auto replace_all = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  replace_all("},\n    {", " | ");
  replace_all("\", \"spans\": ", ": ");
  replace_all("\"group\": \"", "");
  replace_all("\"", "");
  text = text.substr(text.find('{') + 1);
  return text.substr(0, text.rfind('}'));
}

/// The micro-batch that holds a sequence.
inline const MicroBatch& micro_batch_of(const Plan& plan, std::size_t sequence) {
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    for (const Span& span : micro_batch.spans) {
      if (span.sequence.index() == sequence) return micro_batch;
    }
  }
  FAIL("sequence " << sequence << " is in no micro-batch");
  return plan.micro_batches.front();
}

using Indices = std::vector<std::size_t>;

}  // namespace hdpsim
