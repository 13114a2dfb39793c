#include "sim/plan/impl/mini_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/document/document.h"
#include "sim/plan/impl/pool_fit.h"

namespace hdpsim {
namespace {

SequenceList part_of(const SequenceList& items, std::size_t first, std::size_t count) {
  const auto begin = items.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// The second half; the first one stays.
SequenceList halve(SequenceList& pack, const Batch& batch) {
  const auto tokens = [&](std::size_t sequence) { return batch.sequences[sequence].tokens; };
  std::stable_sort(pack.begin(), pack.end(), [&](std::size_t a, std::size_t b) { return tokens(a) > tokens(b); });
  SequencePack first;
  SequencePack second;
  for (const std::size_t sequence : pack) {
    (first.tokens <= second.tokens ? first : second).add(sequence, tokens(sequence));
  }
  pack = std::move(first.sequences);
  return std::move(second.sequences);
}

}  // namespace

UpdateRule::UpdateRule(std::string policy, PoolFit& pool, const MiniBatchOptions& options)
    : policy_(std::move(policy)),
      position_(pool.where("mini_batch").position),
      mini_batch_(options.mini_batch),
      updates_(static_cast<std::size_t>(options.updates.value_or(1))) {
  if (!options.mini_batch || !options.updates) return;
  pool.error(pool.where("updates"), "'updates' and 'mini_batch' both say how the batch is divided",
             "state one of them");
}

std::vector<SequenceList> UpdateRule::runs(const SequenceList& items, std::size_t parts) const {
  if (!mini_batch_) return even_runs(items, updates_);
  const auto mini = static_cast<std::size_t>(*mini_batch_);
  if (mini % parts != 0) {
    refuse(fmt::format("a mini-batch of {} does not divide among {} replicas", mini, parts),
           fmt::format("make it a multiple of {}, or state 'updates'", parts));
  }
  const std::size_t size = mini / parts;
  if (items.size() % size != 0) {
    const std::string whose = parts == 1 ? "the batch" : "a replica";
    refuse(fmt::format("{} has {} sequences, which are no mini-batches of {}", whose, items.size(), size),
           "state 'updates' for batches of any number");
  }
  std::vector<SequenceList> runs;
  for (std::size_t first = 0; first < items.size(); first += size) runs.push_back(part_of(items, first, size));
  return runs;
}

void UpdateRule::refuse(const std::string& message, const std::string& help) const {
  throw InputError(position_, fmt::format("{}: {}", policy_, message), help);
}

std::vector<SequenceList> even_runs(const SequenceList& items, std::size_t runs) {
  std::vector<SequenceList> parts;
  std::size_t first = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    const std::size_t count = items.size() / runs + (i < items.size() % runs ? 1 : 0);
    parts.push_back(part_of(items, first, count));
    first += count;
  }
  return parts;
}

bool grow_packs(std::vector<SequenceList>& packs, std::size_t count, const Batch& batch) {
  std::vector<std::int64_t> tokens;
  for (const SequenceList& pack : packs) tokens.push_back(tokens_of(batch, pack));
  while (packs.size() < count) {
    std::size_t heaviest = packs.size();
    for (std::size_t i = 0; i < packs.size(); ++i) {
      if (packs[i].size() < 2) continue;
      if (heaviest == packs.size() || tokens[i] >= tokens[heaviest]) heaviest = i;
    }
    if (heaviest == packs.size()) return false;
    SequenceList second = halve(packs[heaviest], batch);
    tokens[heaviest] = tokens_of(batch, packs[heaviest]);
    tokens.push_back(tokens_of(batch, second));
    packs.push_back(std::move(second));
  }
  return true;
}

}  // namespace hdpsim
