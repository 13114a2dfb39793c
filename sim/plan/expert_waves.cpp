#include "sim/plan/expert_waves.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/plan/updates.h"

namespace hdpsim {
namespace {

// By micro-batch: the number of others before it on the longest path.
std::vector<std::int64_t> slots_of(const Plan& plan) {
  std::vector<std::int64_t> slots(plan.micro_batches.size());
  std::vector<std::int64_t> next(plan.schedule.size());  // by rank: the first free slot
  for (const MicroBatchId id : order_of_execution(plan)) {
    const std::vector<HdpRank>& group = plan.micro_batches[id.index()].group;
    std::int64_t slot = 0;
    for (const HdpRank rank : group) slot = std::max(slot, next[rank.index()]);
    for (const HdpRank rank : group) next[rank.index()] = slot + 1;
    slots[id.index()] = slot;
  }
  return slots;
}

// The ratio that all micro-batches have, as where a study states one; 0 where they differ.
double common_offload(const Plan& plan) {
  const auto& all = plan.micro_batches;
  const auto is_alike = [&](const MicroBatch& each) { return !each.token_wise && each.offload == all[0].offload; };
  return !all.empty() && std::all_of(all.begin(), all.end(), is_alike) ? all[0].offload : 0;
}

/// Fills the lists of one expert group after the other.
class Alignment {
 public:
  Alignment(Plan& plan, std::int64_t padding)
      : plan_(plan), padding_(padding), offload_(padding > 0 ? common_offload(plan) : 0), slots_(slots_of(plan)) {}

  void align(std::size_t first, std::size_t last) {
    std::vector<std::int64_t> waves;
    for (std::size_t rank = first; rank < last; ++rank) {
      for (const MicroBatchId id : plan_.schedule[rank]) waves.push_back(slots_[id.index()]);
    }
    std::sort(waves.begin(), waves.end());
    waves.erase(std::unique(waves.begin(), waves.end()), waves.end());
    for (std::size_t rank = first; rank < last; ++rank) fill(rank, waves);
  }

 private:
  void fill(std::size_t rank, const std::vector<std::int64_t>& waves) {
    std::vector<MicroBatchId> filled;
    filled.reserve(waves.size());
    auto own = plan_.schedule[rank].begin();
    for (const std::int64_t wave : waves) {
      const bool has_one = own != plan_.schedule[rank].end() && slots_[own->index()] == wave;
      filled.push_back(has_one ? *own++ : new_micro_batch(rank));
    }
    plan_.schedule[rank] = std::move(filled);
  }

  MicroBatchId new_micro_batch(std::size_t rank) {
    MicroBatch& micro_batch = plan_.micro_batches.emplace_back();
    micro_batch.group = {HdpRank(rank)};
    micro_batch.padding = padding_;
    micro_batch.offload = offload_;
    return MicroBatchId(plan_.micro_batches.size() - 1);
  }

  Plan& plan_;
  std::int64_t padding_;
  double offload_;                   // of padding; what has no tokens keeps no activations of its own
  std::vector<std::int64_t> slots_;  // of the original micro-batches of the plan
};

/// Disjoint sets of numbers.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }

  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  /// Joins two sets; the lesser number represents both.
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

// Calls `visit` with the micro-batches of every wave of every expert group.
template <class Visit>
void for_each_wave(const Plan& plan, const Visit& visit) {
  const auto ranks = static_cast<std::size_t>(plan.expert_ranks);
  std::vector<MicroBatchId> wave(ranks);
  for (std::size_t first = 0; first + ranks <= plan.schedule.size(); first += ranks) {
    const std::size_t waves = plan.schedule[first].size();
    for (std::size_t r = 0; r < ranks; ++r) {
      HDPSIM_CHECK(plan.schedule[first + r].size() == waves, "rank {} runs {} micro-batches, rank {} of its group {}",
                   first + r, plan.schedule[first + r].size(), first, waves);
    }
    for (std::size_t k = 0; k < waves; ++k) {
      for (std::size_t r = 0; r < ranks; ++r) wave[r] = plan.schedule[first + r][k];
      visit(wave);
    }
  }
}

class Execution {
 public:
  explicit Execution(const Plan& plan)
      : plan_(plan), waves_(plan), next_(plan.schedule.size()), missing_(waves_.count()) {
    for (const auto& list : plan.schedule) {
      for (const MicroBatchId id : list) {
        if (known(id)) ++missing_[waves_.wave(id)];
      }
    }
  }

  std::vector<MicroBatchId> run() {
    for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) arrive(rank);
    std::size_t done = 0;
    while (done < order_.size()) {
      const MicroBatchId id = order_[done++];
      for (const HdpRank rank : plan_.micro_batches[id.index()].group) {
        if (rank.index() < next_.size() && stands_at(rank.index(), id)) {
          ++next_[rank.index()];
          arrive(rank.index());
        }
      }
    }
    return std::move(order_);
  }

 private:
  bool known(MicroBatchId id) const { return id.index() < plan_.micro_batches.size(); }
  bool stands_at(std::size_t rank, MicroBatchId id) const {
    return next_[rank] < plan_.schedule[rank].size() && plan_.schedule[rank][next_[rank]] == id;
  }

  // The rank comes to its next micro-batch; the last rank of a wave to come makes it ready.
  void arrive(std::size_t rank) {
    const auto& list = plan_.schedule[rank];
    while (next_[rank] < list.size() && !known(list[next_[rank]])) ++next_[rank];
    if (next_[rank] == list.size()) return;
    const MicroBatchId id = list[next_[rank]];
    const std::size_t wave = waves_.wave(id);
    if (--missing_[wave] > 0) return;
    for (const MicroBatchId member : waves_.members(wave)) order_.push_back(member);
  }

  const Plan& plan_;
  WaveTable waves_;
  std::vector<std::size_t> next_;
  std::vector<std::size_t> missing_;  // by wave: ranks that have not come to their micro-batch of it yet
  std::vector<MicroBatchId> order_;
};

}  // namespace

const std::vector<std::string>& expert_span_names() {
  static const std::vector<std::string> names{"inside", "waves", "padding"};
  return names;
}

Plan in_expert_waves(Plan plan, std::int64_t expert_ranks, std::int64_t padding) {
  HDPSIM_CHECK(plan.expert_ranks == 1 && expert_ranks >= 1 && plan.ranks % expert_ranks == 0,
               "expert groups of {} of {} ranks", expert_ranks, plan.ranks);
  if (expert_ranks == 1) return plan;
  if (update_count(plan) > 1) {
    std::vector<Plan> updates = split_by_update(plan);
    for (Plan& update : updates) update = in_expert_waves(std::move(update), expert_ranks, padding);
    return joined_updates(std::move(updates));
  }
  Alignment alignment(plan, padding);
  const auto step = static_cast<std::size_t>(expert_ranks);
  for (std::size_t first = 0; first < plan.schedule.size(); first += step) alignment.align(first, first + step);
  plan.expert_ranks = expert_ranks;
  return plan;
}

WaveTable::WaveTable(const Plan& plan) : wave_of_(plan.micro_batches.size()) {
  Sets sets(wave_of_.size());
  if (plan.expert_ranks > 1) {
    for_each_wave(plan, [&](const std::vector<MicroBatchId>& wave) {
      for (const MicroBatchId id : wave) sets.join(wave.front().index(), id.index());
    });
  }
  std::size_t count = 0;
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < wave_of_.size(); ++i) {
    const std::size_t root = sets.find(i);  // at most i
    wave_of_[i] = root == i ? count++ : wave_of_[root];
    sizes.resize(count);
    ++sizes[wave_of_[i]];
  }
  first_.resize(count + 1);
  std::partial_sum(sizes.begin(), sizes.end(), first_.begin() + 1);
  std::vector<std::size_t> next = first_;
  members_.resize(wave_of_.size());
  for (std::size_t i = 0; i < wave_of_.size(); ++i) members_[next[wave_of_[i]]++] = MicroBatchId(i);
}

std::vector<MicroBatchId> order_of_execution(const Plan& plan) {
  return Execution(plan).run();
}

std::vector<ExpertTokens> expert_tokens(const Plan& plan, std::int64_t tp, std::int64_t ep) {
  std::vector<ExpertTokens> tokens;
  tokens.reserve(plan.micro_batches.size());
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    tokens.push_back(tokens_inside(micro_batch.tokens_per_rank(), tp, std::min(ep, tp)));
  }
  if (plan.expert_ranks == 1) return tokens;
  const std::vector<ExpertTokens> own = tokens;  // of whole ranks
  for_each_wave(plan, [&](const std::vector<MicroBatchId>& wave) {
    ExpertTokens group;
    for (const MicroBatchId id : wave) {
      group.most = std::max(group.most, own[id.index()].most);
      group.all += own[id.index()].all;
    }
    for (const MicroBatchId id : wave) {
      ExpertTokens& most = tokens[id.index()];
      most = {std::max(most.most, group.most), std::max(most.all, group.all)};
    }
  });
  return tokens;
}

}  // namespace hdpsim
