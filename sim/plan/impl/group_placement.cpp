#include "sim/plan/impl/group_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "sim/base/text.h"
#include "sim/plan/impl/plan_limits.h"

namespace hdpsim {
namespace {

std::string place_text(const Position& position) {
  return fmt::format("line {}, column {}", position.line, position.column);
}

std::vector<std::int64_t> run_of(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

}  // namespace

void GroupPlacement::place(const std::vector<StatedGroup>& groups, std::size_t lists) {
  plan_.schedule.resize(static_cast<std::size_t>(plan_.ranks));
  rounds_.resize(static_cast<std::size_t>(plan_.ranks));
  FirstProblems problems(diagnostics_);
  for (const StatedGroup& group : groups) {
    if (group.round != round_) next_ = 0;
    round_ = group.round;
    const std::vector<std::int64_t> ranks = ranks_of(group, lists, problems);
    if (ranks.empty()) continue;
    check_round(group, ranks, problems);
    members_ += std::ssize(ranks);
    if (members_ > most_members_of_groups) {
      diagnostics_.error(group.position, "too many ranks in the groups of one step",
                         fmt::format("at most {} in all", most_members_of_groups));
      break;
    }
    add(group, ranks);
  }
  problems.finish(step_, "problems of ranks");
}

// Empty, with the problem reported, if they cannot be had.
std::vector<std::int64_t> GroupPlacement::ranks_of(const StatedGroup& group, std::size_t lists,
                                                   FirstProblems& problems) {
  if (group.list) {
    const std::int64_t each = plan_.ranks / static_cast<std::int64_t>(lists);
    return run_of(static_cast<std::int64_t>(*group.list) * each, each);
  }
  if (group.size > plan_.ranks) {
    problems.error(group.position, fmt::format("a group of {} ranks, the pool has {}", group.size, plan_.ranks));
    return {};
  }
  std::vector<std::int64_t> ranks = group.ranks;
  if (group.size > 0) ranks = group.first ? run_of(*group.first, group.size) : next_ranks(group);
  if (!are_of_pool(group, ranks, problems)) ranks.clear();
  return ranks;
}

std::vector<std::int64_t> GroupPlacement::next_ranks(const StatedGroup& group) {
  if (next_ + group.size > plan_.ranks) next_ = 0;
  return run_of(std::exchange(next_, next_ + group.size), group.size);
}

bool GroupPlacement::are_of_pool(const StatedGroup& group, const std::vector<std::int64_t>& ranks,
                                 FirstProblems& problems) const {
  std::vector<std::int64_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted.back() >= plan_.ranks) {
    problems.error(group.position, fmt::format("there is no rank {}: the pool has {}", sorted.back(), plan_.ranks),
                   "ranks count from 0");
  } else if (twice != sorted.end()) {
    problems.error(group.position, fmt::format("the group has rank {} twice", *twice));
  } else {
    return true;
  }
  return false;
}

void GroupPlacement::check_round(const StatedGroup& group, const std::vector<std::int64_t>& ranks,
                                 FirstProblems& problems) {
  if (!group.round) return;
  for (const std::int64_t rank : ranks) {
    std::optional<std::size_t>& last = rounds_[static_cast<std::size_t>(rank)];
    if (last == group.round) {
      return problems.error(group.position, fmt::format("rank {} is in two groups of one round", rank),
                            "the groups of a round run side by side: give it to one of them, or begin another round");
    }
  }
  for (const std::int64_t rank : ranks) rounds_[static_cast<std::size_t>(rank)] = group.round;
}

// Sequences that the batch does not have are left out; check_sequences() reports them.
void GroupPlacement::add(const StatedGroup& group, const std::vector<std::int64_t>& ranks) {
  const MicroBatchId id(plan_.micro_batches.size());
  MicroBatch& micro_batch = plan_.micro_batches.emplace_back();
  micro_batch.offload = group.offload;
  for (const std::int64_t rank : ranks) {
    micro_batch.group.emplace_back(static_cast<std::size_t>(rank));
    plan_.schedule[static_cast<std::size_t>(rank)].push_back(id);
  }
  for (const StatedSequence& stated : group.sequences) {
    const auto index = static_cast<std::size_t>(stated.sequence);
    if (index >= plan_.sequence_tokens.size()) continue;
    micro_batch.spans.push_back({SequenceId(index), 0, plan_.sequence_tokens[index]});
  }
}

void GroupPlacement::check_sequences(const std::vector<StatedGroup>& groups) {
  const std::size_t count = plan_.sequence_tokens.size();
  std::vector<const StatedSequence*> seen(count);
  FirstProblems unknown(diagnostics_);
  FirstProblems twice(diagnostics_);
  for (const StatedGroup& group : groups) {
    for (const StatedSequence& stated : group.sequences) {
      const auto index = static_cast<std::size_t>(stated.sequence);
      if (index >= count) {
        unknown.error(stated.position, fmt::format("there is no sequence {}: the batch has {}", index, count),
                      "sequences are named by their place in 'lengths', from 0");
      } else if (seen[index] != nullptr) {
        twice.error(stated.position, fmt::format("sequence {} is here a second time", index),
                    fmt::format("it is at {} already", place_text(seen[index]->position)));
      } else {
        seen[index] = &stated;
      }
    }
  }
  unknown.finish(step_, "sequences that the batch does not have");
  twice.finish(step_, "sequences that are there twice");
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < count; ++i) {
    if (seen[i] == nullptr) missing.push_back(i);
  }
  if (missing.empty()) return;
  const std::size_t told = std::min(missing.size(), FirstProblems::most);
  const std::string more = missing.size() > told ? fmt::format(" and {} more", missing.size() - told) : "";
  diagnostics_.error(step_,
                     fmt::format("in no group: sequence{} {}{}", missing.size() == 1 ? "" : "s",
                                 joined(std::span(missing).first(told), ", "), more),
                     "every sequence of the batch is in one group");
}

}  // namespace hdpsim
