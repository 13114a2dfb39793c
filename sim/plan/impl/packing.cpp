#include "sim/plan/impl/packing.h"

#include <set>
#include <utility>

namespace hdpsim {

std::vector<SequenceList> best_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room) {
  std::vector<SequenceList> packs;
  std::set<std::pair<std::int64_t, std::size_t>> open;  // room left and pack; full packs are not listed
  for (const std::size_t sequence : sequences) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const auto fit = open.lower_bound({tokens, 0});
    std::size_t pack = packs.size();
    std::int64_t left = room - tokens;
    if (fit == open.end()) {
      packs.emplace_back();
    } else {
      pack = fit->second;
      left = fit->first - tokens;
      open.erase(fit);
    }
    packs[pack].push_back(sequence);
    if (left > 0) open.insert({left, pack});
  }
  return packs;
}

std::vector<SequenceList> next_fit(const Batch& batch, std::int64_t room, std::optional<std::int64_t> most) {
  std::vector<SequenceList> packs;
  std::int64_t left = 0;
  for (std::size_t sequence = 0; sequence < batch.sequences.size(); ++sequence) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    if (packs.empty() || tokens > left || std::ssize(packs.back()) == most) {
      packs.emplace_back();
      left = room;
    }
    packs.back().push_back(sequence);
    left -= tokens;
  }
  return packs;
}

}  // namespace hdpsim
