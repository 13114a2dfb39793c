#include "sim/analysis/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/analysis/link_use.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_passes = 3;

ExplainedPass explained(const CriticalPass& link, const Program& program) {
  const Pipeline& pipeline = program.pipeline();
  const StagePass pass = pipeline.pass(link.pass);
  const MicroBatch& micro_batch = pipeline.micro_batch(link.pass);
  std::optional<Span> longest;
  for_each_span(micro_batch, [&](const Span& span) {
    if (!longest || span.tokens > longest->tokens) longest = span;
  });
  const HdpRank last = pipeline.rank_of(link.last_to_come);
  ExplainedPass result{
      .micro_batch = static_cast<std::int64_t>(pass.micro_batch.index()),
      .kind = {},
      .ranks = std::ssize(micro_batch.group),
      .first_rank = static_cast<std::int64_t>(micro_batch.group.front().index()),
      .last_rank = static_cast<std::int64_t>(last.index()),
      .last_is_outside = std::find(micro_batch.group.begin(), micro_batch.group.end(), last) == micro_batch.group.end(),
      .spans = span_count(micro_batch),
      .tokens = micro_batch.tokens(),
      .time = link.end - link.begin,
      .waiting = link.time[Activity::cp_comm] + link.time[Activity::group_wait] + link.time[Activity::offload_stall] +
                 link.time[Activity::grad_sync]};
  if (pipeline.stages() > 1) result.kind = fmt::format("{} on stage {}", pass_kind_name(pass.kind), pass.stage);
  if (longest) {
    result.sequence = static_cast<std::int64_t>(longest->sequence.index());
    result.sequence_tokens = program.plan().sequence_tokens.at(longest->sequence.index());
  }
  return result;
}

Duration waiting_of(const CriticalPass& link) {
  return link.time[Activity::cp_comm];
}

std::size_t busiest_worker(const Timeline& timeline) {
  std::size_t busiest = 0;
  for (std::size_t w = 1; w < timeline.ranks.size(); ++w) {
    if (timeline.busy(w) > timeline.busy(busiest)) busiest = w;
  }
  return busiest;
}

}  // namespace

Explanation explanation_of(const Program& program, const Timeline& timeline, const Machine& machine) {
  const Pipeline& pipeline = program.pipeline();
  const CriticalPath path = critical_path(program, timeline, machine);
  Explanation explanation{
      .plan = program.plan().policy,
      .step = program.plan().step,
      .step_time = timeline.step_time,
      .excess = {},
      .mean = timeline.mean(),
      .busy = busy_times(timeline),
      .busiest_rank = static_cast<std::int64_t>(pipeline.rank_of(WorkerId(busiest_worker(timeline))).index()),
      .path = path.time(),
      .ending = path.ending,
      .path_passes = std::ssize(path.passes),
      .longest = {},
      .slow_hop = {},
      .busiest_link = {},
      .changes = {}};
  std::vector<CriticalPass> longest = path.passes;
  std::stable_sort(longest.begin(), longest.end(),
                   [](const CriticalPass& a, const CriticalPass& b) { return a.end - a.begin > b.end - b.begin; });
  for (std::size_t i = 0; i < std::min(most_passes, longest.size()); ++i) {
    explanation.longest.push_back(explained(longest[i], program));
  }
  const auto waits_longest =
      std::max_element(path.passes.begin(), path.passes.end(),
                       [](const CriticalPass& a, const CriticalPass& b) { return waiting_of(a) < waiting_of(b); });
  if (waits_longest != path.passes.end() && waiting_of(*waits_longest) > Duration{}) {
    explanation.slow_hop = slowest_hop(program, waits_longest->pass, machine);
  }
  const TimeWindow step{Instant{}, Instant::at(timeline.step_time)};
  if (!timeline.links.empty()) {
    for (const LinkLoad& load : link_loads(program, timeline, machine, step, 1, 1)) {
      explanation.busiest_link = load.name;
      explanation.busiest_link_share = load.shares.front();
    }
  }
  return explanation;
}

}  // namespace hdpsim
