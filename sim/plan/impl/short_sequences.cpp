#include "sim/plan/impl/short_sequences.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <queue>

namespace hdpsim {

std::optional<std::size_t> ShortSequences::longest_within(std::int64_t most) const {
  const auto beyond = left_.upper_bound({most, std::numeric_limits<std::size_t>::max()});
  if (beyond == left_.begin()) return std::nullopt;
  return std::prev(beyond)->second;
}

SequenceList ShortSequences::rest() const {
  SequenceList sequences(left_.size());
  std::transform(left_.rbegin(), left_.rend(), sequences.begin(), [](const auto& entry) { return entry.second; });
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
                                            const PlanningContext& context, std::vector<double>& loads) {
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
    if (packs[rank].add(sequence, tokens, context.capacity)) load += context.work.per_micro_batch;
    load += context.work.compute_seconds(causal_pairs(tokens), tokens);
    loads[rank] = load;
    least_loaded.emplace(load, rank);
  }
  return packs;
}

}  // namespace hdpsim
