#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sim/plan/impl/buckets.h"
#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/rank_loads.h"
#include "sim/plan/impl/short_sequences.h"
#include "sim/plan/impl/waves.h"

namespace hdpsim {
namespace {

// The parts of a span that joins a ring must be whole tiles of the attention kernels: two parts a rank of at least 128
// rows.
constexpr std::int64_t least_joined_tokens_per_rank = 256;

// One way to plan a step.
struct Candidate {
  RankChoice choice = RankChoice::least_wait;
  double longest_seconds = 0;  // that offload may let a micro-batch take
  double share = 0;            // seconds of every rank if all work were spread evenly
  bool rings_on_fast = false;  // ranks that are known to be slow get short sequences alone, unless a ring needs them
};

// How a way turned out, by the work model.
struct Outcome {
  Plan plan;
  double step = 0;    // seconds until the last rank is done
  double spread = 0;  // how much earlier the first is done, as a share of the step
};

// Steps within 1 % of the shortest are the same to this model. Of those the shortest whose ranks end together, within 3
// %; if there is none, the one whose ranks end the closest. The first among equals.
class BestOutcome {
 public:
  // Plans of large pools are large: keeps only those that may still turn out the best. One that is no shorter and no
  // better than another one never does.
  void add(Outcome made) {
    const auto excludes = [](const Outcome& a, const Outcome& b) { return a.step <= b.step && !is_better(b, a); };
    if (std::any_of(kept_.begin(), kept_.end(), [&](const Outcome& kept) { return excludes(kept, made); })) return;
    std::erase_if(kept_, [&](const Outcome& kept) { return excludes(made, kept); });
    kept_.push_back(std::move(made));
  }

  Plan take() {
    constexpr double same_step = 1.01;
    const auto shorter = [](const Outcome& a, const Outcome& b) { return a.step < b.step; };
    const double shortest = std::min_element(kept_.begin(), kept_.end(), shorter)->step;
    std::erase_if(kept_, [&](const Outcome& kept) { return kept.step > same_step * shortest; });
    return std::move(std::min_element(kept_.begin(), kept_.end(), is_better)->plan);
  }

 private:
  // Of two whose steps are the same.
  static bool is_better(const Outcome& a, const Outcome& b) {
    constexpr double together = 0.03;
    if (a.spread <= together && b.spread <= together) return a.step < b.step;
    return a.spread < b.spread;
  }

  std::vector<Outcome> kept_;
};

/// How fast the planner knows ranks to be.
class KnownSpeeds {
 public:
  KnownSpeeds(const PlanningContext& context, std::int64_t step)
      : speeds_(context.rank_speeds ? context.rank_speeds(step) : std::vector<double>{}) {}

  [[nodiscard]] const std::vector<double>& by_rank() const { return speeds_; }
  [[nodiscard]] bool differ() const { return !speeds_.empty() && !slow_ranks().empty(); }

  [[nodiscard]] std::vector<std::int64_t> slow_ranks() const {
    std::vector<std::int64_t> slow;
    const double fastest = speeds_.empty() ? 1 : *std::max_element(speeds_.begin(), speeds_.end());
    for (std::size_t rank = 0; rank < speeds_.size(); ++rank) {
      if (speeds_[rank] < fastest) slow.push_back(static_cast<std::int64_t>(rank));
    }
    return slow;
  }

  /// Ranks of nominal speed that would do the same in the same time.
  [[nodiscard]] double sum(std::int64_t ranks) const {
    return speeds_.empty() ? static_cast<double>(ranks) : std::accumulate(speeds_.begin(), speeds_.end(), 0.0);
  }

  /// A ring goes at the pace of its slowest rank.
  [[nodiscard]] double slowest(const std::vector<std::int64_t>& ranks) const {
    double slowest = speeds_.empty() ? 1 : speeds_[static_cast<std::size_t>(ranks.front())];
    if (speeds_.empty()) return slowest;
    for (const std::int64_t rank : ranks) slowest = std::min(slowest, speeds_[static_cast<std::size_t>(rank)]);
    return slowest;
  }

 private:
  std::vector<double> speeds_;  // none: all are 1
};

Outcome outcome_of(PlanBuilder& builder, const std::vector<double>& loads) {
  const auto [first, last] = std::minmax_element(loads.begin(), loads.end());
  return {builder.take(), *last, *last > 0 ? 1 - *first / *last : 0};
}

// The planning of one step in one way.
class Balancing {
 public:
  // `order`: longest_first().
  Balancing(const PlanningContext& context, const BalanceOptions& options, const Batch& batch,
            const SequenceList& order, const Candidate& candidate, const KnownSpeeds& speeds, std::int64_t step)
      : context_(context),
        options_(options),
        batch_(batch),
        builder_("hdp-balance", context, batch, step),
        sizing_(context, options.offload),
        candidate_(candidate),
        speeds_(speeds),
        loads_(context.ranks, options.node_first ? context.ranks_per_node : 1,
               candidate.share > 0 ? options.delta * candidate.share : 1,
               candidate.rings_on_fast ? speeds.slow_ranks() : std::vector<std::int64_t>{}),
        long_(order.begin(), first_short(order, batch, context.capacity)),
        short_(batch, std::span(order).subspan(long_.size())) {}

  Outcome run() {
    std::vector<Ring> rings;
    rings.reserve(long_.size());
    for (const std::size_t sequence : long_) {
      const RingSize size = sizing_.size(tokens(sequence), candidate_.longest_seconds);
      rings.push_back({sequence, size, sizing_.seconds(tokens(sequence), size)});
    }
    Buckets buckets(rings, options_.buckets);
    while (!buckets.empty()) place(buckets.draw(loads_.target_count()));
    return place_short();
  }

 private:
  static SequenceList::const_iterator first_short(const SequenceList& order, const Batch& batch,
                                                  std::int64_t capacity) {
    return std::partition_point(order.begin(), order.end(),
                                [&](std::size_t sequence) { return batch.sequences[sequence].tokens >= capacity; });
  }

  std::int64_t tokens(std::size_t sequence) const { return batch_.sequences[sequence].tokens; }

  void place(const Ring& ring) {
    RingSize size = ring.size;
    if (options_.widen) size.degree = widened(ring);
    SequenceList members{ring.sequence};
    const double nominal = let_join(members, size);
    loads_.make_available(size.degree);
    const std::vector<std::int64_t> ranks = loads_.take(size.degree, candidate_.choice);
    const double seconds = nominal / speeds_.slowest(ranks);
    double start = 0;
    for (const std::int64_t rank : ranks) start = std::max(start, loads_.load(rank));
    std::vector<HdpRank> group;
    group.reserve(ranks.size());
    for (const std::int64_t rank : ranks) {
      group.emplace_back(static_cast<std::size_t>(rank));
      loads_.put(rank, start + seconds);
    }
    builder_.add(std::move(group), members, size);
  }

  // The least degree with which the ring ends within the balanced share; if there is none, the one with which it ends
  // first. Wider rings wait for more ranks, and beyond a certain width their transfers show.
  std::int64_t widened(const Ring& ring) const {
    const std::int64_t count = tokens(ring.sequence);
    const std::int64_t widest = sizing_.widest_hidden_ring(count, ring.size.degree);
    std::int64_t best = ring.size.degree;
    double best_finish = std::numeric_limits<double>::infinity();
    const double soon_enough = candidate_.share * (1 + options_.delta);
    for (const RankLoads::Offer& offer : loads_.offers()) {
      if (offer.ranks < ring.size.degree || best_finish <= soon_enough) continue;
      const std::int64_t most = std::min(widest, offer.ranks);
      const std::int64_t needed = sizing_.degree_within(count, candidate_.share - offer.start, most);
      const std::int64_t degree = std::max(ring.size.degree, needed);
      const double finish = offer.start + sizing_.seconds(count, {degree, ring.size.offload, ring.size.token_wise});
      if (finish < best_finish) {
        best_finish = finish;
        best = degree;
      }
    }
    return best;
  }

  // Lets short sequences fill the room that ceil(s / C) leaves in a ring, the longest that fits first, as long as they
  // cost the ring's ranks no more than they would cost alone. Returns the seconds of the micro-batch.
  double let_join(SequenceList& members, RingSize size) {
    std::int64_t sum = tokens(members.front());
    double pairs = causal_pairs(sum);
    if (size.token_wise) return sizing_.seconds(sum, size);
    double seconds = context_.work.seconds(pairs, sum, size.degree);
    if (!options_.pack_groups || size.degree == 1 || size.offload > 0) return seconds;
    const auto seconds_with = [&](std::int64_t count) {
      return context_.work.seconds(pairs + causal_pairs(count), sum + count, size.degree);
    };
    const auto worth_it = [&](std::size_t sequence) {
      const std::int64_t count = tokens(sequence);
      const double cost = (seconds_with(count) - seconds) * static_cast<double>(size.degree);
      return count >= least_joined_tokens_per_rank * size.degree && cost <= seconds_alone(count);
    };
    while (const auto joins = short_.take_longest_within(size.degree * context_.capacity - sum, worth_it)) {
      const std::int64_t count = tokens(*joins);
      seconds = seconds_with(count);
      members.push_back(*joins);
      sum += count;
      pairs += causal_pairs(count);
    }
    return seconds;
  }

  // In a full micro-batch of one rank, with its share of the fixed time.
  double seconds_alone(std::int64_t count) const {
    const double share = static_cast<double>(count) / static_cast<double>(context_.capacity);
    return context_.work.compute_seconds(causal_pairs(count), count) + context_.work.per_micro_batch * share;
  }

  Outcome place_short() {
    std::vector<double> loads = loads_.loads();
    const std::vector<RankPacks> ranks =
        deal_to_least_loaded(batch_, short_.rest(), context_, loads, speeds_.by_rank());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (const SequenceList& pack : ranks[rank].packs()) builder_.add_consecutive(rank, {}, pack);
    }
    return outcome_of(builder_, loads);
  }

  const PlanningContext& context_;
  const BalanceOptions& options_;
  const Batch& batch_;
  PlanBuilder builder_;
  RingSizing sizing_;
  Candidate candidate_;
  const KnownSpeeds& speeds_;
  RankLoads loads_;
  SequenceList long_;
  ShortSequences short_;
};

// The same with PP-Balance: wave by wave.
class WaveBalancing {
 public:
  WaveBalancing(const PlanningContext& context, const BalanceOptions& options, const Batch& batch,
                const SequenceList& order, const Candidate& candidate, const KnownSpeeds& speeds, std::int64_t step)
      : context_(context),
        batch_(batch),
        builder_("hdp-balance", context, batch, step),
        sizing_(context, options.offload),
        candidate_(candidate),
        speeds_(speeds),
        loads_(context.ranks, options.node_first ? context.ranks_per_node : 1,
               candidate.share > 0 ? options.delta * candidate.share : 1),
        packs_(best_fit(batch, order, context.capacity)) {}

  Outcome run() {
    for (std::vector<Item>& wave : waves()) run_wave(wave);
    return outcome_of(builder_, loads_.loads());
  }

 private:
  struct Item {
    std::size_t pack;
    RingSize size;
    double seconds;
  };

  // A sequence of C tokens or more is a pack alone.
  std::vector<std::vector<Item>> waves() const {
    std::vector<Item> items;
    for (std::size_t i = 0; i < packs_.size(); ++i) items.push_back(item(i));
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.seconds > b.seconds; });
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
    const RingSize size = sum < context_.capacity ? RingSize{} : sizing_.size(sum, candidate_.longest_seconds);
    const double seconds =
        size.token_wise ? sizing_.seconds(sum, size) : context_.work.seconds(pairs, sum, size.degree);
    return {pack, size, seconds};
  }

  // No rank runs two micro-batches of a wave: ranks come back when it is full.
  void run_wave(const std::vector<Item>& wave) {
    std::vector<std::pair<std::int64_t, double>> done;
    for (const Item& each : wave) {
      const std::vector<std::int64_t> ranks = loads_.take(each.size.degree, RankChoice::least_loaded);
      std::vector<HdpRank> group;
      double start = 0;
      for (const std::int64_t rank : ranks) {
        group.emplace_back(static_cast<std::size_t>(rank));
        start = std::max(start, loads_.load(rank));
      }
      const double seconds = each.seconds / speeds_.slowest(ranks);
      for (const std::int64_t rank : ranks) done.emplace_back(rank, start + seconds);
      builder_.add(std::move(group), packs_[each.pack], each.size);
    }
    for (const auto& [rank, load] : done) loads_.put(rank, load);
  }

  const PlanningContext& context_;
  const Batch& batch_;
  PlanBuilder builder_;
  RingSizing sizing_;
  Candidate candidate_;
  const KnownSpeeds& speeds_;
  RankLoads loads_;
  std::vector<SequenceList> packs_;
};

// No rule is best for every batch: a few are tried, and the work model judges.
class HdpBalance final : public Planner {
 public:
  HdpBalance(const PlanningContext& context, const BalanceOptions& options) : context_(context), options_(options) {
    const bool in_waves = context.stages > 1 || context.expert_ranks > 1;
    if (!options.balance) options_.balance = in_waves ? Balance::pp : Balance::dp;
  }

  Plan plan(const Batch& batch, std::int64_t step) const override {
    const SequenceList order = longest_first(batch);
    const KnownSpeeds speeds(context_, step);
    BestOutcome best;
    for (const Candidate& candidate : candidates(batch, speeds)) {
      if (options_.balance == Balance::pp) {
        best.add(WaveBalancing(context_, options_, batch, order, candidate, speeds, step).run());
      } else {
        best.add(Balancing(context_, options_, batch, order, candidate, speeds, step).run());
      }
    }
    return best.take();
  }

 private:
  // As many ranks a sequence as without offload. With it, a sequence may also take the whole step on few ranks, which
  // wastes nothing where such sequences fit side by side; or no longer than the mean micro-batch, which leaves more
  // small pieces to even out with. Where ranks are known to be slow, each of these also without them in rings.
  std::vector<Candidate> candidates(const Batch& batch, const KnownSpeeds& speeds) const {
    constexpr double as_without = 0;
    const Shares plain = balanced_shares(batch, context_, RingSizing(context_, {}));
    std::vector<Candidate> candidates{{RankChoice::least_wait, as_without, plain.step},
                                      {RankChoice::least_loaded, as_without, plain.step}};
    if (options_.offload.mode != OffloadRule::Mode::none) {
      const Shares shares = balanced_shares(batch, context_, RingSizing(context_, options_.offload));
      candidates.push_back({RankChoice::least_wait, shares.micro_batch, shares.step});
      candidates.push_back({RankChoice::least_wait, shares.step, shares.step});
    }
    const double longer = static_cast<double>(context_.ranks) / speeds.sum(context_.ranks);
    for (Candidate& candidate : candidates) candidate.share *= longer;
    if (!speeds.differ() || options_.balance == Balance::pp) return candidates;
    for (std::size_t i = 0, count = candidates.size(); i < count; ++i) {
      candidates.push_back(candidates[i]);
      candidates.back().rings_on_fast = true;
    }
    return candidates;
  }

  PlanningContext context_;
  BalanceOptions options_;
};

}  // namespace

std::unique_ptr<Planner> make_hdp_balance(const PlanningContext& context, const BalanceOptions& options) {
  return std::make_unique<HdpBalance>(context, options);
}

}  // namespace hdpsim
