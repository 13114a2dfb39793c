#include "sim/plan/impl/work_packing.h"

#include "sim/base/check.h"
#include "sim/plan/impl/load_tree.h"
#include "sim/plan/plan.h"

namespace hdpsim {

WorkPacks pack_by_work(const Batch& batch, const SequenceList& order, std::size_t count, std::int64_t room,
                       const WorkModel& work) {
  HDPSIM_CHECK(count >= 1, "{} packs", count);
  WorkPacks result{std::vector<SequenceList>(count), std::vector<double>(count), {}};
  std::vector<std::int64_t> tokens_of_pack(count);
  LoadTree packs(count);
  for (std::size_t i = 0; i < count; ++i) packs.set(i, 0, 0);
  for (const std::size_t sequence : order) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const auto fits = [&](std::size_t pack) { return tokens_of_pack[pack] + tokens <= room; };
    std::size_t chosen = packs.least();
    if (!fits(chosen)) chosen = packs.emptiest();
    if (!fits(chosen)) {
      result.left.push_back(sequence);
      continue;
    }
    result.packs[chosen].push_back(sequence);
    tokens_of_pack[chosen] += tokens;
    result.work[chosen] += work.compute_seconds(causal_pairs(tokens), tokens);
    packs.set(chosen, result.work[chosen], static_cast<double>(tokens_of_pack[chosen]));
  }
  return result;
}

}  // namespace hdpsim
