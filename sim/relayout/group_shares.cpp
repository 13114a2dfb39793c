#include "sim/relayout/group_shares.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "sim/relayout/min_max_split.h"

namespace hdpsim {
namespace {

SplitPart stage_part(const RelayoutJob& job, double slowdown, std::int64_t cut, std::int64_t stage,
                     std::int64_t stages) {
  double room = job.memory - job.extra_memory(cut);
  if (stage == 0) room -= job.first_memory(cut);
  if (stage == stages - 1) room -= job.last_memory(cut);
  const double layers = std::floor(room / job.layer_memory(cut, stages - stage));  // 1F1B
  const auto most = static_cast<std::int64_t>(std::clamp(layers, 0.0, static_cast<double>(job.layers)));
  return {.cost = slowdown, .least = 1, .most = most};
}

std::vector<SplitPart> stage_parts(const RelayoutJob& job, std::span<const double> slowdowns,
                                   std::span<const std::int64_t> cuts, std::int64_t stages) {
  std::vector<SplitPart> parts;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    const bool is_slow = s < slowdowns.size();
    parts.push_back(stage_part(job, is_slow ? slowdowns[s] : 1, is_slow ? cuts[s] : 0, stage, stages));
  }
  return parts;
}

class ShareSearch {
 public:
  ShareSearch(const RelayoutJob& job, std::span<const double> slowdowns, std::span<const std::int64_t> cuts,
              std::int64_t usual, std::size_t count)
      : job_(job), slowdowns_(slowdowns), cuts_(cuts), usual_(usual), count_(count), groups_(usual + std::ssize(cuts)) {
    const std::int64_t base = groups_ / job.pipelines;
    const bool is_as_before = groups_ == job.pipelines * job.stages;
    least_ = is_as_before ? base : std::max<std::int64_t>(1, base - 1);
    most_ = is_as_before ? base : base + groups_ % job.pipelines + 1;
  }

  GroupShares search() {
    if (groups_ >= job_.pipelines) share(0);
    return std::move(found_);
  }

 private:
  // Puts the slow groups from this one on into pipelines.
  void share(std::size_t next) {
    if (!found_.is_exhaustive) return;
    if (next == slowdowns_.size()) return choose_stages(0, usual_);
    for (std::size_t p = first_choice(next); p < now_.size(); ++p) {
      if (std::ssize(now_[p].slow) == most_) continue;
      now_[p].slow.push_back(next);
      share(next + 1);
      now_[p].slow.pop_back();
    }
    if (std::ssize(now_) == job_.pipelines) return;
    now_.push_back({{next}});
    share(next + 1);
    now_.pop_back();
  }

  // Groups that are equally slow are put into rising pipelines.
  [[nodiscard]] std::size_t first_choice(std::size_t next) const {
    if (next == 0 || slowdowns_[next] != slowdowns_[next - 1] || cuts_[next] != cuts_[next - 1]) return 0;
    const auto of_former = std::find_if(now_.begin(), now_.end(), [&](const SlowPipeline& each) {
      return std::find(each.slow.begin(), each.slow.end(), next - 1) != each.slow.end();
    });
    return static_cast<std::size_t>(of_former - now_.begin());
  }

  void choose_stages(std::size_t pipeline, std::int64_t usual_left) {
    if (pipeline == now_.size()) return try_now(usual_left);
    SlowPipeline& at = now_[pipeline];
    const std::int64_t slow = std::ssize(at.slow);
    for (std::int64_t stages = std::max(least_, slow); stages <= std::min(most_, slow + usual_left); ++stages) {
      at.stages = stages;
      choose_stages(pipeline + 1, usual_left - (stages - slow));
    }
  }

  void try_now(std::int64_t usual_left) {
    const std::int64_t others = job_.pipelines - std::ssize(now_);
    if (others == 0 ? usual_left != 0 : usual_left / others < least_ || (usual_left - 1) / others + 1 > most_) return;
    if (++tried_ > most_candidates) {
      found_.is_exhaustive = false;
      return;
    }
    const auto objective = objective_of_now(usual_left, others);
    if (objective) keep(*objective);
  }

  [[nodiscard]] std::optional<double> objective_of_now(std::int64_t usual_left, std::int64_t others) {
    std::vector<SplitPart> parts;
    const auto add = [&](const std::vector<std::size_t>& slow, std::int64_t stages, std::int64_t times) {
      const auto slowest = slowest_stage(slow, stages);
      if (slowest) parts.push_back({.cost = *slowest, .least = stages, .times = times});
      return slowest.has_value();
    };
    for (const SlowPipeline& each : now_) {
      if (!add(each.slow, each.stages, 1)) return std::nullopt;
    }
    if (others > 0) {
      const std::int64_t more = usual_left % others;
      if (more > 0 && !add({}, usual_left / others + 1, more)) return std::nullopt;
      if (!add({}, usual_left / others, others - more)) return std::nullopt;
    }
    return least_maximum(job_.micro_batches, parts);
  }

  // PipelineLayout::slowest_stage() of the best deal of layers. Equally slow groups are one case.
  std::optional<double> slowest_stage(const std::vector<std::size_t>& slow, std::int64_t stages) {
    std::vector<double> slowdowns;
    std::vector<std::int64_t> cuts;
    for (const std::size_t each : slow) {
      slowdowns.push_back(slowdowns_[each]);
      cuts.push_back(cuts_[each]);
    }
    const auto [known, is_new] = slowest_.try_emplace({slowdowns, cuts, stages});
    if (is_new) known->second = least_maximum(job_.layers, stage_parts(job_, slowdowns, cuts, stages));
    return known->second;
  }

  void keep(double objective) {
    std::vector<GroupShare>& best = found_.best;
    if (best.size() == count_ && objective >= best.back().objective) return;
    const auto place = std::upper_bound(best.begin(), best.end(), objective,
                                        [](double value, const GroupShare& share) { return value < share.objective; });
    best.insert(place, {now_, objective});
    if (best.size() > count_) best.pop_back();
  }

  const RelayoutJob& job_;
  std::span<const double> slowdowns_;
  std::span<const std::int64_t> cuts_;
  std::int64_t usual_;
  std::size_t count_;
  std::int64_t groups_;
  std::int64_t least_ = 1;  // stages of a pipeline
  std::int64_t most_ = 1;
  std::vector<SlowPipeline> now_;
  std::int64_t tried_ = 0;
  std::map<std::tuple<std::vector<double>, std::vector<std::int64_t>, std::int64_t>, std::optional<double>> slowest_;
  GroupShares found_;
};

}  // namespace

GroupShares best_shares(const RelayoutJob& job, std::span<const double> slowdowns, std::span<const std::int64_t> cuts,
                        std::int64_t usual, std::size_t count) {
  return ShareSearch(job, slowdowns, cuts, usual, count).search();
}

std::int64_t usual_stages(std::int64_t groups, std::int64_t pipelines, std::int64_t pipeline) {
  return groups / pipelines + (pipeline < groups % pipelines ? 1 : 0);
}

std::vector<std::int64_t> stage_layers(const RelayoutJob& job, std::span<const double> slowdowns,
                                       std::span<const std::int64_t> cuts, std::int64_t stages) {
  return min_max_split(job.layers, stage_parts(job, slowdowns, cuts, stages)).value_or(std::vector<std::int64_t>{});
}

}  // namespace hdpsim
