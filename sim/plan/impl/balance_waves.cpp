#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/division.h"
#include "sim/plan/impl/balance.h"
#include "sim/plan/impl/loads.h"

namespace hdpsim {
namespace {

/// Bins of C tokens. A sequence goes to the one of least work that has room, and opens one more if none has.
class EvenBins {
 public:
  /// For so many sequences at most, which also bound the bins.
  EvenBins(std::int64_t bins, std::size_t sequences, const PlanningContext& context)
      : context_(context), rooms_(sequences + 1) {
    for (std::int64_t bin = 0; bin < std::min(bins, static_cast<std::int64_t>(sequences)); ++bin) open();
  }

  [[nodiscard]] std::size_t count() const { return filled_.size(); }

  /// The bin that gets the sequence. O(log bins), mostly.
  std::size_t put(std::int64_t tokens) {
    std::size_t bin = rooms_.least({.most_used = static_cast<double>(context_.capacity - tokens)});
    if (bin == LoadTree::none) bin = open();
    Filled& filled = filled_[bin];
    filled.seconds += context_.work.compute_seconds(causal_pairs(tokens), tokens);
    filled.tokens += tokens;
    rooms_.set(bin, filled.seconds, static_cast<double>(filled.tokens));
    return bin;
  }

 private:
  struct Filled {
    double seconds = 0;
    std::int64_t tokens = 0;
  };

  std::size_t open() {
    filled_.emplace_back();
    rooms_.set(filled_.size() - 1, 0, 0);
    return filled_.size() - 1;
  }

  const PlanningContext& context_;
  LoadTree rooms_;
  std::vector<Filled> filled_;
};

class WaveBalancing : Balancing {
 public:
  WaveBalancing(const BalancedStep& step, const BalanceCandidate& candidate)
      : Balancing(step, candidate),
        slow_(candidate.rings_on_fast ? speeds_.slow_ranks() : std::vector<std::int64_t>{}) {
    if (!slow_.empty()) split(step.order);
    const SizedList& order = slow_.empty() ? step.order : of_fast_;
    candidate_.waves > 0 ? make_even(order) : make_full(order);
  }

  BalanceOutcome run() {
    const std::vector<std::vector<Item>> all = waves();
    for (const std::vector<Item>& wave : all) run_wave(wave);
    if (!of_slow_.empty()) run_slow(std::max<std::size_t>(1, all.size()));
    return outcome(loads_.loads());
  }

 private:
  struct Item {
    std::size_t pack;
    RingSize size;
    Seconds seconds;
  };

  [[nodiscard]] std::int64_t fast_ranks() const { return context_.ranks - std::ssize(slow_); }

  // Slow ranks compute as large a part of all work as their part of all speeds, and of each length a similar part.
  void split(const SizedList& order) {
    double all = 0;
    double in_packs = 0;
    for (const SizedSequence& each : order) {
      const bool is_ring = each.tokens > context_.capacity;
      const double seconds = is_ring ? sizing_.work(each.tokens, {sizing_.plain_degree(each.tokens)}) : pack_part(each);
      all += seconds;
      if (!is_ring) in_packs += seconds;
    }
    double speed = 0;
    for (const std::int64_t rank : slow_) speed += speeds_.of(rank);
    const double of_slow = all * speed / speeds_.sum(context_.ranks);
    const double part = of_slow < in_packs ? of_slow / in_packs : 1;
    double missing = 0;
    for (const SizedSequence& each : order) {
      const double seconds = each.tokens > context_.capacity ? 0 : pack_part(each);
      missing += part * seconds;
      const bool is_of_slow = seconds > 0 && missing >= seconds / 2;
      (is_of_slow ? of_slow_ : of_fast_).push_back(each);
      if (is_of_slow) missing -= seconds;
    }
  }

  [[nodiscard]] double pack_part(const SizedSequence& each) const {
    return seconds_in_full_micro_batch(each.tokens, context_);
  }

  // What slow ranks compute goes to that of them which is done first. Each has as many micro-batches as there are
  // waves, so that a stage passes them on as often as others do.
  void run_slow(std::size_t waves) {
    std::vector<double> ends;
    for (const std::int64_t rank : slow_) ends.push_back(loads_.load(rank));
    LeastLoaded first_done(ends);
    std::vector<SizedList> held(slow_.size());
    for (const SizedSequence& each : of_slow_) {
      held[first_done.bin()].push_back(each);
      first_done.add(pack_part(each) / speeds_.of(slow_[first_done.bin()]));
    }
    for (std::size_t i = 0; i < slow_.size(); ++i) run_alone(slow_[i], held[i], static_cast<std::int64_t>(waves));
  }

  void run_alone(std::int64_t rank, const SizedList& held, std::int64_t most) {
    EvenBins even(most, held.size(), context_);
    std::vector<std::uint32_t> pack_of;
    pack_of.reserve(held.size());
    for (const SizedSequence& each : held) pack_of.push_back(static_cast<std::uint32_t>(even.put(each.tokens)));
    const PackList packs(pack_of, even.count(), [&](auto add) {
      for (const SizedSequence& each : held) add(each);
    });
    double end = loads_.load(rank);
    for (std::size_t i = 0; i < packs.size(); ++i) {
      const double seconds = sizing_.seconds(pairs_of(packs[i]), tokens_of(packs[i]), sizing_.pack_size(), false);
      end += seconds / speeds_.of(rank);
      longest_ = std::max(longest_, seconds);
      micro_batches_.add({&rank, 1}, packs[i], sizing_.pack_size());
    }
    loads_.put(rank, end);
  }

  // Packs as large as a rank holds, and rings as narrow as hold a sequence.
  void make_full(const SizedList& order) {
    packs_.emplace(best_fit_list(order, context_.capacity));
    for (std::size_t i = 0; i < packs_->size(); ++i) {
      const std::int64_t sum = tokens_of((*packs_)[i]);
      add_item(i, sum < context_.capacity ? sizing_.pack_size() : sized(sum));
    }
  }

  // Rings and packs of at most a wave's share of the work. What rings leave of the waves is for packs.
  void make_even(const SizedList& order) {
    const double share = candidate_.share / static_cast<double>(candidate_.waves);
    std::vector<RingSize> sizes;
    std::int64_t taken = 0;
    std::int64_t short_tokens = tokens_of(order);
    for (const SizedSequence& each : order) {
      RingSize size = each.tokens < context_.capacity ? sizing_.pack_size() : sized(each.tokens);
      size.degree = sizing_.narrowest_within(each.tokens, size, share, std::max(size.degree, fast_ranks()));
      if (size.degree == 1 && each.tokens < context_.capacity) break;
      taken += size.degree;
      short_tokens -= each.tokens;
      sizes.push_back(size);
    }
    const std::int64_t slots = candidate_.waves * fast_ranks();
    make_packs(order, sizes, std::max(divided(short_tokens, context_.capacity), slots - taken));
  }

  // The first sequences are rings of these sizes, the others go into bins.
  void make_packs(const SizedList& order, const std::vector<RingSize>& sizes, std::int64_t bins) {
    std::vector<std::uint32_t> pack_of(sizes.size());
    std::iota(pack_of.begin(), pack_of.end(), 0U);
    EvenBins even(bins, order.size() - sizes.size(), context_);
    for (const SizedSequence& each : std::span(order).subspan(sizes.size())) {
      pack_of.push_back(static_cast<std::uint32_t>(sizes.size() + even.put(each.tokens)));
    }
    packs_.emplace(pack_of, sizes.size() + even.count(), [&](auto add) {
      for (const SizedSequence& each : order) add(each);
    });
    for (std::size_t i = 0; i < packs_->size(); ++i) {
      if (!(*packs_)[i].empty()) add_item(i, i < sizes.size() ? sizes[i] : sizing_.pack_size());
    }
  }

  void add_item(std::size_t pack, const RingSize& size) {
    const std::int64_t sum = tokens_of((*packs_)[pack]);
    const double pairs = pairs_of((*packs_)[pack]);
    items_.push_back({pack, size, {sizing_.seconds(pairs, sum, size, false), sizing_.seconds(pairs, sum, size, true)}});
  }

  // Assigns packs to waves.
  std::vector<std::vector<Item>> waves() {
    std::stable_sort(items_.begin(), items_.end(),
                     [](const Item& a, const Item& b) { return a.seconds.any > b.seconds.any; });
    FirstFit places(items_.size(), context_.ranks);
    if (!slow_.empty()) leave_slow_ranks_out(places);
    std::vector<std::vector<Item>> waves;
    for (const Item& each : items_) {
      const std::size_t wave = places.place(each.size.degree).bin;
      if (wave >= waves.size()) waves.resize(wave + 1);
      waves[wave].push_back(each);
    }
    return waves;
  }

  // Unless a ring needs them.
  void leave_slow_ranks_out(FirstFit& waves) const {
    std::int64_t widest = 1;
    for (const Item& each : items_) widest = std::max(widest, each.size.degree);
    for (std::size_t wave = 0; wave < items_.size(); ++wave) waves.set_free(wave, std::max(widest, fast_ranks()));
  }

  // No rank runs two micro-batches of a wave: ranks are put back after the whole wave.
  void run_wave(const std::vector<Item>& wave) {
    std::vector<std::pair<std::int64_t, double>> done;
    for (const Item& each : wave) {
      loads_.make_available(each.size.degree);
      const Taken taken = take(each.size.degree, RankChoice::least_loaded, each.seconds);
      for (const std::int64_t rank : taken.ranks) done.emplace_back(rank, taken.end);
      micro_batches_.add(taken.ranks, (*packs_)[each.pack], each.size);
    }
    for (const auto& [rank, load] : done) loads_.put(rank, load);
  }

  std::vector<std::int64_t> slow_;  // those that have packs of their own and are in no wave
  SizedList of_slow_;
  SizedList of_fast_;
  std::optional<PackList> packs_;
  std::vector<Item> items_;
};

}  // namespace

BalanceOutcome balance_waves(const BalancedStep& step, const BalanceCandidate& candidate) {
  return WaveBalancing(step, candidate).run();
}

}  // namespace hdpsim
