#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "sim/plan/impl/packing.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

// Packs are filled to this share of what a group holds (Hetu-Galvatron, homo_sp_baseline_ffd_bfd_globalbatch).
constexpr double fill = 0.9;
// From this degree on, the tokens of the last micro-batch are evened out if some of its groups had none.
constexpr std::int64_t evened_degree = 16;

/// FlexSP's baseline of one degree: best-fit decreasing, as many packs a micro-batch as there are groups.
class FlexSpHomogeneous final : public Planner {
 public:
  FlexSpHomogeneous(const PlanningContext& context, std::int64_t cp) : context_(context), cp_(cp) {}

  [[nodiscard]] bool may_refuse() const override { return false; }
  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("flexsp-homogeneous", context_, batch, step);
    const SequenceList order = longest_first(batch);
    if (order.empty()) return builder.take();
    const std::int64_t room = room_for(batch.sequences[order.front()].tokens);
    std::vector<SequenceList> packs = best_fit(batch, order, room);
    for (SequenceList& pack : packs) std::sort(pack.begin(), pack.end());  // in the order of the data
    const auto groups = static_cast<std::size_t>(context_.ranks / cp_);
    const std::size_t filled = packs.size();
    const bool all_have_some = occupy_all(packs, groups);
    if (cp_ >= evened_degree && packs.size() > filled && all_have_some) {
      even_out(batch, room, std::span(packs).last(groups));
    }
    for (std::size_t i = 0; i < packs.size(); ++i) {
      builder.add_consecutive(i % groups * static_cast<std::size_t>(cp_), {cp_}, packs[i]);
    }
    return builder.take();
  }

 private:
  // The tokens of a pack at most.
  [[nodiscard]] std::int64_t room_for(std::int64_t longest) const {
    const double filled = fill * static_cast<double>(context_.capacity) * static_cast<double>(cp_);
    return std::max(static_cast<std::int64_t>(filled), longest);
  }

  // Groups that have no pack in the last micro-batch get the first sequence of the last pack that has two. False: there
  // are too few sequences for that, so that some groups stay idle. (The original fails here.)
  static bool occupy_all(std::vector<SequenceList>& packs, std::size_t groups) {
    while (packs.size() % groups != 0) {
      const auto from =
          std::find_if(packs.rbegin(), packs.rend(), [](const SequenceList& pack) { return pack.size() > 1; });
      if (from == packs.rend()) return false;
      const std::size_t moved = from->front();
      from->erase(from->begin());
      packs.push_back({moved});
    }
    return true;
  }

  // A pack that has fewer tokens than the mean gets sequences of those before it that have more, in their order: never
  // the only one of a pack, and none for which it has no room. (The original fails where it has room for none of them.)
  static void even_out(const Batch& batch, std::int64_t room, std::span<SequenceList> packs) {
    std::vector<std::int64_t> tokens;
    for (const SequenceList& pack : packs) tokens.push_back(tokens_of(batch, pack));
    const std::int64_t mean = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}) / std::ssize(packs);
    for (std::size_t to = 1; to < packs.size(); ++to) {
      for (std::size_t from = 0; from < to && tokens[to] < mean; ++from) {
        SequenceList kept;
        for (std::size_t left = packs[from].size(); const std::size_t sequence : packs[from]) {
          const std::int64_t length = batch.sequences[sequence].tokens;
          const bool moves = tokens[to] < mean && tokens[from] > mean && left > 1 && tokens[to] + length <= room;
          (moves ? packs[to] : kept).push_back(sequence);
          if (!moves) continue;
          --left;
          tokens[from] -= length;
          tokens[to] += length;
        }
        packs[from] = std::move(kept);
      }
      std::sort(packs[to].begin(), packs[to].end());
    }
  }

  [[nodiscard]] static std::int64_t tokens_of(const Batch& batch, const SequenceList& pack) {
    return std::accumulate(pack.begin(), pack.end(), std::int64_t{0},
                           [&](std::int64_t sum, std::size_t i) { return sum + batch.sequences[i].tokens; });
  }

  PlanningContext context_;
  std::int64_t cp_;
};

/// `flexsp-homogeneous: {cp: auto | N}`.
struct HomogeneousPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    return std::make_unique<FlexSpHomogeneous>(pool.context(), pool.degree_of(cp));
  }
};

}  // namespace

PolicyKind flexsp_homogeneous_policy() {
  KeyTable<HomogeneousPolicy> keys("flexsp-homogeneous");
  add_cp(keys);
  return policy_kind(
      "flexsp-homogeneous",
      "FlexSP's baseline: groups of `cp` ranks, packs by best-fit decreasing up to 0.9 of what they hold",
      std::move(keys));
}

}  // namespace hdpsim
