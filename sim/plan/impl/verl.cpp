#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/plan/impl/differencing.h"
#include "sim/plan/impl/micro_batch_limit.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

// What verl takes a sequence to cost, for every model (seqlen_balancing.py, calculate_workload).
ExactWork verl_work(std::int64_t tokens) {
  const auto s = static_cast<ExactWork>(tokens);
  return 24576 * s + s * s;
}

struct VerlOptions {
  std::int64_t cp = 1;        ///< Ranks of a replica, which share each of its sequences.
  std::int64_t multiple = 1;  ///< The number of micro-batches is a multiple of this.
  std::int64_t limit = 1;     ///< Tokens that a micro-batch should have.
};

/// verl's step with dynamic batch sizes and one mini-batch (RayPPOTrainer._balance_batch, rearrange_micro_batches):
/// sequences are divided among the replicas by largest differencing on their work; so are those of a replica among as
/// many micro-batches as its tokens ask for, the most of any replica. The order within a replica is verl's, too.
class Verl final : public Planner {
 public:
  Verl(const PlanningContext& context, VerlOptions options) : context_(context), options_(options) {}

  Plan plan(const Batch& batch, std::int64_t step) const override {
    const std::vector<SequenceList> replicas = replicas_of(batch);
    const std::size_t count = micro_batches_of(batch, replicas);
    PlanBuilder builder("verl", context_, batch, step);
    for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
      for (const SequenceList& sequences : divided(batch, replicas[replica], count)) {
        builder.add_consecutive(replica * static_cast<std::size_t>(options_.cp), {options_.cp}, sequences);
      }
    }
    Plan made = builder.take();
    raise_capacity(made);
    return made;
  }

 private:
  // The sequences of every replica, the longest of them in the middle. Where they cannot be dealt out in equal numbers,
  // which verl refuses, only their work is balanced.
  [[nodiscard]] std::vector<SequenceList> replicas_of(const Batch& batch) const {
    const auto count = static_cast<std::size_t>(context_.ranks / options_.cp);
    SequenceList all(batch.sequences.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<SequenceList> replicas = largest_differencing(works_of(batch, all), count, all.size() % count == 0);
    for (SequenceList& replica : replicas) {
      std::stable_sort(replica.begin(), replica.end(), [&](std::size_t a, std::size_t b) {
        return batch.sequences[a].tokens < batch.sequences[b].tokens;
      });
      SequenceList laid_out;
      for (std::size_t i = 0; i < replica.size(); i += 2) laid_out.push_back(replica[i]);
      for (std::size_t i = replica.size() / 2 * 2; i-- > 0;) {
        if (i % 2 == 1) laid_out.push_back(replica[i]);
      }
      replica = std::move(laid_out);
    }
    return replicas;
  }

  // As many as the replica with most tokens asks for.
  [[nodiscard]] std::size_t micro_batches_of(const Batch& batch, const std::vector<SequenceList>& replicas) const {
    std::int64_t most = 1;
    for (const SequenceList& replica : replicas) {
      std::int64_t tokens = 0;
      for (const std::size_t sequence : replica) tokens += batch.sequences[sequence].tokens;
      const std::int64_t asked = (tokens - 1) / options_.limit + 1;
      most = std::max(most, std::min<std::int64_t>(asked, std::ssize(replica)));
    }
    return static_cast<std::size_t>((most + options_.multiple - 1) / options_.multiple * options_.multiple);
  }

  // The micro-batches of a replica, small ones at both ends: pipelines fill and drain with them.
  [[nodiscard]] static std::vector<SequenceList> divided(const Batch& batch, const SequenceList& replica,
                                                         std::size_t count) {
    const std::vector<ExactWork> works = works_of(batch, replica);
    std::vector<SequenceList> parts = largest_differencing(works, std::min(count, replica.size() + 1), false);
    std::erase_if(parts, [](const SequenceList& part) { return part.empty(); });
    const auto work = [&](const SequenceList& part) {
      return std::accumulate(part.begin(), part.end(), ExactWork{0},
                             [&](ExactWork sum, std::size_t i) { return sum + works[i]; });
    };
    std::sort(parts.begin(), parts.end(), [&](const SequenceList& a, const SequenceList& b) {
      return std::pair(work(a), a.front()) > std::pair(work(b), b.front());
    });
    std::vector<SequenceList> in_order;
    for (std::size_t i = (parts.size() + 1) / 2; i-- > 0;) in_order.push_back(parts[2 * i]);
    for (std::size_t i = 1; i < parts.size(); i += 2) in_order.push_back(parts[i]);
    for (SequenceList& part : in_order) {
      for (std::size_t& place : part) place = replica[place];
    }
    return in_order;
  }

  [[nodiscard]] static std::vector<ExactWork> works_of(const Batch& batch, const SequenceList& sequences) {
    std::vector<ExactWork> works;
    works.reserve(sequences.size());
    for (const std::size_t sequence : sequences) works.push_back(verl_work(batch.sequences[sequence].tokens));
    return works;
  }

  PlanningContext context_;
  VerlOptions options_;
};

/// `verl: {cp: auto | N, max_tokens: N, micro_batches_divided_by: N}`.
struct VerlPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_tokens;
  std::int64_t multiple = 1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    return std::make_unique<Verl>(pool.context(),
                                  VerlOptions{degree, multiple, micro_batch_limit(pool, degree, max_tokens)});
  }
};

}  // namespace

PolicyKind verl_policy() {
  KeyTable<VerlPolicy> keys("verl");
  add_cp(keys);
  add_max_tokens(keys);
  add_micro_batch_multiple(keys);
  return policy_kind(
      "verl",
      "dynamic batches of verl (RL training): sequences are divided among replicas of `cp` ranks, and those of "
      "a replica among micro-batches, by largest differencing on 24576 s + s^2 for s tokens; the ranks "
      "of a replica form a ring, where verl uses all-to-alls (Ulysses)",
      std::move(keys));
}

}  // namespace hdpsim
