#include "sim/plan/impl/contest.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "sim/model/sharing_form.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/plan_time.h"
#include "sim/plan/updates.h"

namespace hdpsim {
namespace {

// By how much the work model may be wrong about which of two plans is shorter, as a share: its times of micro-batches
// are straight lines, and at first it does not know how the stages of pipelines and the ranks of waves wait for each
// other.
constexpr double slack_of_rings = 0.12;
constexpr double slack_of_waves = 0.6;
constexpr double quick_slack = 0.2;         // where none is simulated
constexpr double slack_in_order = 0.15;     // once it does
constexpr double slack_of_the_last = 0.02;  // where no more than a few are simulated
constexpr std::size_t the_last = 3;

// The work model knows what rings of whole sequences take, but not how chunks and served queries wait.
bool knows_its_price(const Plan& plan) {
  return !has_chunks_in_order(plan) &&
         std::none_of(plan.micro_batches.begin(), plan.micro_batches.end(),
                      [](const MicroBatch& micro_batch) { return exchange_of(micro_batch.cut).has_value(); });
}

// What one rank does, and nobody else but with it.
Plan alone_on(std::size_t rank, const Plan& plan) {
  Plan part{.policy = plan.policy,
            .step = plan.step,
            .ranks = plan.ranks,
            .capacity = plan.capacity,
            .layers = plan.layers,
            .expert_ranks = plan.expert_ranks,
            .sequence_tokens = plan.sequence_tokens,
            .micro_batches = {},
            .schedule = std::vector<std::vector<MicroBatchId>>(plan.schedule.size())};
  for (const MicroBatchId id : plan.schedule[rank]) {
    const MicroBatch& micro_batch = plan.micro_batches[id.index()];
    for (const HdpRank member : micro_batch.group) {
      part.schedule[member.index()].emplace_back(part.micro_batches.size());
    }
    part.micro_batches.push_back(micro_batch);
  }
  return part;
}

/// The few ranks that end last by the work model, and what they do alone in a simulated step.
class LastRanks {
 public:
  LastRanks(const Plan& plan, const PlanningContext& context) : plan_(plan), context_(context) {
    const std::vector<double> finish = plan_time(plan, context.work).finish;
    ranks_.resize(finish.size());
    std::iota(ranks_.begin(), ranks_.end(), std::size_t{0});
    const auto middle = ranks_.begin() + static_cast<std::ptrdiff_t>(std::min(few, ranks_.size()));
    std::partial_sort(ranks_.begin(), middle, ranks_.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(-finish[a], a) < std::pair(-finish[b], b);
    });
    ranks_.erase(middle, ranks_.end());
    seconds_ = simulated(ranks_.front());
  }

  /// Of the last one.
  [[nodiscard]] double seconds() const { return seconds_; }
  /// Of the first of them that takes longer than `least`; if none does, the most.
  [[nodiscard]] double seconds_up_to(double least) const {
    double most = seconds_;
    for (std::size_t i = 1; i < ranks_.size() && most <= least; ++i) most = std::max(most, simulated(ranks_[i]));
    return most;
  }

 private:
  static constexpr std::size_t few = 4;

  [[nodiscard]] double simulated(std::size_t rank) const { return context_.simulated_seconds(alone_on(rank, plan_)); }

  const Plan& plan_;
  const PlanningContext& context_;
  std::vector<std::size_t> ranks_;
  double seconds_ = 0;
};

bool may_choose(const MicroBatch& micro_batch) {
  return micro_batch.group.size() > 1 && micro_batch.cut == TokenCut::per_document && micro_batch.local.empty();
}

// Each group in the way that takes it least.
void choose_ways(Plan& plan, const WorkModel& work) {
  if (work.others.empty()) return;
  for (MicroBatch& micro_batch : plan.micro_batches) {
    if (!may_choose(micro_batch)) continue;
    micro_batch.exchange = work.fastest(micro_batch.area(), micro_batch.tokens(), std::ssize(micro_batch.group),
                                        work.near(micro_batch.group));
  }
}

double slowest_of(const MicroBatch& micro_batch, const std::vector<double>& speeds) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const HdpRank rank : micro_batch.group) slowest = std::min(slowest, speeds.at(rank.index()));
  return slowest;
}

// The same plan with all groups in one way; empty: the recipe's.
Plan with_one_way(Plan plan, std::optional<KeyExchange> way) {
  for (MicroBatch& micro_batch : plan.micro_batches) {
    if (may_choose(micro_batch)) micro_batch.exchange = way;
  }
  return plan;
}

}  // namespace

Contest::Contest(const PlanningContext& context, const Effort& effort)
    : context_(context),
      in_waves_(context.stages > 1 || context.expert_ranks > 1),
      is_quick_(effort.is_quick),
      simulates_(context.simulated_seconds && effort.simulates()),
      simulates_the_last_(context.simulated_seconds && !simulates_ && effort.simulates_the_last()),
      slack_(simulates_ ? (in_waves_ ? slack_of_waves : slack_of_rings) : 0),
      most_simulated_(in_waves_ ? effort.on_stages(context.stages).times(20, 60) : effort.times(10)) {
  if (effort.is_quick) slack_ = std::min(slack_, quick_slack);
}

void Contest::enter(Plan plan) {
  if (update_count(plan) > 1) return;  // it trains otherwise
  if (context_.expert_ranks > 1 && plan.expert_ranks != context_.expert_ranks) {
    plan = in_expert_waves(std::move(plan), context_.expert_ranks, context_.expert_padding);
  }
  choose_ways(plan, context_.work);
  const double seconds = estimate(plan);
  if (!entries_.empty() && (tokens_held(plan) > context_.capacity || seconds >= limit())) return;
  const bool is_priced = knows_its_price(plan);
  if ((!simulates_ || is_quick_) && !is_priced) return;
  if (!simulates_) return enter_checked(std::move(plan), seconds);
  if (is_known(plan, seconds)) return;
  if (is_priced) shortest_ = std::min(shortest_, seconds);
  entries_.push_back({std::move(plan), seconds, is_priced});
}

std::vector<double> Contest::speeds_in(std::int64_t step) const {
  return context_.rank_speeds ? context_.rank_speeds(step) : std::vector<double>{};
}

double Contest::estimate(const Plan& plan) const {
  const std::vector<double> speeds = speeds_in(plan.step);
  if (speeds.empty()) return plan_time(plan, context_.work).step(context_.stages);
  PlanClock clock(plan.schedule.size());
  for (const MicroBatchId id : order_of_execution(plan)) {
    const MicroBatch& micro_batch = plan.micro_batches[id.index()];
    const double slowest = slowest_of(micro_batch, speeds);
    clock.run(micro_batch.group, micro_batch_seconds(micro_batch, plan.layers, context_.work) / slowest);
  }
  return clock.time().step(context_.stages);
}

double Contest::estimate_in_order(const Plan& plan) const {
  return context_.seconds_in_order(plan, pass_seconds(plan, context_.work));
}

// Short pieces on many ranks take longer than the straight lines of the work model say.
void Contest::enter_checked(Plan plan, double seconds) {
  if (context_.simulated_seconds && context_.expert_ranks == 1) {
    const std::vector<double> finish = plan_time(plan, context_.work).finish;
    const auto last = std::max_element(finish.begin(), finish.end());
    const Plan part = alone_on(static_cast<std::size_t>(last - finish.begin()), plan);
    seconds += context_.simulated_seconds(part) - plan_time(part, context_.work).step(context_.stages);
  }
  if (seconds >= shortest_ * (1 + slack_of_the_last)) return;
  shortest_ = std::min(shortest_, seconds);
  entries_.push_back({std::move(plan), seconds, true});
  if (entries_.size() > (simulates_the_last_ ? the_last : 1)) {
    entries_.erase(std::max_element(entries_.begin(), entries_.end(), is_shorter));
  }
}

// Of plans whose time is known only roughly until now.
void Contest::put_in_order() {
  shortest_ = std::numeric_limits<double>::infinity();
  for (Entry& entry : entries_) {
    entry.seconds = estimate_in_order(entry.plan);
    if (entry.is_priced) shortest_ = std::min(shortest_, entry.seconds);
  }
  slack_ = slack_in_order;
}

Plan Contest::take() {
  if (simulates_ && context_.seconds_in_order) put_in_order();
  std::stable_sort(entries_.begin(), entries_.end(), is_shorter);
  if (is_quick_ || !(simulates_ || simulates_the_last_)) return std::move(entries_.front().plan);
  simulate();
  Entry& best = *std::min_element(entries_.begin(), entries_.end(), is_shorter);
  try_one_way(best);
  return std::move(best.plan);
}

// Groups that take longer than the work model says may keep others waiting.
void Contest::try_one_way(Entry& best) const {
  if (context_.work.others.empty()) return;
  std::vector<std::optional<KeyExchange>> ways = {std::nullopt};
  for (const WorkModel& other : context_.work.others) ways.emplace_back(other.exchange);
  const Plan chosen = best.plan;
  for (const std::optional<KeyExchange>& way : ways) {
    Plan plan = with_one_way(chosen, way);
    if (plan == chosen) continue;
    const double seconds = context_.simulated_seconds(plan);
    if (seconds < best.seconds) best = {std::move(plan), seconds, best.is_priced};
  }
}

bool Contest::is_known(const Plan& plan, double seconds) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.seconds == seconds && entry.plan.micro_batches == plan.micro_batches;
  });
}

void Contest::simulate() {
  std::int64_t priced = 0;
  const double last = simulates_ ? limit() : shortest_ * (1 + slack_of_the_last);
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.seconds >= last || (entry.is_priced && ++priced > most_simulated_);
  });
  if (in_waves_) {
    for (Entry& entry : entries_) entry.seconds = context_.simulated_seconds(entry.plan);
  } else {
    simulate_the_least();
  }
}

// Where ranks wait for each other in groups alone, a step takes no less than what its last ranks do. That is simulated
// in no time, and keeps most plans from being simulated as a whole: their seconds are then this bound, which is above
// the least step.
void Contest::simulate_the_least() {
  std::vector<LastRanks> last;
  for (const Entry& entry : entries_) last.emplace_back(entry.plan, context_);
  std::vector<std::size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return last[a].seconds() < last[b].seconds(); });
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    Entry& entry = entries_[i];
    entry.seconds = last[i].seconds_up_to(least);
    if (entry.seconds > least) continue;
    entry.seconds = context_.simulated_seconds(entry.plan);
    least = std::min(least, entry.seconds);
  }
}

}  // namespace hdpsim
