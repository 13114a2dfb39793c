#include "sim/plan/impl/outlier_queues.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/plan/impl/packs.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_kept = 1024;          // steps before which it is known what is held, ...
constexpr std::int64_t latest = 16;              // ... and of them the last ones, which are kept longest
constexpr std::int64_t history = 64;             // steps before the first one, ...
constexpr std::size_t most_warming = 4'000'000;  // ... or as many as have so many sequences together
constexpr std::int64_t halvings = 6;             // of the context, down to which bounds are tried
constexpr std::int64_t longest_wait = 8;         // steps in which a queue fills
constexpr double mean_wait = 0.5;                // steps that the mean token waits
constexpr std::int64_t tried_steps = 16;         // of the data, on which bounds are compared, ...
constexpr std::size_t tried = 200'000;           // ... or as many as have so many sequences together

void take_first(Batch& from, std::size_t count, Batch& to) {
  const auto end = from.sequences.begin() + static_cast<std::ptrdiff_t>(count);
  to.sequences.insert(to.sequences.end(), from.sequences.begin(), end);
  from.sequences.erase(from.sequences.begin(), end);
}

void release_full_queues(std::size_t count, HeldSequences& held, Batch& released) {
  for (Batch& queue : held.queues) {
    take_first(queue, queue.sequences.size() / count * count, released);
  }
}

void release_any(std::size_t count, HeldSequences& held, Batch& released) {
  const auto filled =
      std::find_if(held.queues.begin(), held.queues.end(), [](const Batch& queue) { return !queue.sequences.empty(); });
  if (filled != held.queues.end()) take_first(*filled, std::min(count, filled->sequences.size()), released);
}

/// How bounds do on some steps of the data.
class BoundTrial {
 public:
  BoundTrial(const std::vector<Batch>& batches, const OutlierRules& rules) {
    HeldSequences held;
    std::int64_t trained = 0;
    double waited = 0;
    double most = 0;
    double mean = 0;
    for (const Batch& batch : batches) {
      const ReleasedBatch step = release(batch, rules, held);
      trained += step.batch.tokens();
      waited += static_cast<double>(waiting(held));
      most += step.most_work;
      mean += step.mean_work;
    }
    imbalance_ = mean > 0 ? most / mean : 1;
    wait_ = trained > 0 ? waited / static_cast<double>(trained) : 0;
  }

  [[nodiscard]] double imbalance() const { return imbalance_; }
  [[nodiscard]] bool waits_briefly() const { return wait_ <= mean_wait; }

 private:
  static std::int64_t waiting(const HeldSequences& held) {
    return std::accumulate(held.queues.begin(), held.queues.end(), held.left.tokens(),
                           [](std::int64_t sum, const Batch& queue) { return sum + queue.tokens(); });
  }

  double imbalance_ = 1;
  double wait_ = 0;  ///< Steps that the mean token waits: tokens that wait over those trained, step by step.
};

// Whether every queue gets a sequence for each micro-batch often enough.
bool fill_in_time(const std::vector<Batch>& batches, const OutlierRules& rules, std::int64_t steps) {
  std::vector<std::size_t> arrived(rules.bounds.size());
  std::size_t micro_batches = 0;
  for (const Batch& batch : batches) {
    micro_batches += rules.micro_batches(batch.tokens());
    for (const Sequence& sequence : batch.sequences) {
      const auto above = std::upper_bound(rules.bounds.begin(), rules.bounds.end(), sequence.tokens);
      if (above != rules.bounds.begin()) ++arrived[static_cast<std::size_t>(above - rules.bounds.begin() - 1)];
    }
  }
  const double most_steps = std::min(static_cast<double>(longest_wait), static_cast<double>(steps) / 4);
  return std::all_of(arrived.begin(), arrived.end(), [&](std::size_t sequences) {
    return static_cast<double>(sequences) * most_steps >= static_cast<double>(micro_batches);
  });
}

std::vector<Batch> batches_to_try(const BatchSource& data, std::int64_t steps) {
  std::vector<Batch> batches;
  std::size_t sequences = 0;
  for (std::int64_t k = 0; k < tried_steps && sequences < tried; ++k) {
    batches.push_back(data.step(k % steps));
    sequences += batches.back().sequences.size();
  }
  return batches;
}

}  // namespace

std::size_t OutlierRules::micro_batches(std::int64_t tokens) const {
  const std::int64_t micro_batches_of_replica = divided(tokens, replicas * context);
  return static_cast<std::size_t>(replicas * std::max<std::int64_t>(1, micro_batches_of_replica));
}

ReleasedBatch release(const Batch& arrived, const OutlierRules& rules, HeldSequences& held) {
  held.queues.resize(rules.bounds.size());
  const std::size_t expected = rules.micro_batches(arrived.tokens() + held.left.tokens());
  Batch ready;
  for (const Sequence& sequence : arrived.sequences) {
    const auto above = std::upper_bound(rules.bounds.begin(), rules.bounds.end(), sequence.tokens);
    const bool waits = above != rules.bounds.begin();
    Batch& into = waits ? held.queues[static_cast<std::size_t>(above - rules.bounds.begin() - 1)] : ready;
    into.sequences.push_back(sequence);
  }
  release_full_queues(expected, held, ready);
  if (ready.sequences.empty() && held.left.sequences.empty()) release_any(expected, held, ready);
  std::stable_sort(ready.sequences.begin(), ready.sequences.end(),
                   [](const Sequence& a, const Sequence& b) { return a.tokens > b.tokens; });
  Batch all = std::exchange(held.left, {});
  all.sequences.insert(all.sequences.end(), ready.sequences.begin(), ready.sequences.end());

  const WorkPacks packs = pack_by_work(all, in_data_order(all), rules.micro_batches(all.tokens()), rules.room,
                                       [&](std::int64_t tokens) { return work_of(rules.work, tokens); });
  ReleasedBatch step;
  auto left = packs.left.begin();
  for (std::size_t i = 0; i < all.sequences.size(); ++i) {
    const bool is_left = left != packs.left.end() && *left == i;
    if (is_left) ++left;
    (is_left ? held.left : step.batch).sequences.push_back(all.sequences[i]);
  }
  for (const SequencePack& pack : packs.packs) {
    step.most_work = std::max(step.most_work, pack.work);
    step.mean_work += pack.work;
  }
  step.mean_work /= static_cast<double>(packs.packs.size());
  return step;
}

std::vector<std::int64_t> tuned_bounds(const BatchSource& data, std::int64_t steps, OutlierRules rules) {
  const std::vector<Batch> batches = batches_to_try(data, steps);
  rules.bounds.clear();
  if (batches.front().sequences.size() > tried) return {};
  std::vector<std::int64_t> best;
  double least = BoundTrial(batches, rules).imbalance();
  const auto attempt = [&](std::vector<std::int64_t> bounds) {
    rules.bounds = std::move(bounds);
    if (!fill_in_time(batches, rules, steps)) return;
    const BoundTrial trial(batches, rules);
    if (!trial.waits_briefly() || trial.imbalance() >= least) return;
    least = trial.imbalance();
    best = rules.bounds;
  };
  for (std::int64_t low = std::max<std::int64_t>(2, rules.context >> halvings); low <= rules.context / 2; low *= 2) {
    attempt({low});
    for (std::int64_t high = 2 * low; high <= rules.context / 2; high *= 2) attempt({low, high});
  }
  return best;
}

HeldBackBatches::HeldBackBatches(const BatchSource& data, OutlierRules rules,
                                 std::function<std::vector<std::int64_t>()> bounds, std::int64_t steps)
    : data_(data), bounds_(std::move(bounds)), steps_(steps), rules_(std::move(rules)) {
  HDPSIM_CHECK(steps >= 1, "{} steps", steps);
}

void HeldBackBatches::begin() const {
  rules_.bounds = bounds_();
  if (rules_.bounds.empty()) return;
  HeldSequences& held = held_[0];
  // Step -k of a run that goes round is its step steps - k.
  const std::size_t sequences_a_step = std::max<std::size_t>(1, data_.step(0).sequences.size());
  const std::int64_t before =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(most_warming / sequences_a_step), 1, history);
  const std::int64_t laps = divided(before, steps_);
  for (std::int64_t k = laps * steps_ - before; k < laps * steps_; ++k) {
    (void)release(data_.step(k % steps_), rules_, held);
  }
}

void HeldBackBatches::keep(std::int64_t step, const HeldSequences& held) const {
  held_.insert_or_assign(step, held);
  if (held_.size() <= most_kept) return;
  while (held_.size() > most_kept / 2) {
    apart_ *= 2;
    std::erase_if(held_, [&](const auto& kept) {
      return kept.first % apart_ != 0 && (kept.first > step || kept.first + latest < step);
    });
  }
}

Batch HeldBackBatches::step(std::int64_t k) const {
  std::call_once(begun_, [this] { begin(); });
  if (rules_.bounds.empty()) return data_.step(k);
  const std::lock_guard lock(mutex_);
  const auto known = std::prev(held_.upper_bound(k));
  HeldSequences held = known->second;
  for (std::int64_t at = known->first; at < k; ++at) {
    (void)release(data_.step(at), rules_, held);
    keep(at + 1, held);
  }
  Batch trained = release(data_.step(k), rules_, held).batch;
  keep(k + 1, held);
  return trained;
}

}  // namespace hdpsim
