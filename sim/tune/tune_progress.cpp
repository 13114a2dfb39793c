#include "sim/tune/tune_progress.h"

#include <algorithm>

namespace hdpsim {
namespace {

// The usual times of steps in each fidelity, in those of a plan.
constexpr std::array<std::int64_t, 3> usual_costs = {1, 6, 6};
// What searches of some hundred to some thousand candidates on 32 to 512 GPUs computed: of a policy, for its places,
// and of all candidates.
constexpr std::int64_t refinements_of_policy = 90;
constexpr std::int64_t closed_forms_of_policy = 60;
constexpr double share_in_closed_form = 0.45;
constexpr std::int64_t first_steps_of_race = 80;
constexpr std::int64_t places_of_policy = 3;

}  // namespace

std::int64_t TuneProgress::done() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < work.size(); ++i) sum += usual_costs[i] * work[i].done;
  return sum;
}

std::int64_t TuneProgress::most() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < work.size(); ++i) sum += usual_costs[i] * std::max(work[i].done, work[i].expected);
  return sum;
}

std::array<std::int64_t, 3> usual_steps(const TuneSize& size) {
  const double near = share_in_closed_form * static_cast<double>(size.candidates);
  const std::int64_t finished = size.places + places_of_policy * size.policies;
  return {size.candidates + refinements_of_policy * size.policies,
          static_cast<std::int64_t>(near) + closed_forms_of_policy * size.policies,
          first_steps_of_race * (1 + size.policies) + finished * size.steps};
}

void TuneTimeLeft::add(const TuneProgress& progress, double seconds) {
  const TuneWork& now = progress.work[progress.works_on];
  Measured& measured = measured_[progress.works_on];
  if (progress.is_new) {
    measured.seconds += seconds;
    measured.steps += std::max<std::int64_t>(0, now.done - work_[progress.works_on].done);
  }
  work_ = progress.work;
}

std::optional<double> TuneTimeLeft::seconds() const {
  double measured_s = 0;
  double measured_cost = 0;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    measured_s += measured_[i].seconds;
    measured_cost += static_cast<double>(usual_costs[i] * measured_[i].steps);
  }
  if (measured_cost == 0) return std::nullopt;
  double left_s = 0;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const auto& [seconds, steps] = measured_[i];
    const double usual_s = static_cast<double>(usual_costs[i]) * measured_s / measured_cost;
    const double step_s = steps > 0 ? seconds / static_cast<double>(steps) : usual_s;
    left_s += step_s * static_cast<double>(std::max<std::int64_t>(0, work_[i].expected - work_[i].done));
  }
  return left_s;
}

}  // namespace hdpsim
