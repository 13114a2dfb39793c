#include <algorithm>
#include <utility>
#include <vector>

#include "sim/plan/impl/balance.h"
#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/waves.h"

namespace hdpsim {
namespace {

class WaveBalancing : Balancing {
 public:
  WaveBalancing(const BalancedStep& step, const BalanceCandidate& candidate)
      : Balancing(step, candidate), packs_(best_fit(step.batch, step.order, step.context.capacity)) {}

  BalanceOutcome run() {
    for (std::vector<Item>& wave : waves()) run_wave(wave);
    return outcome(loads_.loads());
  }

 private:
  struct Item {
    std::size_t pack;
    RingSize size;
    Seconds seconds;
  };

  // Assigns packs to waves. A sequence of C tokens or more is a pack alone.
  std::vector<std::vector<Item>> waves() const {
    std::vector<Item> items;
    for (std::size_t i = 0; i < packs_.size(); ++i) items.push_back(item(i));
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.seconds.any > b.seconds.any; });
    Waves places(items.size(), context_.ranks);
    std::vector<std::vector<Item>> waves;
    for (const Item& each : items) {
      const std::size_t wave = places.place(each.size.degree).wave;
      if (wave >= waves.size()) waves.resize(wave + 1);
      waves[wave].push_back(each);
    }
    return waves;
  }

  Item item(std::size_t pack) const {
    double pairs = 0;
    std::int64_t sum = 0;
    for (const std::size_t sequence : packs_[pack]) {
      const std::int64_t tokens = batch_.sequences[sequence].tokens;
      pairs += causal_pairs(tokens);
      sum += tokens;
    }
    const RingSize size = sum < context_.capacity ? sizing_.of_pack() : sized(sum);
    return {pack, size, {sizing_.seconds(pairs, sum, size, false), sizing_.seconds(pairs, sum, size, true)}};
  }

  // No rank runs two micro-batches of a wave: ranks are put back after the whole wave.
  void run_wave(const std::vector<Item>& wave) {
    std::vector<std::pair<std::int64_t, double>> done;
    for (const Item& each : wave) {
      const Taken taken = take(each.size.degree, RankChoice::least_loaded, each.seconds);
      for (const std::int64_t rank : taken.ranks) done.emplace_back(rank, taken.end);
      add(taken, packs_[each.pack], each.size);
    }
    for (const auto& [rank, load] : done) loads_.put(rank, load);
  }

  std::vector<SequenceList> packs_;
};

}  // namespace

BalanceOutcome balance_waves(const BalancedStep& step, const BalanceCandidate& candidate) {
  return WaveBalancing(step, candidate).run();
}

}  // namespace hdpsim
