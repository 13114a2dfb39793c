#include "sim/plan/impl/work_packing.h"

#include <set>
#include <utility>

#include "sim/base/check.h"
#include "sim/plan/plan.h"

namespace hdpsim {

WorkPacks pack_by_work(const Batch& batch, const SequenceList& order, std::size_t count, std::int64_t room,
                       const WorkModel& work) {
  HDPSIM_CHECK(count >= 1, "{} packs", count);
  WorkPacks result{std::vector<SequenceList>(count), std::vector<double>(count), {}};
  std::vector<std::int64_t> tokens_of_pack(count);
  std::set<std::pair<double, std::size_t>> by_work;
  std::set<std::pair<std::int64_t, std::size_t>> by_tokens;
  for (std::size_t i = 0; i < count; ++i) {
    by_work.emplace(0, i);
    by_tokens.emplace(0, i);
  }
  for (const std::size_t sequence : order) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const auto fits = [&](std::size_t pack) { return tokens_of_pack[pack] + tokens <= room; };
    std::size_t chosen = by_work.begin()->second;
    if (!fits(chosen)) chosen = by_tokens.begin()->second;
    if (!fits(chosen)) {
      result.left.push_back(sequence);
      continue;
    }
    by_work.erase({result.work[chosen], chosen});
    by_tokens.erase({tokens_of_pack[chosen], chosen});
    result.packs[chosen].push_back(sequence);
    tokens_of_pack[chosen] += tokens;
    result.work[chosen] += work.compute_seconds(causal_pairs(tokens), tokens);
    by_work.emplace(result.work[chosen], chosen);
    by_tokens.emplace(tokens_of_pack[chosen], chosen);
  }
  return result;
}

}  // namespace hdpsim
