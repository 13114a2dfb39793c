#include "sim/program/uneven_attention.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hdpsim {
namespace {

// Blocks of equal shape are stated once.
class Blocks {
 public:
  void add_own(std::int64_t tokens) { ++counts_[{Mask::causal, tokens, tokens}]; }
  void add_foreign(std::int64_t queries, Int128 pairs) {
    if (pairs == 0) return;
    const auto keys = static_cast<std::int64_t>((pairs + queries / 2) / queries);
    ++counts_[{Mask::full, queries, std::max<std::int64_t>(1, keys)}];
    foreign_queries_ += queries;
  }
  [[nodiscard]] BusiestLaunch launch(Int128 most, double mean) const {
    BusiestLaunch launch{{}, foreign_queries_, most > 0 ? 1 - mean / static_cast<double>(most) : 0};
    for (const auto& [shape, count] : counts_) {
      const auto& [mask, queries, keys] = shape;
      launch.blocks.push_back({queries, keys, mask, count});
    }
    if (launch.blocks.empty()) launch.blocks.push_back({1, 1, Mask::full, 1});
    return launch;
  }

 private:
  std::map<std::tuple<Mask, std::int64_t, std::int64_t>, std::int64_t> counts_;
  std::int64_t foreign_queries_ = 0;
};

// The pieces of each document against its keys up to them.
Blocks blocks_of(const std::vector<CutPiece>& pieces) {
  Blocks blocks;
  for (auto piece = pieces.begin(); piece != pieces.end();) {
    std::int64_t tokens = 0;
    Int128 pairs = 0;
    for (const std::size_t document = piece->document; piece != pieces.end() && piece->document == document; ++piece) {
      tokens += piece->tokens;
      pairs += piece->pairs();
    }
    blocks.add_own(tokens);
    blocks.add_foreign(tokens, pairs - Int128{tokens} * (tokens + 1) / 2);
  }
  return blocks;
}

Int128 sum_of_pairs(const std::vector<CutPiece>& pieces) {
  Int128 pairs = 0;
  for (const CutPiece& piece : pieces) pairs += piece.pairs();
  return pairs;
}

}  // namespace

BusiestLaunch busiest_launch(const std::vector<std::vector<CutPiece>>& attended) {
  std::size_t busiest = 0;
  Int128 most = 0;
  Int128 all = 0;
  for (std::size_t rank = 0; rank < attended.size(); ++rank) {
    const Int128 pairs = sum_of_pairs(attended[rank]);
    all += pairs;
    if (pairs <= most) continue;
    most = pairs;
    busiest = rank;
  }
  return blocks_of(attended[busiest]).launch(most, static_cast<double>(all) / static_cast<double>(attended.size()));
}

GroupWork::GroupWork(const MicroBatch& micro_batch) : cut_(group_cut_of(micro_batch)), ranks_(cut_->work()) {}

std::int64_t GroupWork::most_remote_keys() const {
  std::int64_t most = 0;
  for (const RankWork& rank : ranks_) most = std::max(most, rank.remote_keys);
  return most;
}

BusiestLaunch GroupWork::with_all_keys() const {
  const auto busiest = std::max_element(ranks_.begin(), ranks_.end(),
                                        [](const RankWork& a, const RankWork& b) { return a.pairs < b.pairs; });
  Int128 all = 0;
  for (const RankWork& rank : ranks_) all += rank.pairs;
  return blocks_of(pieces_of(*cut_, busiest - ranks_.begin()))
      .launch(busiest->pairs, static_cast<double>(all) / static_cast<double>(ranks_.size()));
}

std::vector<BusiestLaunch> GroupWork::in_ring() const {
  std::vector<BusiestLaunch> launches;
  for (const RingStep& step : ring_steps(*cut_)) {
    Blocks blocks;
    for (const std::int64_t tokens : step.own) blocks.add_own(tokens);
    for (const ForeignTile& tile : step.foreign) blocks.add_foreign(tile.queries, tile.pairs);
    launches.push_back(blocks.launch(step.pairs, static_cast<double>(step.all) / static_cast<double>(ranks_.size())));
  }
  return launches;
}

}  // namespace hdpsim
