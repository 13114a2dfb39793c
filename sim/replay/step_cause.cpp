#include "sim/replay/step_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/analysis/critical_path.h"
#include "sim/base/quantity_text.h"
#include "sim/program/program.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_sequences = 3;
constexpr double share_of_a_cause = 0.1;  // share of the chain; below it a sequence is one among many

/// A sequence's part in the chain.
struct OnChain {
  double seconds = 0;
  std::int64_t group = 1;
};

std::map<std::size_t, OnChain> sequences_on(const std::vector<ChainLink>& chain, const Plan& plan,
                                            const WorkModel& work) {
  std::map<std::size_t, OnChain> found;
  for (const ChainLink& link : chain) {
    const MicroBatch& micro_batch = plan.micro_batches[link.micro_batch.index()];
    const double all = work.compute_seconds(micro_batch.area(), micro_batch.tokens());
    for_each_span(micro_batch, [&](const Span& span) {
      OnChain& sequence = found[span.sequence.index()];
      sequence.seconds += link.time.seconds() * work.compute_seconds(pairs_of(micro_batch, span), span.tokens) / all;
      sequence.group = std::max(sequence.group, std::ssize(micro_batch.group));
    });
  }
  return found;
}

// A link is a pass and the message before it, if that came from another stage.
std::vector<ChainLink> chain_of(const Program& program, const Timeline& timeline, const Machine& machine) {
  std::vector<ChainLink> chain;
  for (const CriticalPass& pass : critical_path(program, timeline, machine).passes) {
    chain.push_back({program.pipeline().micro_batch_id(pass.pass), pass.message + (pass.end - pass.begin)});
  }
  return chain;
}

std::int64_t micro_batches_of(const std::vector<ChainLink>& chain) {
  std::set<MicroBatchId> distinct;  // a micro-batch may have several passes
  for (const ChainLink& link : chain) distinct.insert(link.micro_batch);
  return std::ssize(distinct);
}

std::vector<SequenceShare> largest_shares_of(const std::map<std::size_t, OnChain>& on_chain, const Batch& batch) {
  double seconds = 0;
  for (const auto& [index, sequence] : on_chain) seconds += sequence.seconds;
  double pairs = 0;
  for (const Sequence& sequence : batch.sequences) pairs += causal_pairs(sequence.tokens);
  std::vector<SequenceShare> shares;
  for (const auto& [index, on] : on_chain) {
    const Sequence& sequence = batch.sequences[index];
    shares.push_back({.sequence = static_cast<std::int64_t>(index),
                      .document = sequence.document,
                      .tokens = sequence.tokens,
                      .of_tokens = static_cast<double>(sequence.tokens) / static_cast<double>(batch.tokens()),
                      .of_attention = causal_pairs(sequence.tokens) / pairs,
                      .of_chain = seconds > 0 ? on.seconds / seconds : 0,
                      .group = on.group});
  }
  const auto larger = [](const SequenceShare& a, const SequenceShare& b) { return a.of_chain > b.of_chain; };
  std::stable_sort(shares.begin(), shares.end(), larger);
  if (shares.size() > most_sequences) shares.resize(most_sequences);
  return shares;
}

std::string plural(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with('h') ? "es" : "s");
}

std::string ordinal(std::int64_t number) {
  const bool teen = number % 100 / 10 == 1;
  const std::int64_t last = teen ? 0 : number % 10;
  return fmt::format("{}{}", number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

std::string sequence_text(const SequenceShare& share, std::int64_t sequences) {
  return fmt::format(
      "sequence {} of {} ({} tokens of document {}{}: {:.0f}% of the step's tokens, {:.0f}% of its "
      "attention) on {}",
      share.sequence, sequences, count_text(share.tokens), share.document,
      share.reading > 1 ? fmt::format(" of the trace, read for the {} time", ordinal(share.reading)) : "",
      100 * share.of_tokens, 100 * share.of_attention, plural(share.group, "rank"));
}

std::string chain_text(const StepCause& cause) {
  if (cause.sequences.empty()) return "";
  const SequenceShare& first = cause.sequences.front();
  const std::string chain = fmt::format("the critical path ({} with {})", plural(cause.chain, "micro-batch"),
                                        plural(cause.chain_sequences, "sequence"));
  const std::string share = fmt::format("{:.0f}%", 100 * first.of_chain);
  const std::string sequence = sequence_text(first, cause.row.batch.sequences);
  if (first.of_chain < share_of_a_cause) {
    return fmt::format("No sequence has more than {} of {}; the largest share has {}.", share, chain, sequence);
  }
  std::string text = fmt::format("{} of {} is {}", share, chain, sequence);
  for (std::size_t i = 1; i < cause.sequences.size(); ++i) {
    const SequenceShare& next = cause.sequences[i];
    if (next.of_chain < share_of_a_cause) break;
    text +=
        fmt::format(", {:.0f}% sequence {} ({} tokens)", 100 * next.of_chain, next.sequence, count_text(next.tokens));
  }
  return text + ".";
}

std::string groups_text(const StepCause& cause) {
  if (cause.most_group == 1) return "All groups have one rank.";
  if (cause.least_group == cause.most_group) return fmt::format("All groups have {} ranks.", cause.most_group);
  return fmt::format("Groups have {} to {} ranks.", cause.least_group, cause.most_group);
}

}  // namespace

StepCause cause_of(const Plan& plan, const std::vector<ChainLink>& chain, const WorkModel& work, const Batch& batch,
                   const StepRow& row) {
  const auto on_chain = sequences_on(chain, plan, work);
  StepCause cause{.row = row,
                  .chain = micro_batches_of(chain),
                  .chain_sequences = std::ssize(on_chain),
                  .sequences = largest_shares_of(on_chain, batch)};
  const auto smaller = [](const MicroBatch& a, const MicroBatch& b) { return a.group.size() < b.group.size(); };
  const auto [least, most] = std::minmax_element(plan.micro_batches.begin(), plan.micro_batches.end(), smaller);
  if (most != plan.micro_batches.end()) {
    cause.least_group = std::ssize(least->group);
    cause.most_group = std::ssize(most->group);
  }
  return cause;
}

void count_readings(std::int64_t documents, StepCause& cause) {
  for (SequenceShare& share : cause.sequences) {
    share.reading = share.document / documents + 1;
    share.document %= documents;
  }
}

StepCause explain_step(const StudyPoint& point, const StepRow& row, World& world) {
  const Batch batch = point.batches_of(row.plan).step(row.step);
  const Plan plan = make_plan(point, row.plan, row.step, batch);
  const Program program(plan, point.lowered);
  const Timeline timeline = simulate_plan(program, world, conditions_of(point));
  StepCause cause = cause_of(plan, chain_of(program, timeline, world.machine()), point.work, batch, row);
  if (const auto use = point.batches->use(point.spec.steps)) count_readings(use->documents, cause);
  return cause;
}

std::string text_of(const StepCause& cause, double mean_s, double mean_squares) {
  const StepRow& row = cause.row;
  const double waiting = row.breakdown_s[index_of(Activity::group_wait)] / row.time_s;
  return fmt::format(
      "step {}: {}, {:.2f} times the mean step; sum of squared lengths {:.2f} times the mean step's. Ranks work {} on "
      "average, the busiest {}; {:.0f}% of their time is group wait. {} {}",
      row.step, seconds_text(row.time_s), row.time_s / mean_s, row.batch.squares() / mean_squares,
      seconds_text(row.busy_mean_s), seconds_text(row.busy_max_s), 100 * waiting, chain_text(cause),
      groups_text(cause));
}

}  // namespace hdpsim
