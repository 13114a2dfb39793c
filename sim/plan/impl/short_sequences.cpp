#include "sim/plan/impl/short_sequences.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace hdpsim {

ShortSequences::ShortSequences(const Batch& batch, std::span<const std::size_t> longest_first)
    : batch_(batch), ascending_(longest_first.rbegin(), longest_first.rend()), last_left_(ascending_.size() + 1) {
  const auto tokens = [&](std::size_t sequence) { return batch_.sequences[sequence].tokens; };
  for (auto first = ascending_.begin(); first != ascending_.end();) {
    const auto longer = [&](std::size_t sequence) { return tokens(sequence) > tokens(*first); };
    const auto end = std::find_if(first, ascending_.end(), longer);
    std::reverse(first, end);
    first = end;
  }
  std::iota(last_left_.begin(), last_left_.end(), 0U);
}

std::size_t ShortSequences::last_left(std::size_t end) {
  while (last_left_[end] != end) {
    last_left_[end] = last_left_[last_left_[end]];
    end = last_left_[end];
  }
  return end;
}

std::optional<std::size_t> ShortSequences::take_longest_within(
    std::int64_t most, const std::function<bool(std::size_t sequence)>& wanted) {
  const auto fits = [&](std::size_t sequence) { return batch_.sequences[sequence].tokens <= most; };
  const auto beyond = std::partition_point(ascending_.begin(), ascending_.end(), fits);
  const std::size_t place = last_left(static_cast<std::size_t>(beyond - ascending_.begin()));
  if (place == 0 || !wanted(ascending_[place - 1])) return std::nullopt;
  last_left_[place] = static_cast<std::uint32_t>(place - 1);
  return ascending_[place - 1];
}

SequenceList ShortSequences::rest() const {
  SequenceList sequences;
  for (std::size_t place = ascending_.size(); place > 0; --place) {
    if (last_left_[place] == place) sequences.push_back(ascending_[place - 1]);
  }
  return sequences;
}

bool RankPacks::add(std::size_t sequence, std::int64_t tokens, std::int64_t capacity) {
  const auto less_room = [](const Open& open, std::int64_t room) { return open.room < room; };
  const auto fit = std::lower_bound(open_.begin(), open_.end(), tokens, less_room);
  const bool opened = fit == open_.end();
  Open pack{capacity, packs_.size()};
  if (opened) {
    packs_.emplace_back();
  } else {
    pack = *fit;
    open_.erase(fit);
  }
  packs_[pack.pack].push_back(sequence);
  pack.room -= tokens;
  if (pack.room > 0) open_.insert(std::lower_bound(open_.begin(), open_.end(), pack.room, less_room), pack);
  return opened;
}

std::vector<RankPacks> deal_to_least_loaded(const Batch& batch, const SequenceList& sequences,
                                            const PlanningContext& context, std::vector<double>& loads,
                                            const std::vector<double>& speeds) {
  using Load = std::pair<double, std::size_t>;  // seconds and rank
  std::vector<Load> start;
  start.reserve(loads.size());
  for (std::size_t rank = 0; rank < loads.size(); ++rank) start.emplace_back(loads[rank], rank);
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least_loaded({}, std::move(start));

  std::vector<RankPacks> packs(loads.size());
  for (const std::size_t sequence : sequences) {
    auto [load, rank] = least_loaded.top();
    least_loaded.pop();
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    double seconds = context.work.compute_seconds(causal_pairs(tokens), tokens);
    if (packs[rank].add(sequence, tokens, context.capacity)) seconds += context.work.per_micro_batch;
    load += speeds.empty() ? seconds : seconds / speeds[rank];
    loads[rank] = load;
    least_loaded.emplace(load, rank);
  }
  return packs;
}

}  // namespace hdpsim
